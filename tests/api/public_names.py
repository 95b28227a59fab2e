"""Describe the public API as lines: every public name, with the arguments of what can be called.

python -m tests.api.public_names > tests/golden/public_api.txt      after a change that is meant
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import Any

__all__ = ["describe_public_api"]

MODULES = (
    "lance_ops",
    "lance_ops.blob",
    "lance_ops.errors",
    "lance_ops.fragment",
    "lance_ops.progress",
    "lance_ops.schema",
    "lance_ops.udf",
)


def describe_public_api() -> list[str]:
    """Return the lines, sorted."""
    lines: set[str] = set()
    for name in MODULES:
        module = import_module(name)
        for public in module.__all__:
            lines.update(_describe(f"{name}.{public}", getattr(module, public)))
    return sorted(lines)


def _describe(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield f"{name}{_arguments(value)}"
        for attribute in dir(value):
            if not attribute.startswith("_") and _is_ours(value, attribute):
                yield from _describe_attribute(f"{name}.{attribute}", inspect.getattr_static(value, attribute))
    elif callable(value):
        yield f"{name}{_arguments(value)}"
    else:
        yield name


def _describe_attribute(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if inspect.isclass(value) and not issubclass(value, Enum):
        yield from _describe(name, value)
    elif inspect.isfunction(value):
        yield f"{name}{_arguments(value)}"
    else:
        yield name


def _is_ours(owner: type, attribute: str) -> bool:
    return any(attribute in vars(base) for base in owner.__mro__ if base.__module__.startswith("lance_ops"))


def _arguments(called: Any) -> str:
    """Return names, kinds and defaults of the arguments; annotations name types that are free to move."""
    try:
        parameters = inspect.signature(called).parameters.values()
    except ValueError:
        return "(…)"
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return str(inspect.Signature(plain))


if __name__ == "__main__":
    print("\n".join(describe_public_api()))
