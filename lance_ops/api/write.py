"""`write_dataset`, under the reference's name: a version is written, and a handle on it returned."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from lance_ops.api.argument_checks import check_arguments
from lance_ops.api.lance_dataset import LanceDataset
from lance_ops.api.write_version import write_version
from lance_ops.snapshot import Snapshot

__all__ = ["write_dataset"]

P = ParamSpec("P")


def _returning_a_dataset(write: Callable[P, Snapshot], name: str) -> Callable[P, LanceDataset]:
    """Return a function of that name with the same arguments and docstring, which returns a handle."""

    @wraps(write)
    def writing(*args: P.args, **kwargs: P.kwargs) -> LanceDataset:
        return LanceDataset.of(write(*args, **kwargs))

    writing.__name__ = writing.__qualname__ = name
    return check_arguments(writing)


write_dataset = _returning_a_dataset(write_version, "write_dataset")
