"""Find rows that have the same key as others, and delete all but one of each key, by tasks.

    shuffle of keys         each task reads the key columns of some fragments, and shares them among buckets by hash
    groups of a bucket      each task compares the keys of one bucket: numbers, a few examples, addresses of what goes
    deletion                deletion files, many by tasks; one commit

Keys and row addresses alone are shuffled, through files that are removed at the end. Keys that fit into one bucket are
grouped by one task as it reads them. Keys are equal as in a merge; one with a null in it equals no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.changing import merge_insert
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.changing.source_keys import SourceKeys, key_hashes
from lance_ops.core.addresses import fragment_of, offset_of
from lance_ops.core.arrow import array_of_numbers, numbers_of, rows_at
from lance_ops.core.errors import InvalidInput
from lance_ops.core.ndarrays import Uint64Array
from lance_ops.core.predicate import Column, Predicate
from lance_ops.core.records import dataclass
from lance_ops.reading import scan_rows
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference, projected_sizes
from lance_ops.table.rows import NO_CODE, bitmap_of, join_bitmaps
from lance_ops.transactions import REPLACES_PREFIX, Delete
from lance_ops.writing import TaskShare, commit_operation, share_rows, write_deletion_files

__all__ = ["DuplicateKey", "Duplicates", "Keep", "delete_duplicates", "find_duplicates"]

_Source: TypeAlias = tuple[TaskShare, ...] | tuple[by_tasks.Segment, ...]
"""What a task groups: shares of rows to read, or segments of shuffled keys."""

_EXCLUSIVE = f"{REPLACES_PREFIX}duplicates"
"""A property of transactions of which only one commits: each leaves one row of a key, by other columns perhaps."""


class Keep(Enum):
    """Which row of each key stays, in the order of a scan."""

    FIRST = "first"
    LAST = "last"


class DuplicateKey(NamedTuple):
    """A key, in the order of the key columns, that several rows have."""

    values: tuple[Any, ...]
    num_rows: int


@dataclass(frozen=True)
class Duplicates:
    """`num_keys` is the number of keys with more than one row; `num_rows` is the number of all rows with these keys.

    `examples` are some of the keys, the most frequent first.
    """

    num_keys: int
    num_rows: int
    examples: tuple[DuplicateKey, ...]

    @property
    def num_surplus_rows(self) -> int:
        """How many rows would go if each key kept one."""
        return self.num_rows - self.num_keys


@dataclass(frozen=True)
class _Groups:
    """What a task found: the numbers of its bucket, and serialized bitmaps of surplus offsets by fragment."""

    found: Duplicates
    surplus: Mapping[int, bytes]


def find_duplicates(
    snapshot: Snapshot,
    on: Sequence[str],
    predicate: Predicate | None,
    runner: Runner,
    num_examples: int = 10,
    sizes: by_tasks.TaskSizes | None = None,
) -> Duplicates:
    """Count the rows, among those that match, whose columns `on` have the values of another one's.

    Raises `InvalidInput` without a column or for one that does not exist, and `UnsupportedFeature` for a column of
    nested values or half floats.
    """
    if num_examples < 0:
        raise InvalidInput(f"the number of examples must not be negative: {num_examples}")
    groups = _grouped(snapshot, on, predicate, runner, num_examples, None, sizes)
    examples = sorted((each for part in groups for each in part.found.examples), key=lambda each: -each.num_rows)
    return Duplicates(
        sum(part.found.num_keys for part in groups),
        sum(part.found.num_rows for part in groups),
        tuple(examples[:num_examples]),
    )


def delete_duplicates(
    snapshot: Snapshot,
    on: Sequence[str],
    keep: Keep,
    runner: Runner,
    properties: Mapping[str, str] | None = None,
    sizes: by_tasks.TaskSizes | None = None,
) -> tuple[Snapshot, int]:
    """Delete all rows of each key but one; return the snapshot and the number of deleted rows.

    Nothing is committed if no key has several rows. Raises as `find_duplicates`, and `RetryableConflict` as `delete`.
    """
    parts = _grouped(snapshot, on, None, runner, 0, keep, sizes)
    offsets = join_bitmaps(part.surplus for part in parts)
    if not offsets:
        return snapshot, 0
    deletions = write_deletion_files(snapshot, offsets, runner)
    predicate = f"duplicates of ({', '.join(on)}), without the {keep.value}"
    operation = Delete(deletions.updated_fragments, deletions.removed_fragment_ids, predicate)
    named = {**(properties or {}), _EXCLUSIVE: ""}  # another deletion may keep another row of the same key
    committed = commit_operation(snapshot, operation, properties=named, pending=deletions.pending)
    return committed, sum(len(rows) for rows in offsets.values())


def _grouped(
    snapshot: Snapshot,
    on: Sequence[str],
    predicate: Predicate | None,
    runner: Runner,
    num_examples: int,
    keep: Keep | None,
    sizes: by_tasks.TaskSizes | None,
) -> list[_Groups]:
    keys, sizes = _bound(snapshot, on), sizes or by_tasks.TaskSizes()
    most_buckets = -(-snapshot.manifest.fragments.totals().physical_rows // sizes.rows_per_bucket)
    shares = share_rows(snapshot, predicate, message_bytes=most_buckets * by_tasks.BYTES_OF_END)
    if not shares:
        return []
    num_buckets = _num_buckets(snapshot, keys, shares, sizes)
    reference = SnapshotReference.of(snapshot)
    group = _GroupKeys(reference, keys, num_examples, keep)
    job = Job.on("compare keys of", snapshot.uri, snapshot.version)
    reads = Job.on("read keys of", snapshot.uri, snapshot.version).in_bytes(share.size_bytes for share in shares)
    if num_buckets == 1:
        return runner.map(group, [tuple(shares)], job)
    folder = by_tasks.new_folder()
    try:
        shuffle = _ShuffleKeys(reference, keys, folder, num_buckets)
        written = runner.map(shuffle, shares, reads)
        files = [file for outcome in written for file in outcome]
        return runner.map(group, [by_tasks.segments_of(files, bucket) for bucket in range(num_buckets)], job)
    finally:
        snapshot.store.child(folder).clear_or_leave()


def _bound(snapshot: Snapshot, on: Sequence[str]) -> tuple[Column, ...]:
    if not on:
        raise InvalidInput("name the columns of the key")
    schema = snapshot.schema.to_arrow_storage()
    keys = tuple(merge_insert.key_column(schema, path) for path in dict.fromkeys(on))
    SourceKeys([pa.array([], key.type) for key in keys], [key.name for key in keys])  # refuses types without equality
    return keys


def _num_buckets(
    snapshot: Snapshot, keys: Sequence[Column], shares: Sequence[TaskShare], sizes: by_tasks.TaskSizes
) -> int:
    fragments = [snapshot.fragments_by_id[each] for each in {key for share in shares for key in share.fragment_ids}]
    num_rows = sum(fragment.physical_rows for fragment in fragments)
    num_bytes = sum(projected_sizes(snapshot, fragments, snapshot.schema.project(k.name for k in keys)).values())
    return max(1, -(-num_rows // sizes.rows_per_bucket), -(-num_bytes // sizes.bytes_per_bucket))


@dataclass(frozen=True)
class _ShuffleKeys:
    """Writes the keys of a share; each file has one segment for each bucket. A key with a null is left out."""

    snapshot: SnapshotReference
    keys: tuple[Column, ...]
    folder: str
    num_buckets: int

    def __call__(self, share: TaskShare) -> tuple[by_tasks.SegmentFile, ...]:
        snapshot = self.snapshot.open()
        held = by_tasks.KeyBuckets(snapshot.store, self.folder, self.num_buckets)
        for table in _keys_of(snapshot, self.keys, share):
            hashes, has_null = key_hashes([column.combine_chunks() for column in table.columns[:-1]])
            present = np.flatnonzero(~has_null)
            held.add(rows_at(table, present), hashes[present])
        return held.finish()


@dataclass(frozen=True)
class _GroupKeys:
    """Compares the keys of one bucket."""

    snapshot: SnapshotReference
    keys: tuple[Column, ...]
    num_examples: int
    keep: Keep | None

    def __call__(self, source: _Source) -> _Groups:
        snapshot = self.snapshot.open()
        parts = [table for table in _tables(snapshot, self.keys, source) if table.num_rows]
        if not parts:
            return _Groups(Duplicates(0, 0, ()), {})
        table = pa.concat_tables(parts)
        columns = [column.combine_chunks() for column in table.columns[:-1]]
        codes = SourceKeys(columns, [key.name for key in self.keys]).codes
        counts = np.bincount(codes[codes != NO_CODE])
        is_repeated = np.zeros(len(codes), np.bool_)
        is_repeated[codes != NO_CODE] = counts[codes[codes != NO_CODE]] > 1
        rows = np.flatnonzero(is_repeated)
        _, firsts, num_rows = np.unique(codes[rows], return_index=True, return_counts=True)
        shown = np.argsort(-num_rows, kind="stable")[: self.num_examples]
        values = rows_at(table.select(range(len(columns))), rows[firsts[shown]])
        examples = (
            DuplicateKey(tuple(each.as_py() for each in key), int(count))
            for *key, count in zip(*values.columns, num_rows[shown].tolist(), strict=True)
        )
        found = Duplicates(len(firsts), len(rows), tuple(examples))
        if self.keep is None or not len(rows):
            return _Groups(found, {})
        addresses = numbers_of(table.column(by_tasks.ADDRESS))[rows]
        return _Groups(found, _surplus(snapshot, codes[rows], addresses, self.keep))


def _tables(snapshot: Snapshot, keys: Sequence[Column], source: _Source) -> Iterator[pa.Table]:
    shares = [each for each in source if isinstance(each, TaskShare)]
    for share in shares:
        yield from _keys_of(snapshot, keys, share)
    for data in by_tasks.read_segments(snapshot, [each for each in source if not isinstance(each, TaskShare)]):
        yield by_tasks.decode_table(data)


def _keys_of(snapshot: Snapshot, keys: Sequence[Column], share: TaskShare) -> Iterator[pa.Table]:
    """Yield the key columns of a share's rows, and their addresses behind them."""
    schema = snapshot.schema.project(key.name for key in keys)
    for rows in scan_rows(snapshot, share.request(snapshot, schema)):
        columns = merge_insert.key_columns(rows.table, keys)
        addresses = array_of_numbers(rows.addresses(np.arange(len(rows))))
        yield pa.Table.from_arrays([*columns, addresses], names=[*map(str, range(len(keys))), by_tasks.ADDRESS])


def _surplus(snapshot: Snapshot, codes: np.ndarray, addresses: Uint64Array, keep: Keep) -> dict[int, bytes]:
    """Return the offsets of all rows of each code but the one to keep, by fragment, as serialized bitmaps."""
    fragments, places = fragment_of(addresses), np.empty(len(addresses), np.int64)
    place_of = {fragment_id: place for place, fragment_id in enumerate(snapshot.fragments_by_id)}
    ids, inverse = np.unique(fragments, return_inverse=True)
    places[:] = np.array([place_of[each] for each in ids.tolist()], np.int64)[inverse]
    order = np.lexsort((offset_of(addresses), places, codes))
    ordered = codes[order]
    differs = ordered[1:] != ordered[:-1]
    is_kept = np.concatenate(([True], differs) if keep is Keep.FIRST else (differs, [True]))
    surplus = addresses[order[~is_kept]]
    of_fragment = fragment_of(surplus)
    return {
        int(each): bitmap_of(offset_of(surplus[of_fragment == each])).serialize() for each in np.unique(of_fragment)
    }
