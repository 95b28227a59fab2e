"""Store assets' outputs as Lance datasets: Arrow data, or a frame of pandas, Polars, DuckDB or Spark.

    <base_uri>/<asset key, joined by />.lance

An output without partitions replaces the dataset's content, is appended, or is merged by key, as the asset's metadata
`write_mode` and `keys` say, or else the IO manager. A partitioned asset names the column of its partition keys in its
metadata `partition_column`; see `partition_rows`. Its output replaces the rows of its partitions in one commit.
Concurrent runs of other partitions do not disturb this. After concurrent runs of one partition, the table holds the
rows of the run that committed last.

Outputs of ops that are no assets, also those within a `graph_asset`, are refused: they may be of any type, and have no
name to store them by. Another IO manager passes them on.

An append happens once: if a step is attempted again, or a run that did not succeed is executed again, the rows that an
earlier attempt appended stay as they are. If a restore or an overwrite took them out since, they are appended again. A
re-execution of a run that succeeded appends again.

An input is read at the highest version that events of the upstream asset recorded before the run, or in the run. The
input's metadata `version` or `tag` names another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dagster as dg
from pydantic import Field

from lance_ops.api import LanceDataset
from lance_ops.core.errors import DatasetNotFound, InvalidInput, WrongType
from lance_ops.dagster.attempts import Attempt
from lance_ops.dagster.declaration import expand, expand_all, expand_location
from lance_ops.dagster.head import column_schema
from lance_ops.dagster.io.column_lineage import COLUMN_LINEAGE, DATASET_SUFFIX, column_lineage, note_loaded
from lance_ops.dagster.io.loading import load_as
from lance_ops.dagster.io.partition_rows import PARTITION_COLUMN, PartitionRows
from lance_ops.dagster.io.recorded_version import VERSION, current_run, open_recorded, version_events
from lance_ops.dagster.io.stored_dataset import StoredDataset, WriteMode, Written
from lance_ops.dagster.runners import progress_in_log

__all__ = ["LanceIOManager"]

_MODES = ("overwrite", "append", "upsert")


class LanceIOManager(dg.ConfigurableIOManager):
    """Stores outputs as Lance datasets beneath one URI. The fields may hold `${NAME}`, which is expanded at use."""

    base_uri: str
    storage_options: dict[str, str] = Field(default_factory=dict, repr=False)
    mode: WriteMode = Field(default="overwrite", description="For assets whose metadata has no write_mode.")
    branch: str | None = Field(
        default=None,
        description="Write this branch of each dataset, as in development. A dataset that lacks the branch is read "
        "from its main branch.",
    )

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Write an output; record its version, also as the data version, its rows, columns and their origin.

        Nothing is stored for an op that returns None. Raises `InvalidInput` for another output that is no asset.
        """
        if obj is None and not context.has_asset_key:
            return
        _check_is_asset(context, context)
        stored = replace(self._stored(context.asset_key), on_progress=progress_in_log(context.log))
        metadata = context.definition_metadata
        mode, keys = self._write_mode(context.asset_key, metadata)
        try:
            if context.has_asset_partitions and mode == "overwrite":
                written = stored.replace(obj, _partitions(context, metadata))
            else:
                written = stored.write(obj, mode, keys, attempt=_attempt(context))
        except WrongType as error:
            raise InvalidInput(
                f"asset {_name(context.asset_key)} returned a {type(obj).__name__}: a Lance dataset holds Arrow data "
                f"or a data frame: {error}"
            ) from error
        if written.committed_before is not None:
            context.log.warning(
                "asset %s: nothing is written: version %s holds the rows that an earlier attempt of this step appended",
                _name(context.asset_key),
                written.committed_before,
            )
        told = _metadata(context.asset_key, written, obj)
        if COLUMN_LINEAGE in context.output_metadata:  # the asset states it itself
            told.pop(COLUMN_LINEAGE, None)
        context.add_output_metadata(told)
        step = current_run()
        if step is not None:
            step.set_data_version(context.asset_key, dg.DataVersion(str(written.dataset.version)))

    def load_input(self, context: dg.InputContext) -> Any:
        """Return an asset, or the requested partitions of it, as the type of the input's annotation.

        Raises `InvalidInput` for an input that is no asset.
        """
        _check_is_asset(context, context.upstream_output)
        source = self._open(context)
        condition = None
        if context.has_asset_partitions:
            upstream = context.upstream_output.definition_metadata if context.upstream_output else {}
            condition = _partitions(context, {**(upstream or {}), **context.definition_metadata}).condition(
                source.snapshot.schema.to_arrow()
            )
        context.add_input_metadata({"dagster/uri": source.uri, VERSION: source.version})
        note_loaded(context.asset_key, source.schema.names)
        return load_as(context.dagster_type.typing_type, source, condition)

    def _open(self, context: dg.InputContext) -> LanceDataset:
        stored, asked = self._stored(context.asset_key), context.definition_metadata
        version, tag = asked.get("version"), asked.get("tag")
        try:
            source = stored.open(version, tag)
        except DatasetNotFound as error:
            raise DatasetNotFound(f"{stored.uri}: asset {context.asset_key} was never stored here") from error
        if version is not None or tag is not None:
            return source
        on_branch = stored.branch is not None and source.uri.endswith(f"/tree/{stored.branch}")
        events = version_events(context.instance, context.asset_key, source.uri, on_branch=on_branch)
        return open_recorded(source, events, _name(context.asset_key), context.log.warning)

    def _write_mode(self, asset_key: dg.AssetKey, metadata: Any) -> tuple[WriteMode, Sequence[str]]:
        keys = metadata.get("keys", ())
        mode = metadata.get("write_mode", "upsert" if keys else self.mode)
        if mode not in _MODES:
            raise InvalidInput(f"asset {_name(asset_key)}: write_mode {mode!r} is none of {', '.join(_MODES)}")
        return mode, [keys] if isinstance(keys, str) else list(keys)

    def _stored(self, asset_key: dg.AssetKey) -> StoredDataset:
        branch = None if self.branch is None else expand(self.branch, "branch") or None
        options = expand_all(self.storage_options, "storage_options")
        return StoredDataset(f"{self._root()}/{'/'.join(asset_key.path)}{DATASET_SUFFIX}", options, branch)

    def _root(self) -> str:
        return expand_location(self.base_uri, "base_uri")


