"""Store assets' outputs as Lance datasets: a `pa.Table`, a record batch reader, or a pandas frame.

    <base_uri>/<asset key, joined by />.lance

An output without partitions replaces the dataset's content or is appended, depending on `mode`. A partitioned asset
names the column of its partition keys in the definition metadata `partition_column`. Its output replaces the rows of
its partitions in one commit. Concurrent runs of other partitions do not disturb this. After concurrent runs of one
partition, the table holds the rows of the run that committed last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from lance_ops.api import write_dataset
from lance_ops.api.lance_dataset import LanceDataset, dataset
from lance_ops.changing import replace_rows
from lance_ops.core.errors import DatasetAlreadyExists, DatasetNotFound, InvalidInput
from lance_ops.dagster.declaration import expand, expand_all
from lance_ops.maintenance.cleanup import clean_up_if_due
from lance_ops.runners import InThreads

__all__ = ["PARTITION_COLUMN", "LanceIOManager"]

PARTITION_COLUMN = "partition_column"


class LanceIOManager(dg.ConfigurableIOManager):
    """Stores outputs as Lance datasets beneath one URI. The fields may hold `${NAME}`, which is expanded at use."""

    base_uri: str
    storage_options: dict[str, str] = Field(default_factory=dict, repr=False)
    mode: Literal["overwrite", "append"] = "overwrite"

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Write an output and record its version and number of rows."""
        table = _as_table(obj, context.asset_key)
        if context.has_asset_partitions:
            written = self._replace_partitions(context, table)
        else:
            written = self._write(context.asset_key, table, self.mode)
        context.add_output_metadata(
            {
                "dagster/uri": written.uri,
                "dagster/storage_kind": "lance",
                "dagster/row_count": written.count_rows(),
                "lance/written_rows": table.num_rows,
                "lance/version": written.version,
            }
        )

    def load_input(self, context: dg.InputContext) -> Any:
        """Return an asset, or the requested partitions of it, as the type of the input's annotation."""
        source = self._open(context.asset_key)
        if source is None:
            raise DatasetNotFound(f"{self._uri(context.asset_key)}: asset {context.asset_key} was never stored here")
        if context.dagster_type.typing_type is LanceDataset:
            return source
        condition = None
        if context.has_asset_partitions:
            metadata = context.upstream_output.definition_metadata if context.upstream_output else {}
            column = _partition_column(metadata, source.schema, context.asset_key)
            condition = pc.field(column).isin(_values(context.asset_partition_keys, column, source.schema))
        table = source.to_table(filter=condition)
        wanted = getattr(context.dagster_type.typing_type, "__module__", "")
        return table.to_pandas() if wanted.startswith("pandas") else table

    def _replace_partitions(self, context: dg.OutputContext, table: pa.Table) -> LanceDataset:
        column = _partition_column(context.definition_metadata, table.schema, context.asset_key)
        existing = self._open(context.asset_key)
        if existing is None:
            existing = self._begin(context.asset_key, table.schema)
        values = _values(context.asset_partition_keys, column, existing.schema)
        made = replace_rows(existing.snapshot, column, values, table, InThreads())
        clean_up_if_due(existing.version, made)
        return LanceDataset.of(made)

    def _begin(self, asset_key: dg.AssetKey, schema: pa.Schema) -> LanceDataset:
        """Create the dataset without rows, so that every run replaces rows of a version; another run may be first."""
        try:
            return self._write(asset_key, schema.empty_table(), "create")
        except DatasetAlreadyExists:
            return dataset(self._uri(asset_key), storage_options=self._options())

    def _write(self, asset_key: dg.AssetKey, table: pa.Table, mode: str) -> LanceDataset:
        return write_dataset(table, self._uri(asset_key), mode=mode, storage_options=self._options())

    def _open(self, asset_key: dg.AssetKey) -> LanceDataset | None:
        try:
            return dataset(self._uri(asset_key), storage_options=self._options())
        except DatasetNotFound:
            return None

    def _uri(self, asset_key: dg.AssetKey) -> str:
        return f"{expand(self.base_uri, 'base_uri').rstrip('/')}/{'/'.join(asset_key.path)}.lance"

    def _options(self) -> dict[str, str]:
        return expand_all(self.storage_options, "storage_options")


def _as_table(obj: Any, asset_key: dg.AssetKey) -> pa.Table:
    if isinstance(obj, pa.Table):
        return obj
    if isinstance(obj, pa.RecordBatchReader):
        return obj.read_all()
    if hasattr(obj, "__arrow_c_stream__"):
        return pa.table(obj)
    raise InvalidInput(
        f"asset {'/'.join(asset_key.path)} returned a {type(obj).__name__}: a Lance dataset holds a pyarrow.Table, "
        "a record batch reader or a data frame"
    )


def _partition_column(metadata: Any, schema: pa.Schema, asset_key: dg.AssetKey) -> str:
    column = (metadata or {}).get(PARTITION_COLUMN)
    if column in schema.names:
        return str(column)
    wrong = "name the column" if column is None else f"it has no column {column!r}: name the one"
    raise InvalidInput(
        f"asset {'/'.join(asset_key.path)} is partitioned: {wrong} of its partition keys in its metadata, "
        f'{PARTITION_COLUMN}="..."'
    )


def _values(partition_keys: Iterable[str], column: str, schema: pa.Schema) -> pa.Array:
    return pa.array(list(partition_keys)).cast(schema.field(column).type)
