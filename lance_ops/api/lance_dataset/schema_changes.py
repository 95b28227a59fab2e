"""The methods of `LanceDataset` that change columns and metadata. Each makes one commit.

A change computed from the table's own rows is planned again after a conflict. A stream can be read only once, so a
conflict is then an error, and the files written are deleted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypedDict

import pyarrow as pa

from lance_ops import changing, refs, transactions, writing
from lance_ops.api.arrow_input import reader_of
from lance_ops.api.lance_dataset.random_access import Reading
from lance_ops.api.row_value_source import names_rows, row_value_source, staged_row_values
from lance_ops.api.udf import BatchUDF, source_of
from lance_ops.changing import columns as column_changes
from lance_ops.core.errors import InvalidInput
from lance_ops.reading import ROW_ADDRESS, ROW_ID
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot

__all__ = ["AlterColumn", "SchemaChanges"]

_RETRIES = 10
_RETRY_TIMEOUT = timedelta(seconds=30)
_NO_CHECKPOINT = "a checkpoint is for columns of expressions or of a function, and for values by row"


class AlterColumn(TypedDict, total=False):
    """An argument of `alter_columns`: the path of a column, and what changes there."""

    path: str
    name: str | None
    nullable: bool | None
    data_type: pa.DataType | None


class SchemaChanges(Reading):
    """Changes of columns and metadata. Each moves the handle to the version it made."""

    # -- columns ------------------------------------------------------------------------------------------------

    def add_columns(
        self,
        transforms: Any,
        read_columns: Sequence[str] | None = None,
        reader_schema: pa.Schema | None = None,
        batch_size: int | None = None,
        *,
        conflict_retries: int = _RETRIES,
        transaction_properties: Mapping[str, str] | None = None,
        runner: Runner | None = None,
        checkpoint: str | None = None,
    ) -> None:
        """Add columns. Every fragment gets a new data file with them; only the columns that `transforms` needs are
        read.

        `transforms` is one of: a dictionary of SQL expressions by name; a `BatchUDF` or a function, called with record
        batches of `read_columns` (default: all columns); Arrow data with one row for each row of the table; values by
        row, which are Arrow data, a DataFrame that `runner` takes, or the path of a raw file or a list of them, with a
        column `_rowaddr` or `_rowid`; or a field, a list of fields or a schema, which add columns that are null in
        every row and need no file.

        Of values by row, other row columns are left out. A row of the table that they do not name gets nulls. A row
        that they name twice, or that is deleted, raises `InvalidInput`. A conflict raises `RetryableConflict` if the
        table's row ids are not stable, since a compaction moves rows: read the addresses of the newest version again.

        After a conflict the columns are computed again, or values whose rows stable ids name are added to the newest
        version, up to `conflict_retries` times. A stream of a row for each row is not added again.

        `checkpoint` is a name for a long computation, of expressions, of a function or of values by row. Files of
        finished fragments, and these values, then stay in the dataset when the call fails or its process ends, and a
        call with the same name, columns and expressions computes the others alone. Use another name for another
        function and for other values; only of raw files the call itself sees that they have changed.
        """
        properties = transaction_properties
        if isinstance(transforms, pa.Field):
            transforms = [transforms]
        if isinstance(transforms, list) and transforms and all(isinstance(part, pa.Field) for part in transforms):
            transforms = pa.schema(transforms)
        if checkpoint is not None and (
            isinstance(transforms, pa.Schema) or (isinstance(transforms, Mapping) and not transforms)
        ):
            raise InvalidInput(_NO_CHECKPOINT)
        if isinstance(transforms, pa.Schema):
            self._commit_change(
                lambda current: column_changes.add_null_columns(current, transforms, properties), conflict_retries
            )
        elif isinstance(transforms, Mapping) and not transforms:
            self._commit_change(
                lambda current: column_changes.add_null_columns(current, pa.schema([]), properties), conflict_retries
            )
        elif isinstance(transforms, Mapping):

            def computed(current: Snapshot) -> Snapshot:
                schema, source = column_changes.bind_computed(current, transforms)
                used = runner or InThreads(current.tasks_at_once)
                return column_changes.add_columns(current, schema, source, used, properties, batch_size, checkpoint)

            self._commit_change(computed, conflict_retries, is_long=True)
        elif callable(transforms):
            udf = transforms if isinstance(transforms, BatchUDF) else BatchUDF(transforms)
            columns = tuple(self._snapshot.schema.names if read_columns is None else read_columns)
            schema = udf.output_schema or self._first_result(udf.func, columns)
            source = source_of(udf, columns, self._snapshot.schema)
            one_by_one = runner or InThreads(1)  # the function may not be safe to run in two threads at once
            self._commit_change(
                lambda current: column_changes.add_columns(
                    current, schema, source, one_by_one, properties, batch_size, checkpoint
                ),
                conflict_retries,
                is_long=True,
            )
            if udf.cache is not None:
                udf.cache.remove()
        else:
            used = runner or InThreads(self._snapshot.tasks_at_once)
            data = row_value_source(transforms, reader_schema, used)
            if names_rows(data, used):
                with staged_row_values(self._snapshot, data, used, replaces=False, checkpoint=checkpoint) as values:
                    self._commit_values(
                        values,
                        lambda current: changing.add_row_values(current, values, used, properties, checkpoint),
                        conflict_retries,
                    )
                return
            if checkpoint is not None:
                raise InvalidInput(_NO_CHECKPOINT)
            reader: pa.RecordBatchReader = data
            with refs.pinned_if_at_risk(self._snapshot, self._snapshot):
                made = column_changes.add_streamed_columns(
                    self._snapshot, reader.schema, reader, properties, batch_size
                )
            self._committed(made)

    def update_columns(
        self,
        data_obj: Any,
        schema: pa.Schema | None = None,
        *,
        conflict_retries: int = _RETRIES,
        transaction_properties: Mapping[str, str] | None = None,
        runner: Runner | None = None,
        checkpoint: str | None = None,
    ) -> dict[str, int]:
        """Replace values of columns in the rows that data names; return `num_rows_updated`.

        `data_obj` is Arrow data, a DataFrame that `runner` takes, or the path of a raw file or a list of them, with a
        column `_rowaddr` or `_rowid` and the columns to replace. Rows that it does not name keep their values. The
        other columns are not written again. After a conflict, rows that are named by stable ids are replaced in the
        newest version, up to `conflict_retries` times. The errors, and `checkpoint`, are those of `add_columns`.
        """
        used = runner or InThreads(self._snapshot.tasks_at_once)
        data = row_value_source(data_obj, schema, used)
        num_rows = 0
        with staged_row_values(self._snapshot, data, used, replaces=True, checkpoint=checkpoint) as values:

            def replaced(current: Snapshot) -> Snapshot:
                nonlocal num_rows
                made, num_rows = changing.replace_row_values(current, values, used, transaction_properties, checkpoint)
                return made

            self._commit_values(values, replaced, conflict_retries)
        return {"num_rows_updated": num_rows}

    def drop_columns(self, columns: Sequence[str], *, transaction_properties: Mapping[str, str] | None = None) -> None:
        """Drop columns or fields of structs. Only the schema changes; compaction later drops the values."""
        self._commit_change(lambda current: column_changes.drop_columns(current, list(columns), transaction_properties))

    def alter_columns(
        self,
        *alterations: AlterColumn,
        transaction_properties: Mapping[str, str] | None = None,
        runner: Runner | None = None,
    ) -> None:
        """Rename columns, allow or forbid nulls in them, or cast them. A cast drops the indices on the column."""
        known = AlterColumn.__annotations__.keys()
        for each in alterations:
            unknown = each.keys() - known
            if unknown or "path" not in each:
                raise InvalidInput(f"alteration {dict(each)}: it has a path and {', '.join(sorted(known - {'path'}))}")
        changes = [column_changes.Alteration(**each) for each in alterations]
        self._commit_change(
            lambda current: column_changes.alter_columns(
                current, changes, runner or InThreads(current.tasks_at_once), transaction_properties
            ),
            is_long=any("data_type" in each for each in alterations),
        )

    def merge(
        self,
        data_obj: Any,
        left_on: str,
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        transaction_properties: Mapping[str, str] | None = None,
        runner: Runner | None = None,
    ) -> None:
        """Add the columns of `data_obj`, joined by key and held in memory; rows without a match get nulls.

        `left_on` is a column, `_rowid` or `_rowaddr`. A key that a concurrent compaction can give to another row, which
        is any but a column and a stable row id, is not joined again after a conflict: that raises `RetryableConflict`.
        """
        table = reader_of(data_obj, schema).read_all()

        def joined(current: Snapshot) -> Snapshot:
            added, source = column_changes.bind_joined(current, table, left_on, right_on or left_on)
            return column_changes.add_columns(
                current, added, source, runner or InThreads(current.tasks_at_once), transaction_properties
            )

        if left_on == ROW_ADDRESS or (left_on == ROW_ID and not self.has_stable_row_ids):
            self._committed(refs.keeping_version(joined, self._snapshot)(self._snapshot))
        else:
            self._commit_change(joined, is_long=True)

    # -- metadata -----------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> dict[str, str]:
        """The table's metadata."""
        return dict(self._snapshot.manifest.table_metadata)

    @property
    def schema_metadata(self) -> dict[str, str]:
        """The schema's metadata."""
        return dict(self._snapshot.schema.metadata)

    def update_config(
        self,
        values: changing.MetadataValues,
        *,
        replace: bool = False,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Set configuration keys, or remove those whose value is None; return the whole configuration."""
        self._update(
            transactions.UpdateConfig(config_updates=changing.bind_metadata(values, replace)), transaction_properties
        )
        return dict(self._snapshot.manifest.config)

    def delete_config_keys(self, keys: Sequence[str]) -> None:
        """Remove configuration keys; ignore keys that are not set."""
        self.update_config(dict.fromkeys(keys))

    def update_metadata(
        self,
        values: changing.MetadataValues,
        *,
        replace: bool = False,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Set keys of the table's metadata, or remove those whose value is None; return the whole metadata."""
        self._update(
            transactions.UpdateConfig(table_metadata_updates=changing.bind_metadata(values, replace)),
            transaction_properties,
        )
        return self.metadata

    def update_schema_metadata(
        self,
        values: changing.MetadataValues,
        *,
        replace: bool = False,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Set keys of the schema's metadata, or remove those whose value is None; return the whole metadata."""
        self._update(
            transactions.UpdateConfig(schema_metadata_updates=changing.bind_metadata(values, replace)),
            transaction_properties,
        )
        return self.schema_metadata

    def update_field_metadata(
        self,
        field_updates: Mapping[str, changing.MetadataValues],
        *,
        replace: bool = False,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Set keys of fields' metadata, by path, or remove those whose value is None."""

        def updated(current: Snapshot) -> Snapshot:
            updates = changing.bind_field_metadata(current, field_updates, replace)
            return changing.update_config(
                current, transactions.UpdateConfig(field_metadata_updates=updates), transaction_properties
            )

        self._commit_change(updated)

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Replace the schema's metadata; deprecated, as in the reference."""
        warnings.warn("call update_schema_metadata(…, replace=True)", DeprecationWarning, stacklevel=3)
        self.update_schema_metadata(new_metadata, replace=True)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Replace a field's metadata; deprecated, as in the reference."""
        warnings.warn("call update_field_metadata(…, replace=True)", DeprecationWarning, stacklevel=3)
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    # -- the work -----------------------------------------------------------------------------------------------

    def _update(self, operation: transactions.UpdateConfig, properties: Mapping[str, str] | None) -> None:
        # what is set depends on no version, and clean-up may have removed the handle's
        self._commit_change(lambda current: changing.update_config(current, operation, properties))

    def _commit_values(self, values: changing.RowValues, attempt: Callable[[Snapshot], Snapshot], retries: int) -> None:
        """Commit values by row, after a conflict again only if their keys still name the same rows."""
        if values.by_id and self.has_stable_row_ids:
            self._commit_change(attempt, retries, is_long=True)
        else:
            self._committed(refs.keeping_version(attempt, self._snapshot)(self._snapshot))

    def _commit_change(
        self, attempt: Callable[[Snapshot], Snapshot], retries: int = _RETRIES, *, is_long: bool = False
    ) -> None:
        kept = refs.keeping_version(attempt, self._snapshot) if is_long else attempt
        self._committed(writing.retry_conflicts(self._snapshot, kept, retries, _RETRY_TIMEOUT))

    def _first_result(self, function: Callable[[pa.RecordBatch], Any], columns: Sequence[str]) -> pa.Schema:
        """Return the schema of a function's result for the table's first row."""
        rows = self.to_table(columns=list(columns), limit=1).combine_chunks()
        if not rows.num_rows:
            raise InvalidInput("the table has no row to try the function with: state output_schema")
        return column_changes.as_table(function(rows.to_batches()[0])).schema
