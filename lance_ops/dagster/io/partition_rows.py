"""Find the rows of an asset's partitions by the columns that hold the partition keys.

The metadata `partition_column` names the column; with several dimensions, it maps each dimension to its column:
`{"day": "at", "city": "city"}`. A key of a time window stands for the moments of the window, if the column holds dates
or timestamps. Any other key is a value of the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from math import prod
from operator import and_, or_
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass

__all__ = ["PARTITION_COLUMN", "PartitionRows"]

PARTITION_COLUMN = "partition_column"
_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class PartitionRows:
    """The rows of some partitions of an asset. `column` is the asset's metadata `partition_column`."""

    asset_key: dg.AssetKey
    definition: dg.PartitionsDefinition
    keys: tuple[str, ...]
    column: Any

    def columns(self, schema: pa.Schema) -> dict[str, str]:
        """Return the column of each dimension; raise `InvalidInput` for a column that is not named or not there."""
        several = isinstance(self.definition, dg.MultiPartitionsDefinition)
        named = self.column if several and isinstance(self.column, Mapping) else {"": self.column}
        wanted = list(self._dimensions()) if several else [""]
        for dimension in wanted:
            column = named.get(dimension)
            if column not in schema.names:
                raise InvalidInput(self._wrong(dimension, column))
        return {dimension: str(named[dimension]) for dimension in wanted}

    def condition(self, schema: pa.Schema) -> pc.Expression:
        """Return the condition that the partitions' rows match, in the types of the stored `schema`.

        Raises `InvalidInput` naming the asset, and the column if its values cannot be partition keys.
        """
        columns = self.columns(schema)
        if not isinstance(self.definition, dg.MultiPartitionsDefinition):
            return self._in_dimension(self.definition, self.keys, schema.field(columns[""]))
        definitions = self._dimensions()
        keys = [self.definition.get_partition_key_from_str(key).keys_by_dimension for key in self.keys]

        def match(chosen: Mapping[str, Iterable[str]]) -> pc.Expression:
            parts = (
                self._in_dimension(definitions[name], values, schema.field(columns[name]))
                for name, values in chosen.items()
            )
            return reduce(and_, parts)

        found = {name: list(dict.fromkeys(key[name] for key in keys)) for name in definitions}
        if len(keys) == prod(map(len, found.values())):  # every combination: one condition for each dimension
            return match(found)
        return reduce(or_, (match({name: [value] for name, value in key.items()}) for key in keys))

    def _dimensions(self) -> dict[str, dg.PartitionsDefinition]:
        assert isinstance(self.definition, dg.MultiPartitionsDefinition)
        return {each.name: each.partitions_def for each in self.definition.partitions_defs}

    def _in_dimension(self, definition: dg.PartitionsDefinition, keys: Iterable[str], field: pa.Field) -> pc.Expression:
        if isinstance(definition, dg.TimeWindowPartitionsDefinition) and pt.is_temporal(field.type):
            windows = _joined(definition.time_window_for_partition_key(key) for key in keys)
            return reduce(or_, (self._in_window(definition, window, field) for window in windows))
        try:
            values = pa.array(list(keys)).cast(field.type)
        except pa.ArrowException as error:
            raise InvalidInput(
                f"{self._name}: column {field.name!r} is {field.type}, which does not hold its partition keys: {error}"
            ) from error
        return pc.field(field.name).isin(values)

    def _in_window(
        self, definition: dg.TimeWindowPartitionsDefinition, window: dg.TimeWindow, field: pa.Field
    ) -> pc.Expression:
        """Return the condition for start <= column < end. A timestamp without a zone is in that of the partitions."""
        start, end = window.start, window.end
        if pt.is_date(field.type):
            if any(moment.time() != moment.min.time() for moment in (start, end)):
                raise InvalidInput(
                    f"{self._name}: column {field.name!r} holds dates, and its partitions begin within a day: name a "
                    "column of timestamps"
                )
            ends = [pa.scalar(moment.date(), field.type) for moment in (start, end)]
        elif pt.is_timestamp(field.type):
            zoned = field.type.tz is not None
            if not zoned and not all(_divides_local_times(definition, moment) for moment in (start, end)):
                raise InvalidInput(
                    f"{self._name}: clocks are set back, so the local time {start} or {end} occurs twice, and column "
                    f"{field.name!r} has no zone, which would tell the two: name a column with a zone, or take all "
                    "partitions of both hours in one run"
                )
            ends = [pa.scalar(moment if zoned else moment.replace(tzinfo=None), field.type) for moment in (start, end)]
        else:
            raise InvalidInput(
                f"{self._name}: column {field.name!r} is {field.type}; a time window needs dates or timestamps"
            )
        column = pc.field(field.name)
        return (column >= ends[0]) & (column < ends[1])

    @property
    def _name(self) -> str:
        return f"asset {'/'.join(self.asset_key.path)}"

    def _wrong(self, dimension: str, column: Any) -> str:
        of = f"of dimension {dimension!r}" if dimension else "of its partition keys"
        wrong = "name the column" if column is None else f"it has no column {column!r}: name the one"
        example = f'{PARTITION_COLUMN}={{"{dimension}": "..."}}' if dimension else f'{PARTITION_COLUMN}="..."'
        return f"{self._name} is partitioned: {wrong} {of} in its metadata, {example}"


def _divides_local_times(definition: dg.TimeWindowPartitionsDefinition, boundary: datetime) -> bool:
    """Return whether local times tell the rows before a boundary of partitions from those after it.

    Clocks that are set back repeat an hour. A daily partition may begin within it: both occurrences of a local time
    are then on the same side, the one that the local time says. Where another partition begins within an hour, the
    rows of an occurrence may be all that a partition has, so local times do not tell the two apart.
    """
    just_before = boundary - timedelta(microseconds=1)
    if (
        boundary.replace(fold=0).timestamp() == boundary.timestamp()
        and just_before.replace(fold=1).timestamp() < boundary.timestamp()
    ):
        return True  # local times before the boundary are all less than its own, and later ones are not
    first, second = (boundary.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    keys = definition.get_partition_keys_in_time_window(dg.TimeWindow(first - _HOUR, second + _HOUR))
    begins = {definition.time_window_for_partition_key(key).start.timestamp() for key in keys}
    return begins <= {boundary.timestamp()}


def _joined(windows: Iterable[dg.TimeWindow]) -> list[dg.TimeWindow]:
    """Join windows that follow each other, so that a range of partitions is one comparison."""
    joined: list[dg.TimeWindow] = []
    for window in sorted(windows, key=lambda each: each.start.timestamp()):
        # Local times of one zone that are equal may be an hour apart, so the timestamps are compared.
        if joined and joined[-1].end.timestamp() == window.start.timestamp():
            joined[-1] = dg.TimeWindow(joined[-1].start, window.end)
        else:
            joined.append(window)
    return joined
