"""Stage data whose rows name rows of a table by `_rowaddr` or `_rowid`, so that tasks read it.

A stage is a dataset beneath the table's `data`. It is removed when the verb is done. With a checkpoint it has a name of
its own and stays after a failure: the next attempt reads it, and does not compute the data again. Clean-up removes a
stage that nobody came back for, by age.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from lance_ops import changing, writing
from lance_ops.api.merge_source import TakesFrames
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.committers import MANIFEST_STORE_OPTION, open_root
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.file_names import DATA_DIR
from lance_ops.core.versions import FileVersion
from lance_ops.reading import ROW_ADDRESS, ROW_COLUMNS, ROW_ID
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import PendingFiles

__all__ = ["names_rows", "staged_row_values", "takes"]

_FRAGMENT_ID = "_fragid"  # what reads of Spark call the fragment's id


def takes(runner: object, data: Any) -> bool:
    """Return whether the data is a data frame of the runner's cluster."""
    return _taker(runner, data) is not None


def names_rows(data: Any, runner: object) -> bool:
    """Return whether a stream has a column that names rows; a data frame of the runner's cluster must have one."""
    return takes(runner, data) or _key_in(data.schema.names) is not None


@contextmanager
def staged_row_values(
    target: Snapshot, data: Any, runner: Runner, *, replaces: bool, checkpoint: str | None = None
) -> Iterator[changing.RowValues]:
    """Give the staged rows of `data`: with `replaces` in the types of the target's columns, else in their own.

    `data` is a stream of batches, or a data frame that the runner takes. Raises `InvalidInput` for data without a
    column of keys, or with nothing else, and `SchemaMismatch` naming a column that is to be replaced and is not there.
    """
    taker = _taker(runner, data)
    names = list(data.columns) if taker is not None else data.schema.names
    key = _key_in(names)
    if key is None:
        raise InvalidInput(
            f"the data has no column {ROW_ADDRESS} or {ROW_ID} that names rows; it has {', '.join(names)}"
        )
    chosen = [name for name in names if name not in ROW_COLUMNS and name != _FRAGMENT_ID]
    if not chosen:
        raise InvalidInput(f"the data has no column beside {key!r}")
    folder = by_tasks.new_folder() if checkpoint is None else _folder_of(checkpoint, key, chosen)
    uri, store = f"{target.uri}/{folder}", target.store.child(folder)
    options = {name: value for name, value in target.storage_options.items() if name != MANIFEST_STORE_OPTION}
    version = FileVersion.V2_0 if target.file_version is FileVersion.V0_1 else target.file_version
    done = False
    try:
        there = Snapshot.open_if_exists(uri, options)
        if there is None or there.version < _WITH_ROWS:
            store.clear()
            if taker is not None:
                taker.write_row_values(data, key, chosen, target if replaces else None, uri, options, version)
            else:
                like = target.schema.to_arrow_storage() if replaces else None
                _write(data, key, chosen, like, uri, options, version)
        staged = Snapshot.open(uri, storage_options=options)
        yield changing.RowValues(by_tasks.SourceRows.of(staged), by_id=key == ROW_ID)
        done = True
    finally:
        if done or checkpoint is None:
            store.clear()


_WITH_ROWS = 2
"""The version of a stage that has rows: the first one creates it."""


def _taker(runner: object, data: Any) -> TakesFrames | None:
    return runner if isinstance(runner, TakesFrames) and runner.takes(data) else None


def _key_in(names: Iterable[str]) -> str | None:
    there = set(names)
    return next((name for name in (ROW_ADDRESS, ROW_ID) if name in there), None)


def _folder_of(checkpoint: str, key: str, names: Sequence[str]) -> str:
    if not checkpoint:
        raise InvalidInput("a checkpoint has a name")
    digest = hashlib.sha256(repr((checkpoint, key, sorted(names))).encode()).hexdigest()
    return f"{DATA_DIR}/backfill-rows-{digest[:32]}"


def _write(
    reader: pa.RecordBatchReader,
    key: str,
    names: Sequence[str],
    like: pa.Schema | None,
    uri: str,
    options: dict[str, str],
    version: FileVersion,
) -> None:
    """Write a stream as a dataset, batch by batch."""
    given = pa.schema([reader.schema.field(name) for name in names])
    if like is not None:
        lacking = next((name for name in names if name not in like.names), None)
        if lacking is not None:
            raise SchemaMismatch(f"column {lacking!r} is not in the table (which has {', '.join(like.names)})")
        given = pa.schema([like.field(name) for name in names])
    schema = pa.schema([pa.field(changing.ROW_KEY, pa.uint64()), *given])
    empty = writing.create_dataset(
        open_root(uri, options), writing.table_schema(schema, version), PendingFiles(), version
    )
    batches = (batch.select([key, *names]).rename_columns([changing.ROW_KEY, *names]) for batch in reader)
    writing.append(empty, batches, writing.FragmentLimits(), {})
