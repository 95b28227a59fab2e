"""Make an old version the newest one again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Annotated, ClassVar

import pyarrow as pa
import pyarrow.types as pt
from pyroaring import BitMap

from lance_ops import changing
from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.indices import RowAddressSet
from lance_ops.reading import ScanRequest, scan
from lance_ops.refs import branch_of, erasure_before, reference_store
from lance_ops.snapshot import Snapshot, history
from lance_ops.verbs.chosen_version import chosen_version
from lance_ops.verbs.contract import (
    REASON_PROPERTY,
    Execution,
    Measures,
    Preview,
    Section,
    Verb,
    VerbResult,
    WhenMoved,
    required_reason_properties,
)
from lance_ops.verbs.options import Option
from lance_ops.verbs.rows.ingestion_page import column_changes
from lance_ops.verbs.rows.sample_rows import SAMPLE_ROWS, sample_section

__all__ = ["Restore"]

_MOST_COMPARED = 100_000
"""Rows that a preview compares by value. It reads them all, because compactions and updates move rows."""
_BATCH_ROWS = 1000
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Restore(Verb):
    """Which version to restore, by number or by tag, and why."""

    name: ClassVar[str] = "restore"
    summary: ClassVar[str] = "Make an old version the newest again."
    command: ClassVar[str] = "restore"
    when_moved: ClassVar[WhenMoved] = WhenMoved.REFUSED

    version: Annotated[int | None, Option("The version to restore.", at_least=1)] = None
    tag: Annotated[str | None, Option("Instead: the tag of the version to restore.")] = None
    reason: Annotated[str, Option("Required. Why it comes back; the new version's transaction states it.")] = ""

    def preview(self, work: Execution) -> Preview:
        """List the versions that would be undone, and show rows that would go and rows that would return."""
        data = work.data
        required_reason_properties(self.reason, "why the version comes back")
        chosen = self._chosen(data)
        restored = LanceDataset.of(data.snapshot.at(chosen))
        undone, warnings = [], []
        num_undone = data.version - chosen
        for committed in history(data.snapshot):
            if committed.version <= chosen:
                break
            operation = committed.transaction.operation if committed.transaction else None
            what = type(operation).__name__ if operation else "unknown"
            reason = committed.transaction_properties.get(REASON_PROPERTY, "")
            undone.append((str(committed.version), what, reason))
            if what == "Delete":
                warnings.append(f"The rows that version {committed.version} deleted would return. {reason}".strip())
        if len(undone) < num_undone:
            warnings.append(
                f"{num_undone - len(undone)} of these versions are cleaned up, so their changes are not listed."
            )
        record = erasure_before(reference_store(restored.snapshot), branch_of(restored.snapshot), chosen)
        if record is not None:
            warnings.append(f"It would be refused: the version may hold rows that erasure {record['id']} removed.")
        going = _RowsElsewhere.of(data.snapshot, restored.snapshot)
        returning = _RowsElsewhere.of(restored.snapshot, data.snapshot)
        samples: list[Section] = []
        counts: dict[str, int] = {}
        if going and returning and len(going) + len(returning) > _MOST_COMPARED:
            warnings.append(
                f"{len(going):,} rows of this version and {len(returning):,} of the restored one are in files of their "
                "own. They are too many to compare here, so no row is shown."
            )
        else:
            gone, returned = _differing(going, returning)
            counts = {"going_rows": gone.count, "returning_rows": returned.count}
            samples += gone.sections("Rows that would go") + returned.sections("Rows that would return")
        changes = tuple(line for line in column_changes(data.snapshot.schema, restored.snapshot.schema) if line[2])
        return Preview(
            f"restore version {chosen}, which undoes {num_undone} versions",
            Measures.of(data),
            Measures.of(restored),
            sections=(
                *samples,
                *([Section("Columns that would change", ("column", "type", "change"), changes)] if changes else []),
                Section("Versions that would be undone", ("version", "operation", "reason"), tuple(undone)),
            ),
            warnings=tuple(warnings),
            facts={"restored_version": chosen, **counts},
        )

    def execute(self, work: Execution) -> VerbResult:
        """Commit the old version's content as the newest version."""
        properties = required_reason_properties(self.reason, "why the version comes back")
        chosen = self._chosen(work.data)
        return VerbResult({"restored_version": chosen}, changing.restore(work.data.snapshot.at(chosen), properties))

    def _chosen(self, data: LanceDataset) -> int:
        chosen = chosen_version(data, self.version, self.tag)
        if chosen is None:
            raise InvalidInput("give either a version or a tag to restore")
        return chosen