def _check_is_asset(context: dg.InputContext | dg.OutputContext, output: dg.OutputContext | None) -> None:
    """Raise `InvalidInput` for a value that an op passes to another one; `output` is the output that it comes from."""
    if context.has_asset_key:
        return
    named = f"input {context.name!r}" if output is None else f"output {output.name!r} of op {output.step_key}"
    raise InvalidInput(
        f"{named} is no asset, and LanceIOManager stores the outputs of assets alone: give it another key than "
        "io_manager, which assets then name as their io_manager_key, so that Dagster's own IO manager passes values "
        "between ops; or name one for this output, dg.Out(io_manager_key=...)"
    )


def _metadata(asset_key: dg.AssetKey, written: Written, obj: Any) -> dict[str, Any]:
    made = written.dataset
    metadata: dict[str, Any] = {
        "dagster/uri": made.uri,
        "dagster/storage_kind": "lance",
        "dagster/row_count": made.count_rows(),
        "dagster/column_schema": column_schema(made.snapshot.schema),
        VERSION: made.version,
    }
    if written.num_rows is not None:
        metadata["lance/written_rows"] = written.num_rows
    if written.committed_before is not None:
        metadata["lance/committed_before"] = written.committed_before
    root = made.uri.rpartition(f"/{_name(asset_key)}{DATASET_SUFFIX}")[0]
    lineage = column_lineage(obj, asset_key, made.schema.names, root)
    if lineage is not None:
        metadata[COLUMN_LINEAGE] = lineage
    return metadata


def _attempt(context: dg.OutputContext) -> Attempt | None:
    """Return the attempt of the step to store this output and its partitions; None outside of a step."""
    step = current_run()
    if step is None:
        return None
    keys = context.asset_partition_keys if context.has_asset_partitions else ()
    return Attempt.of(step, context.name, context.mapping_key or "", *keys)


def _partitions(context: dg.InputContext | dg.OutputContext, metadata: Any) -> PartitionRows:
    """Return the rows of the partitions that a step writes or reads; the metadata is that of the partitioned asset."""
    keys = tuple(context.asset_partition_keys)
    return PartitionRows(context.asset_key, context.asset_partitions_def, keys, (metadata or {}).get(PARTITION_COLUMN))


def _name(asset_key: dg.AssetKey) -> str:
    return "/".join(asset_key.path)
