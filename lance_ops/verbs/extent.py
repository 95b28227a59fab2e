"""The most that the execution of a stored plan may remove or rewrite, as its preview showed it.

{"rows": 2, "versions": ["main/3", "main/4"], "tags": [], "heads": ["main/5"]}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from lance_ops.core.errors import InvalidInput, PlanOutdated

__all__ = ["Extent", "check_within", "extent_from_json"]

Extent: TypeAlias = Mapping[str, int | str | tuple[str, ...]]
"""Numbers, moments, and names of things, by kind: how much a verb may remove or rewrite. The verb knows the kinds."""

_MOST_NAMED = 10


def extent_from_json(content: Mapping[str, Any]) -> Extent:
    """Return an extent from its JSON, where a list stands for names; raise `InvalidInput` for anything else."""
    extent = {kind: tuple(value) if isinstance(value, list) else value for kind, value in content.items()}
    for kind, value in extent.items():
        names = value if isinstance(value, tuple) else ()
        if not isinstance(value, (int, str, tuple)) or not all(isinstance(each, str) for each in names):
            raise InvalidInput(f"the plan's extent has {value!r} as {kind}: make it again")
    return extent


def check_within(uri: str, promised: Extent, found: Extent) -> None:
    """Raise `PlanOutdated` that says which kinds have grown beyond the promised extent, and by what."""
    grown = [words for kind in found if (words := _growth(kind, promised.get(kind), found[kind]))]
    if grown:
        raise PlanOutdated(f"{uri}: more would go than the preview showed: {'; '.join(grown)}; plan again")


def _growth(kind: str, promised: object, found: object) -> str:
    if isinstance(found, int):
        limit = promised if isinstance(promised, int) else 0
        return f"{found:,} {kind} instead of {limit:,}" if found > limit else ""
    names = _names(found)
    more = sorted(names.difference(_names(promised)))
    return f"{len(more):,} more {kind} ({', '.join(more[:_MOST_NAMED])})" if more else ""


def _names(value: object) -> frozenset[str]:
    return frozenset(map(str, value)) if isinstance(value, Iterable) else frozenset()
