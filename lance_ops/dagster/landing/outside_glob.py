"""Tell of the files that a declaration's `raw.glob` leaves out: how many there are, and which look like batches.

A file that is left out belongs to no batch, so no batch's state names it. Most such files are left out on purpose. A
path that differs from the glob only in case or in a compression's ending, such as `day.csv.gz` beside `*.csv`, is
rather a batch that its sender named otherwise.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import PathGlob
from lance_ops.maintenance.ingest import printable

__all__ = ["OutsideGlob", "outside_glob"]

_SHOWN = 5
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy", ".br", ".zip")


@dataclass(frozen=True)
class OutsideGlob:
    """How many files a glob leaves out, and how many of them it misses by case or compression; the first are named."""

    glob: str = "**"
    num_files: int = 0
    files: tuple[str, ...] = ()
    num_near_misses: int = 0
    near_misses: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a user must know: nothing, the files, or the files and what to do about the near misses."""
        if not self.num_files:
            return ()
        told = f"raw.glob ({self.glob}) leaves out {_counted(self.num_files)}: {_listed(self.files, self.num_files)}"
        if not self.num_near_misses:
            return (told,)
        near_misses = (
            f"raw.glob leaves out {_counted(self.num_near_misses)} for case or compression alone: "
            f"{_listed(self.near_misses, self.num_near_misses)}; rename or remove such files, or widen raw.glob unless "
            "they repeat files that it matches"
        )
        return told, near_misses


def outside_glob(glob: str, paths: Sequence[str]) -> OutsideGlob:
    """Count paths that a glob does not match, and name the first of them.

    A near miss matches the glob if neither case nor a compression's ending counts.
    """
    plain = _without_compression(glob.lower())
    is_stripped = re.search(r"\w", plain) is not None  # of `*.gz` only a wildcard would be left, which matches anything
    wanted = plain if is_stripped else glob.lower()
    matches = PathGlob(wanted).matches

    def is_near_miss(path: str) -> bool:
        normalised = _without_compression(path.lower()) if is_stripped else path.lower()
        # If neither the path nor the glob changes, the glob was tried already, and did not match.
        return (normalised != path or wanted != glob) and matches(normalised)

    near = list(filter(is_near_miss, paths))
    return OutsideGlob(glob, len(paths), _first(paths), len(near), _first(near))


def _without_compression(path: str) -> str:
    return path.rpartition(".")[0] if path.endswith(_COMPRESSIONS) else path


def _first(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(printable, heapq.nsmallest(_SHOWN, paths)))


def _counted(num_files: int) -> str:
    return "1 file" if num_files == 1 else f"{num_files:,} files"


def _listed(named: Sequence[str], num_files: int) -> str:
    more = num_files - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more else "")
