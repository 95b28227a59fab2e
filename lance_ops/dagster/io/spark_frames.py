"""Write data frames of Spark as Lance datasets, and load versions as such frames; rows stay on the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops import reading
from lance_ops.api import LanceDataset
from lance_ops.core.errors import DatasetNotFound
from lance_ops.dagster.io.partition_rows import PartitionRows
from lance_ops.spark import OnSpark, get_or_create, private_format
from lance_ops.spark import write as write_frame

if TYPE_CHECKING:
    from lance_ops.dagster.io.stored_dataset import StoredDataset

__all__ = ["load", "replace", "write"]


def load(source: LanceDataset, condition: pc.Expression | None) -> Any:
    """Return the version's rows that match `condition` as a frame of the process's session."""
    session = get_or_create()
    reader = session.read.format(private_format(session, source.snapshot.storage_options))
    reader = reader.option("version", source.version)
    if condition is not None:
        reader = reader.option("filter", reading.bind_filter(source.snapshot, condition).to_sql())
    return reader.load(source.uri)


def write(stored: StoredDataset, frame: Any, mode: str, keys: Sequence[str], token: str | None) -> LanceDataset:
    """Write a frame, by tasks, as one version. An append whose `token` the table has, does nothing."""
    target = _begun(stored, frame) if mode == "upsert" or stored.branch is not None else None
    if target is not None and mode == "upsert":
        merge = target.merge_insert(keys).when_matched_update_all().when_not_matched_insert_all()
        merge.execute(frame, runner=OnSpark(frame.sparkSession, on_progress=stored.on_progress))
        return target
    uri = stored.uri if target is None else target.uri
    named = {} if token is None else {"batch": token}
    how: Literal["append", "overwrite"] = "append" if mode == "append" else "overwrite"
    options, on_progress = stored.storage_options, stored.on_progress
    return write_frame(frame, uri, how, storage_options=options, on_progress=on_progress, **named)


def replace(stored: StoredDataset, frame: Any, partitions: PartitionRows) -> LanceDataset:
    """Replace the rows of the partitions by a frame in one version; Spark refuses rows of other partitions."""
    target = _begun(stored, frame, partitions)
    condition = partitions.condition(target.schema)
    where = reading.bind_filter(target.snapshot, condition).to_sql()
    options, on_progress = stored.storage_options, stored.on_progress
    return write_frame(
        frame, target.uri, "overwrite", replace_where=where, storage_options=options, on_progress=on_progress
    )


def _begun(stored: StoredDataset, frame: Any, partitions: PartitionRows | None = None) -> LanceDataset:
    """Open the dataset to write; without one, create it without rows, with the frame's columns."""
    try:
        schema: pa.Schema = stored.open().schema
    except DatasetNotFound:
        if partitions is not None:
            partitions.columns(pa.schema([pa.field(name, pa.null()) for name in frame.columns]))
        write_frame(frame.limit(0), stored.uri, storage_options=stored.storage_options)
        schema = stored.open().schema
    return stored.open_to_write(schema)
