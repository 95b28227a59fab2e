"""Choose where new data files go: beneath the table's root, or to its base paths in turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.store import path_beneath
from lance_ops.table import BasePath
from lance_ops.table.manifest import FileLocations

__all__ = ["AT_ROOT", "WriteTargets", "choose_bases", "number_bases"]

AT_ROOT: tuple[int | None, ...] = (None,)
"""The default targets: the root alone, which has no base id."""


@dataclass(frozen=True)
class WriteTargets:
    """The ids of the bases to write to in turn, None for the root; `locations` resolves them to stores."""

    locations: FileLocations
    base_ids: tuple[int | None, ...] = AT_ROOT


def choose_bases(
    declared: Iterable[BasePath],
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    *,
    root_uri: str | None = None,
) -> tuple[int | None, ...]:
    """Return the ids of the bases to write to.

    `target_bases` lists them by name or by path; `root_uri` among them is the root. `target_all_bases` takes all bases,
    and if it is True the root before them. Raises `InvalidInput` for a base that is not declared, and if both
    arguments are given.
    """
    bases = sorted(declared, key=lambda base: base.id)
    if target_all_bases is not None:
        if target_bases is not None:
            raise InvalidInput("target_bases and target_all_bases cannot be given together")
        ids = tuple(base.id for base in bases)
        if not (ids or target_all_bases):
            raise InvalidInput("target_all_bases=False leaves nothing to write to: the table has no base paths")
        return (*AT_ROOT, *ids) if target_all_bases else ids
    return tuple(_id_of(bases, reference, root_uri) for reference in target_bases or ()) or AT_ROOT


def number_bases(bases: Sequence[BasePath]) -> tuple[BasePath, ...]:
    """Return the bases of a new table; a base without an id (0) gets the lowest free one from 1.

    Raises `InvalidInput` where two bases have the same id, name or path.
    """
    taken = {base.id for base in bases if base.id}
    free = (number for number in range(1, len(bases) + len(taken) + 1) if number not in taken)
    numbered = tuple(base if base.id else replace(base, id=next(free)) for base in bases)
    for at, base in enumerate(numbered):
        for other in numbered[:at]:
            same_name = base.name is not None and base.name == other.name
            if base.id == other.id or same_name or path_beneath(other.path, base.path) == "":
                raise InvalidInput(f"base path {base.path!r} meets {other.path!r}: ids, names and paths must differ")
    return numbered


def _id_of(bases: Sequence[BasePath], reference: str, root_uri: str | None) -> int | None:
    by_name = next((base for base in bases if base.name == reference), None)
    found = by_name or next((base for base in bases if path_beneath(base.path, reference) == ""), None)
    if found is None:
        if root_uri is not None and path_beneath(root_uri, reference) == "":
            return None
        known = [base.name or base.path for base in bases]
        raise InvalidInput(f"target base {reference!r} is none of the table's base paths: {known}")
    return found.id
