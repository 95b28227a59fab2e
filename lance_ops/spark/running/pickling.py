"""Pickle a value as Spark does: classes and functions of the caller's program travel by value."""

from __future__ import annotations

from pyspark import cloudpickle

__all__ = ["pickle_by_value"]


def pickle_by_value(value: object) -> bytes:
    """Return the bytes from which `pickle.loads` makes the value in a process that cannot import the caller's program.

    Raises whatever the value's class raises, if it cannot be pickled.
    """
    pickled: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]  # Spark's copy has no annotations
    return pickled
