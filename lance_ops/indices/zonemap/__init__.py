"""The zone map: the least and the greatest value of each few thousand rows, so that a scan skips most of them.

`layout` describes its file. A search gives rows that may match, so the reader tests them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from google.protobuf.message import DecodeError
from pyroaring import BitMap, FrozenBitMap

from lance_ops.core.errors import CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field
from lance_ops.indices.contract import LoadedIndex, RowKey, TrainingBatches
from lance_ops.indices.distributed import DistributedIndexType, PartialIndex
from lance_ops.indices.sort_keys import is_sortable
from lance_ops.indices.zonemap.index import ZoneMapIndex, ZoneMapQuery, summarize
from lance_ops.indices.zonemap.layout import DEFAULT_ROWS_PER_ZONE, write_zones
from lance_ops.indices.zonemap.partials import joined_table_of, kept_zones, remapped_zones, to_partial
from lance_ops.indices.zonemap.zone_matches import can_rule_out
from lance_ops.pb import index_details_pb2
from lance_ops.store import Store
from lance_ops.table import IndexDetails, IndexFile, IndexMetadata
from lance_ops.table.rows import RowAddressMap

__all__ = ["ZoneMap", "ZoneMapIndex", "ZoneMapQuery"]


@dataclass(frozen=True)
class ZoneMap(DistributedIndexType[ZoneMapQuery]):
    """A zone has `rows_per_zone` live rows of one fragment, the last zone of a fragment fewer."""

    name: ClassVar[str] = "ZONEMAP"
    details_url: ClassVar[str] = "/lance.table.ZoneMapIndexDetails"
    newest_index_version: ClassVar[int] = 0
    names_rows: ClassVar[bool] = False

    rows_per_zone: int = DEFAULT_ROWS_PER_ZONE

    def __post_init__(self) -> None:
        rows = self.rows_per_zone
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows < 1 << 32:
            raise InvalidInput(f"rows_per_zone is a whole number from 1 to {(1 << 32) - 1}, not {rows!r}")

    @property
    def details(self) -> IndexDetails:
        message = index_details_pb2.ZoneMapIndexDetails(
            rows_per_zone=self.rows_per_zone, use_seeds=False, has_null_bitmap=True
        )
        return IndexDetails(self.details_url, message.SerializeToString(deterministic=True))

    @property
    def parameters(self) -> tuple[tuple[str, Any], ...]:
        return (("rows_per_zone", self.rows_per_zone),)

    def with_parameters(self, parameters: Mapping[str, Any]) -> ZoneMap:
        unknown = sorted(parameters.keys() - {"rows_per_zone"})
        if unknown:
            raise InvalidInput(f"a {self.name} index has no parameter {unknown[0]!r}: it has rows_per_zone")
        return replace(self, **parameters)

    def with_details(self, details: IndexDetails, name: str) -> ZoneMap:
        try:
            message = index_details_pb2.ZoneMapIndexDetails.FromString(details.value)
        except DecodeError as error:
            raise CorruptFile(f"index {name!r}", "details", str(error)) from error
        return ZoneMap(message.rows_per_zone) if message.rows_per_zone else self

    def index_version(self, *, stable_row_ids: bool) -> int:
        return 0

    def row_key(self, index_version: int, *, stable_row_ids: bool) -> RowKey:
        return RowKey.ADDRESS

    def check(self, field: Field) -> None:
        if not is_sortable(field.arrow_type):
            raise UnsupportedFeature(
                f"a {self.name} index on values of type {field.arrow_type}", f"column {field.name!r}"
            )

    def serves(self, conjunct: Predicate) -> ZoneMapQuery | None:
        return ZoneMapQuery(conjunct) if can_rule_out(conjunct) else None

    def train(self, rows: TrainingBatches, field: Field, store: Store) -> tuple[IndexFile, ...]:
        self.check(field)
        return write_zones(summarize(rows, field.arrow_type, self.rows_per_zone, field.name), store)

    def train_partial(self, rows: TrainingBatches, field: Field, scratch: Store) -> PartialIndex:
        return to_partial(summarize(rows, field.arrow_type, self.rows_per_zone, field.name))

    def num_entries(self, segment: LoadedIndex[ZoneMapQuery]) -> int:
        return int(_zone_map(segment).zones.rows.num_rows)

    def copy_partial(
        self,
        segment: LoadedIndex[ZoneMapQuery],
        start: int,
        stop: int,
        scratch: Store,
        *,
        fragments: BitMap | FrozenBitMap | None = None,
        moves: RowAddressMap | None = None,
    ) -> PartialIndex:
        zones = _zone_map(segment).zones
        if moves is None:
            return to_partial(kept_zones(zones, start, stop, fragments))
        return to_partial(remapped_zones(kept_zones(zones, start, stop, segment.fragments), moves))

    def assemble(
        self, partials: Sequence[PartialIndex], field: Field, scratch: Store, store: Store
    ) -> tuple[IndexFile, ...]:
        return write_zones(joined_table_of(partials, field.arrow_type, self.rows_per_zone), store)

    def _load(self, store: Store, metadata: IndexMetadata) -> ZoneMapIndex:
        return ZoneMapIndex(store, metadata)


def _zone_map(segment: LoadedIndex[ZoneMapQuery]) -> ZoneMapIndex:
    if not isinstance(segment, ZoneMapIndex):
        raise InvalidInput(f"index {segment.metadata.name!r} is not a zone map")
    return segment
