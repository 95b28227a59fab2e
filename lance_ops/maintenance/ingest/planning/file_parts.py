"""Share raw files among tasks: whole, and a file that is longer than what a task reads by its row groups.

A part has adjacent row groups, and the parts of a file are in the order of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from lance_ops.core.errors import RawFileRefused
from lance_ops.core.records import dataclass
from lance_ops.maintenance.ingest.decoding import RowGroups
from lance_ops.maintenance.ingest.raw_files import RawFile, RawReader, RawReading
from lance_ops.runners import Job, Runner

__all__ = ["FilePart", "parts_of", "share_parts"]

_FILES_PER_TASK = 64
_BYTES_OF_FOOTER = 1 << 20
"""About how many bytes are read of a long file to find its row groups."""

_PARTS_PER_TASK = 32
"""The bytes of a task are cut into at most about this many parts: tasks become about equal, and parts stay few."""


@dataclass(frozen=True)
class FilePart:
    """The rows of a raw file, or those of some of its row groups, and the key of the file's batch."""

    key: str
    file: RawFile
    size_bytes: int
    groups: RowGroups | None = None

    @classmethod
    def whole(cls, key: str, file: RawFile) -> FilePart:
        """Return all rows of a file."""
        return cls(key, file, file.size_bytes)

    @property
    def is_first(self) -> bool:
        """Whether the part has the first rows of its file."""
        return self.groups is None or self.groups.start == 0

    def with_next(self, other: FilePart) -> FilePart | None:
        """Return this part together with the one that follows in the same file; None if `other` is not that one."""
        if self.groups is None or other.groups is None or (self.key, self.file) != (other.key, other.file):
            return None
        if self.groups.stop != other.groups.start:
            return None
        groups = self.groups._replace(stop=other.groups.stop)
        return replace(self, size_bytes=self.size_bytes + other.size_bytes, groups=groups)


@dataclass(frozen=True)
class FooterTask:
    """Long raw files whose row groups a task finds. It joins row groups to ranges of about `range_bytes`."""

    files: tuple[RawFile, ...]
    range_bytes: int
    reading: RawReading
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


def parts_of(
    files: Sequence[tuple[str, RawFile]],
    most_bytes: int,
    reading: RawReading,
    storage_options: Mapping[str, str],
    runner: Runner,
    job: Job,
) -> list[FilePart]:
    """Return the files as parts: a file of more than `most_bytes` by its row groups, and another one whole.

    Short row groups are joined, so that a file has some 32 parts for each `most_bytes`, however many row groups it has.
    Tasks of the runner read the footers of the long files. A file that cannot be read is one part: the task that reads
    it refuses it.
    """
    long = list(dict.fromkeys(file for _, file in files if file.size_bytes > most_bytes))
    shares = [tuple(long[start : start + _FILES_PER_TASK]) for start in range(0, len(long), _FILES_PER_TASK)]
    range_bytes = max(most_bytes // _PARTS_PER_TASK, 1)
    tasks = [FooterTask(share, range_bytes, reading, storage_options) for share in shares]
    job = replace(job, size_bytes=_BYTES_OF_FOOTER * len(long))
    found = [ranges for part in (runner.map(read_row_groups, tasks, job) if tasks else ()) for ranges in part]
    ranges_by_file = dict(zip(long, found, strict=True))
    return [part for key, file in files for part in _parts(key, file, ranges_by_file.get(file, ()))]


def read_row_groups(task: FooterTask) -> tuple[Sequence[tuple[RowGroups, int]], ...]:
    """Return ranges of row groups, and about how many bytes each has, for each file of a task."""
    with RawReader(task.storage_options, task.reading) as reader:
        return tuple(_ranges_of(reader, file, task.range_bytes) for file in task.files)


def _ranges_of(reader: RawReader, file: RawFile, range_bytes: int) -> Sequence[tuple[RowGroups, int]]:
    try:
        return reader.row_group_ranges(file, range_bytes)
    except RawFileRefused:
        return ()


def _parts(key: str, file: RawFile, ranges: Sequence[tuple[RowGroups, int]]) -> list[FilePart]:
    if len(ranges) < 2:
        return [FilePart.whole(key, file)]
    return [FilePart(key, file, size_bytes, groups) for groups, size_bytes in ranges]


def share_parts(parts: Sequence[FilePart], most_bytes: int, most_files: int) -> list[list[FilePart]]:
    """Return the parts of each task, in order: as few tasks as the limits allow, and their sizes about equal."""
    shares = list(_cut(parts, most_bytes, most_files))
    least_bytes = sum(part.size_bytes for part in parts) // max(len(shares), 1)
    while len(shares) > 1 and most_bytes - least_bytes > most_bytes // 64:  # a smaller limit may need no more tasks
        limit = (least_bytes + most_bytes) // 2
        found = list(_cut(parts, limit, most_files))
        if len(found) > len(shares):
            least_bytes = limit + 1
        else:
            most_bytes, shares = limit, found
    return shares


def _cut(parts: Sequence[FilePart], most_bytes: int, most_files: int) -> Iterator[list[FilePart]]:
    share: list[FilePart] = []
    size = 0
    for part in parts:
        joined = share[-1].with_next(part) if share else None
        if share and (size + part.size_bytes > most_bytes or (joined is None and len(share) >= most_files)):
            yield share
            share, size, joined = [], 0, None
        if joined is None:
            share.append(part)
        else:
            share[-1] = joined
        size += part.size_bytes
    if share:
        yield share