@dataclass(frozen=True)
class _RowsElsewhere:
    """The live rows of a version that another version has not at the same address, of the columns of both."""

    version: Snapshot
    addresses: RowAddressSet
    columns: tuple[str, ...]

    @classmethod
    def of(cls, version: Snapshot, other: Snapshot) -> _RowsElsewhere:
        theirs = other.fragments_by_id
        found: dict[int, BitMap] = {}
        for fragment in version.fragments:
            deleted, same = version.deletion_vector(fragment), theirs.get(fragment.id)
            if same is not None and same.files == fragment.files:
                found[fragment.id] = other.deletion_vector(same) - deleted
            else:
                found[fragment.id] = BitMap(range(fragment.physical_rows)) - deleted
        columns = [field.name for field in version.schema.fields if not (field.holds_blobs_v2 or field.is_blob_v1)]
        both = tuple(name for name in columns if name in other.schema.names)
        return cls(version, RowAddressSet.from_bitmaps(found), both)

    def __len__(self) -> int:
        return sum(map(len, self.addresses.bitmaps.values()))

    def blocks(self, limit: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows, or the first ones, always in the same order."""
        if self:
            schema = self.version.schema.project(self.columns)
            yield from scan(self.version, ScanRequest(schema, rows=self.addresses, limit=limit))

    def digests(self) -> list[bytes]:
        """Return what distinguishes the values of each row; rows of wide columns do not stay in memory."""
        return [
            blake2b(repr(sorted(row.items())).encode(), digest_size=_DIGEST_BYTES).digest()
            for block in self.blocks()
            for batch in block.to_batches(max_chunksize=_BATCH_ROWS)
            for row in batch.to_pylist()
        ]

    def sample(self, places: Sequence[int]) -> list[pa.Table]:
        """Return the rows at these places, which ascend, in the order of `blocks`."""
        found, begin = [], 0
        for block in self.blocks(places[-1] + 1 if places else 0):
            inside = [place - begin for place in places if begin <= place < begin + block.num_rows]
            found.append(block.take(pa.array(inside, pa.int64())))
            begin += block.num_rows
        return found


@dataclass(frozen=True)
class _Difference:
    """How many rows only one of two versions has, and the first of them."""

    count: int
    first: Sequence[pa.Table]

    def sections(self, title: str) -> list[Section]:
        if not self.count:
            return []
        rows = pa.concat_tables(self.first)
        short = [
            field.name for field in rows.schema if not (pt.is_nested(field.type) or pt.is_large_binary(field.type))
        ]
        return [sample_section(title, rows.select(short))]


def _differing(left: _RowsElsewhere, right: _RowsElsewhere) -> tuple[_Difference, _Difference]:
    """Return the rows that only the left, and that only the right one has; rows with the same values are the same."""
    if not left or not right:
        first, second = ([*each.blocks(SAMPLE_ROWS)] for each in (left, right))
        return _Difference(len(left), first), _Difference(len(right), second)
    ours, theirs = left.digests(), right.digests()
    return _beyond(left, ours, theirs), _beyond(right, theirs, ours)


def _beyond(rows: _RowsElsewhere, digests: Iterable[bytes], others: Iterable[bytes]) -> _Difference:
    """Return the rows that are left when each of the others has taken one with its digest."""
    left, places = Counter(others), []
    for place, digest in enumerate(digests):
        if left[digest]:
            left[digest] -= 1
        else:
            places.append(place)
    return _Difference(len(places), rows.sample(places[:SAMPLE_ROWS]))
