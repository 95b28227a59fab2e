"""Find the rows that only one of two versions of a table has.

Rows at the same address of the same files are the same, if no column took the name of another one. Compactions and
updates move rows, so all other rows are compared by the digest of their values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b

import pyarrow as pa
import pyarrow.types as pt
from pyroaring import BitMap

from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.file import row_bytes
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ScanRequest, scan
from lance_ops.snapshot import Snapshot
from lance_ops.verbs.contract import Section
from lance_ops.verbs.sections import SAMPLE_ROWS, sample_section

__all__ = ["RowDifference", "UnsharedRows", "compare"]

_BATCH_ROWS = 1000
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class UnsharedRows:
    """Live rows of `version` that have no live row of the other version at the same address of the same files.

    If a column of `version` has the name of another column of the other version, these are all live rows. They are
    compared by `columns`: those that both versions have, with the same type. Blobs are not compared, nor are columns
    whose type differs; `not_compared` names these.
    """

    version: Snapshot
    addresses: RowAddressSet
    columns: tuple[str, ...]
    not_compared: tuple[str, ...]

    @classmethod
    def of(cls, version: Snapshot, other: Snapshot) -> UnsharedRows:
        """Return the rows of `version` that `other` has not at the same address. No data file is read."""
        others = {field.name: field for field in other.schema.fields}
        common = [field for field in version.schema.fields if field.name in others]
        same_columns = all(_ids(field) == _ids(others[field.name]) for field in common)
        theirs = other.fragments_by_id
        found: dict[int, BitMap] = {}
        for fragment in version.fragments:
            deleted, same = version.deletion_vector(fragment), theirs.get(fragment.id)
            if same_columns and same is not None and same.files == fragment.files:
                found[fragment.id] = other.deletion_vector(same) - deleted
            else:
                found[fragment.id] = BitMap(range(fragment.physical_rows)) - deleted
        columns = [
            field.name for field in common if not _is_blob(field) and field.arrow_type == others[field.name].arrow_type
        ]
        not_compared = tuple(field.name for field in common if field.name not in columns)
        return cls(version, RowAddressSet.from_bitmaps(found), tuple(columns), not_compared)

    def __len__(self) -> int:
        return sum(map(len, self.addresses.bitmaps.values()))

    @property
    def num_bytes(self) -> int:
        """About the bytes of the rows: of their share of the data files, or of the values if these take more."""
        fragments = self.version.fragments_by_id
        stored = 0
        for key, rows in self.addresses.bitmaps.items():
            file_bytes = sum(file.file_size_bytes for file in fragments[key].files)
            stored += file_bytes * len(rows) // max(fragments[key].physical_rows, 1)
        types = (field.arrow_type for field in self.version.schema.fields if field.name in self.columns)
        return max(stored, len(self) * sum(map(row_bytes, types)))

    def blocks(self, limit: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows, or the first ones, always in the same order, of `columns`; of all columns if it is empty."""
        if self:
            fields = self.version.schema.fields
            columns = self.columns or tuple(field.name for field in fields if not _is_blob(field))
            if columns:
                schema = self.version.schema.project(columns)
                yield from scan(self.version, ScanRequest(schema, rows=self.addresses, limit=limit))

    def digests(self) -> Iterator[bytes]:
        """Yield a digest of each row's values."""
        for block in self.blocks():
            for batch in block.to_batches(max_chunksize=_BATCH_ROWS):
                lists = [_exact(batch[name]).to_pylist() for name in sorted(self.columns)]
                for values in zip(*lists, strict=True):
                    yield blake2b(repr(values).encode(), digest_size=_DIGEST_BYTES).digest()

    def sample(self, places: Sequence[int]) -> list[pa.Table]:
        """Return the rows at these places, which ascend, in the order of `blocks`."""
        found, begin = [], 0
        for block in self.blocks(places[-1] + 1 if places else 0):
            inside = [place - begin for place in places if begin <= place < begin + block.num_rows]
            found.append(block.take(pa.array(inside, pa.int64())))
            begin += block.num_rows
        return found


@dataclass(frozen=True)
class RowDifference:
    """How many rows only one of two versions has, and the first of them."""

    count: int
    first: Sequence[pa.Table]

    def sections(self, title: str) -> list[Section]:
        """Return a section of the first rows, with the columns whose values are short; none without rows."""
        if not self.first:
            return []
        rows = pa.concat_tables(self.first)
        short = [
            field.name for field in rows.schema if not (pt.is_nested(field.type) or pt.is_large_binary(field.type))
        ]
        return [sample_section(title, rows.select(short))]


def compare(left: UnsharedRows, right: UnsharedRows) -> tuple[RowDifference, RowDifference]:
    """Return the rows that only the left, and that only the right one has; rows with the same values are the same.

    All rows differ if they have no columns to compare.
    """
    if not left or not right or not left.columns:
        first, second = ([*each.blocks(SAMPLE_ROWS)] for each in (left, right))
        return RowDifference(len(left), first), RowDifference(len(right), second)
    ours, theirs = [*left.digests()], [*right.digests()]
    return _unmatched(left, ours, theirs), _unmatched(right, theirs, ours)


def _unmatched(rows: UnsharedRows, digests: Iterable[bytes], others: Iterable[bytes]) -> RowDifference:
    """Return the rows without an equal row among the others; equal rows are paired one to one."""
    left, places = Counter(others), []
    for place, digest in enumerate(digests):
        if left[digest]:
            left[digest] -= 1
        else:
            places.append(place)
    return RowDifference(len(places), rows.sample(places[:SAMPLE_ROWS]))


def _ids(field: Field) -> list[int]:
    """Return the ids of a column and of the fields within it; a column that is added again has other ids."""
    return [each.id for each in field.walk()]


def _is_blob(field: Field) -> bool:
    return field.holds_blobs_v2 or field.is_blob_v1


def _exact(values: pa.Array) -> pa.Array:
    """Return values that Python holds exactly: it has neither nanoseconds nor dates after the year 9999."""
    exact = _exact_type(values.type)
    return values if exact == values.type else values.cast(exact)


def _exact_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return a type with integers in place of dates, times and durations, at any depth."""
    if pt.is_struct(arrow_type):
        return pa.struct([_exact_field(field) for field in arrow_type])
    if pt.is_map(arrow_type):
        return pa.map_(_exact_field(arrow_type.key_field), _exact_field(arrow_type.item_field))
    if pt.is_fixed_size_list(arrow_type):
        return pa.list_(_exact_field(arrow_type.value_field), arrow_type.list_size)
    if pt.is_large_list(arrow_type):
        return pa.large_list(_exact_field(arrow_type.value_field))
    if pt.is_list(arrow_type):
        return pa.list_(_exact_field(arrow_type.value_field))
    if pt.is_date32(arrow_type) or pt.is_time32(arrow_type):
        return pa.int32()
    is_long = pt.is_date64(arrow_type) or pt.is_time64(arrow_type)
    return pa.int64() if is_long or pt.is_timestamp(arrow_type) or pt.is_duration(arrow_type) else arrow_type


def _exact_field(field: pa.Field) -> pa.Field:
    return field.with_type(_exact_type(field.type))
