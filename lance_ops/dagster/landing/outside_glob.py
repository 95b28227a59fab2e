"""Tell of the files that a declaration's `raw.glob` leaves out: how many there are, and which look like batches.

A file that is left out belongs to no batch, so no batch's state names it. Most such files are left out on purpose. A
path that differs from the glob only in case or in a compression's ending, such as `day.csv.gz` beside `*.csv`, is
rather a batch that its sender named otherwise.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import PathGlob
from lance_ops.maintenance.ingest import printable

__all__ = ["OutsideGlob", "outside_glob"]

_SHOWN = 5
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy", ".br", ".zip")


@dataclass(frozen=True)
class OutsideGlob:
    """How many files a glob leaves out, and how many of them are alike to those it matches; the first are named."""

    glob: str = "**"
    num_files: int = 0
    files: tuple[str, ...] = ()
    num_alike: int = 0
    alike: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a user must know: nothing, the files, or the files and what to do about those that are alike."""
        if not self.num_files:
            return ()
        told = f"raw.glob ({self.glob}) leaves out {_counted(self.num_files)}: {_listed(self.files, self.num_files)}"
        if not self.num_alike:
            return (told,)
        alike = (
            f"raw.glob leaves out {_counted(self.num_alike)} for case or compression alone: "
            f"{_listed(self.alike, self.num_alike)}; rename or remove such files, or widen raw.glob"
        )
        return told, alike


def outside_glob(glob: str, paths: Sequence[str]) -> OutsideGlob:
    """Return what to tell of paths that a glob does not match."""
    family = _family(glob)
    matches_family = PathGlob(family).matches
    # A path in the form of its family can only match a glob in that form as it stands, and it does not.
    forms = ((path, _family(path)) for path in paths)
    alike = [path for path, form in forms if (form != path or family != glob) and matches_family(form)]
    return OutsideGlob(glob, len(paths), _first(paths), len(alike), _first(alike))


def _family(path: str) -> str:
    """Return what paths have in common that differ only in case or in a compression's ending."""
    lower = path.lower()
    return lower.rpartition(".")[0] if lower.endswith(_COMPRESSIONS) else lower


def _first(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(printable, heapq.nsmallest(_SHOWN, paths)))


def _counted(num_files: int) -> str:
    return "1 file" if num_files == 1 else f"{num_files:,} files"


def _listed(named: Sequence[str], num_files: int) -> str:
    more = num_files - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more else "")
