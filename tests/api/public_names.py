"""Describe the public API as lines: every public name, with the arguments of what can be called.

`python -m tests.api.public_names` writes `tests/golden/public_api.txt` after a change that is meant.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["EXTRA_MODULES", "GOLDEN", "MODULES", "describe_public_api"]

GOLDEN = Path(__file__).parents[1] / "golden" / "public_api.txt"

EXTRA_MODULES = ("lance_ops.dagster", "lance_ops.spark")
"""Public modules that need packages of an extra."""

MODULES = (
    "lance_ops",
    "lance_ops.arrow",
    "lance_ops.blob",
    "lance_ops.commit",
    "lance_ops.errors",
    "lance_ops.file",
    "lance_ops.fragment",
    "lance_ops.hf",
    "lance_ops.optimize",
    "lance_ops.log",
    "lance_ops.progress",
    "lance_ops.pydantic",
    "lance_ops.sampler",
    "lance_ops.schema",
    "lance_ops.types",
    "lance_ops.debug",
    "lance_ops.udf",
    "lance_ops.verbs",
)


def describe_public_api(*modules: str) -> list[str]:
    """Return the lines of some modules, sorted."""
    lines: set[str] = set()
    for name in modules:
        module = import_module(name)
        for public in _public_names(module):
            lines.update(_describe(f"{name}.{public}", getattr(module, public)))
    return sorted(lines)


def _public_names(module: Any) -> list[str]:
    """Return what a module shows to users. `lance_ops.file` also serves the other rooms, with names of their own."""
    names: list[str] = list(module.__all__)
    if module.__name__ == "lance_ops.file":
        of_users = import_module("lance_ops.file.reference_api").__all__
        names = [name for name in names if name in of_users]
    return names


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
    GOLDEN.write_text("\n".join(describe_public_api(*MODULES, *EXTRA_MODULES)) + "\n")
