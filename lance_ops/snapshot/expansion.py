"""Limit the rows and bytes that a version makes the caller read, by the size of its data files.

A few bytes of a manifest, or a page of one value, can stand for any number of rows. A scan yields such rows in bounded
batches, for as long as the caller asks for more. What the library holds whole, or reads to its end before it answers,
is limited:

    rows to read to the end    `FREE_ROWS`, or `ROWS_PER_BYTE` for each byte of the fragments' data files
    rows to sort               `FREE_SORTED_ROWS`, or `ROWS_PER_BYTE` for each byte of the data files
    bytes to hold at once      `FREE_BYTES`, or `MAX_RATIO` for each byte of the data files
    bytes to sort              `FREE_SORTED_BYTES`, or `MAX_RATIO` for each byte of the data files

Tables of ordinary writers stay far below. A caller who trusts a table lifts all limits with the storage option
`allow_expansion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.committers import ALLOW_EXPANSION_OPTION, allows_expansion
from lance_ops.core.errors import CorruptFile, ObjectNotFound, ReadTooLarge
from lance_ops.file import MAX_RATIO
from lance_ops.snapshot.snapshot import Snapshot
from lance_ops.table import DataFile, Fragment

__all__ = [
    "FREE_BYTES",
    "FREE_ROWS",
    "FREE_SORTED_BYTES",
    "FREE_SORTED_ROWS",
    "ROWS_PER_BYTE",
    "check_rows_are_stored",
    "limit_held_bytes",
]

FREE_ROWS = 1 << 27
"""The rows that may be read to the end, however few bytes hold them: that takes some seconds and little memory."""

FREE_SORTED_ROWS = 1 << 22
"""As `FREE_ROWS`, if the rows are sorted for an index: each takes memory, disk and time even if its value is null."""

ROWS_PER_BYTE = 1024
"""Beyond `FREE_ROWS`, the rows for each byte of data files. A bit-packed constant column has about 85."""


FREE_BYTES = 128 << 20
"""The bytes of an answer that the caller may hold at once, however few bytes they were read from."""


FREE_SORTED_BYTES = 64 << 20
"""As `FREE_BYTES`, if the rows are sorted, which takes several times their memory."""


def check_rows_are_stored(
    snapshot: Snapshot, num_rows: int, fragments: Iterable[Fragment], free_rows: int | None = None
) -> None:
    """Raise `ReadTooLarge` if the data files of `fragments` are too small for `num_rows` rows to be read to the end.

    The sizes in a manifest may be false, so the store is asked for sizes of files, largest first, until they suffice.
    Raises `CorruptFile` for a missing file and for a false size.
    """
    if num_rows <= (FREE_ROWS if free_rows is None else free_rows) or allows_expansion(snapshot.storage_options):
        return
    missing = -(-num_rows // ROWS_PER_BYTE)
    by_size = sorted(_distinct_files(fragments), key=lambda file: file.file_size_bytes, reverse=True)
    if sum(file.file_size_bytes for file in by_size) >= missing or any(not file.file_size_bytes for file in by_size):
        for file in by_size:
            missing -= _actual_size(snapshot, file)
            if missing <= 0:
                return
    raise ReadTooLarge(f"reading {num_rows} rows to the end from data files of so few bytes ({_ADVICE})", snapshot.uri)


def limit_held_bytes(
    snapshot: Snapshot, found: Iterable[pa.Table], fragments: Iterable[Fragment], free_bytes: int | None = None
) -> Iterator[pa.Table]:
    """Yield tables that were read from these fragments, and limit their bytes: the caller holds all of them at once.

    All tables have one schema. If no value has a variable width, their bytes are computed from the number of rows,
    because `nbytes` takes some ten microseconds a column; values then count as if every column had nulls. Raises
    `ReadTooLarge` after it has yielded the table that makes them too large for the fragments' data files.
    """
    if allows_expansion(snapshot.storage_options):
        yield from found
        return
    files = _distinct_files(fragments)
    free = FREE_BYTES if free_bytes is None else free_bytes
    row_bits: float | None = None
    num_bytes, stored = 0, 0
    for table in found:
        yield table
        if row_bits is None:
            row_bits = sum(map(_value_bits, table.schema.types))
        num_bytes += table.nbytes if row_bits == inf else int(table.num_rows * row_bits) // 8
        while num_bytes > max(free, MAX_RATIO * stored):
            file = next(files, None)
            if file is None:
                what = f"holding up to {num_bytes} bytes at once, from data files of {stored} bytes"
                raise ReadTooLarge(f"{what} (read the rows in batches; {_ADVICE})", snapshot.uri)
            stored += _actual_size(snapshot, file)


_ADVICE = f'if you trust the table, open it with storage_options={{"{ALLOW_EXPANSION_OPTION}": "true"}}'


def _value_bits(arrow_type: pa.DataType) -> float:
    """Return the most bits that a value of a type takes, with its validity; infinity if its width varies.

    An empty fixed-size list counts as one value: no type is free, since a few bytes can stand for any number of rows.
    """
    if pt.is_struct(arrow_type):
        return 1 + sum(_value_bits(field.type) for field in arrow_type)
    if pt.is_fixed_size_list(arrow_type):
        return 1 + max(int(arrow_type.list_size), 1) * _value_bits(arrow_type.value_type)
    return 1 + int(arrow_type.bit_width) if pt.is_primitive(arrow_type) else inf


def _distinct_files(fragments: Iterable[Fragment]) -> Iterator[DataFile]:
    """Yield the fragments' data files, each once. A fragment may cost decoding, so it is taken when it is needed."""
    seen: set[tuple[int | None, str]] = set()
    for file in (file for fragment in fragments for file in fragment.files):
        if file.place not in seen:
            seen.add(file.place)
            yield file


def _actual_size(snapshot: Snapshot, file: DataFile) -> int:
    location = snapshot.file_locations.data_file(file.base_id, file.path)
    try:
        actual = location.store.size(location.path)
    except ObjectNotFound as error:
        raise CorruptFile(location.uri, "file", "the manifest names this file, but it does not exist") from error
    if file.file_size_bytes not in (0, actual):
        raise CorruptFile(location.uri, "size", f"{actual} bytes, but the manifest says {file.file_size_bytes}")
    return actual
