"""The plan of a write of Spark: tasks write files by it, and the driver commits once.

    plan_write(options, schema, mode) -> WritePlan           on the driver, before any task (`write_planning`)
    WritePlan.write(batches) -> fragments                    in a task; file names are unique, so attempts never meet
    WritePlan.commit(fragments) -> version | None            on the driver, only of the attempts that Spark reports

An attempt that Spark lost, or that lost against a speculative twin, leaves files that no version names. Clean-up
removes them by age.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops import changing, legacy, maintenance, runners, transactions, writing
from lance_ops.blobs import with_blobs_as
from lance_ops.changing import columns
from lance_ops.committers import DatasetRoot, open_root
from lance_ops.core import predicate as predicates
from lance_ops.core.arrow import empty_table
from lance_ops.core.errors import DatasetAlreadyExists, InvalidInput, RetryableConflict, SchemaMismatch
from lance_ops.core.json import text_schema
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema, spelled_as
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance import cleanup
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source.options import SourceOptions
from lance_ops.spark.translation import fit
from lance_ops.store import Store
from lance_ops.table import Fragment
from lance_ops.table.manifest import FileLocations

if TYPE_CHECKING:
    from lance_ops.changing.columns import SchemaChange
    from lance_ops.runners import Runner
    from lance_ops.transactions import PendingFiles

__all__ = ["WriteMode", "WritePlan", "is_replay", "replaces_all", "with_hint"]

WriteMode = Literal["append", "overwrite", "create"]
"""What a write does with a table that is there. `overwrite` replaces all rows, or with option `replace_where` those
that match it; `create` refuses the table.
"""


@dataclass(frozen=True)
class WritePlan:
    """The plan of a write, small enough to be pickled into each task.

    `options` have the URI of the table's root, which means the same in every process. `read_version` is None if the
    write creates the table. `done` means that this write is a replay and has nothing to do. `change` is what the
    table's schema needs first to become `schema`. `hint` tells how the table would grow to fit rows that do not fit it.
    Numbers are rounded to the table's types as Spark rounds them, unless the write is `exact`. With `is_computed` the
    rows were computed from the read version, and replace rows of this version alone.
    """

    options: SourceOptions
    read_version: int | None
    schema: Schema
    file_version: FileVersion
    mode: WriteMode
    done: bool = False
    change: SchemaChange | None = None
    hint: str = ""
    exact: bool = False
    is_computed: bool = False

    def write(self, batches: Iterable[pa.RecordBatch], time_zone: str = "UTC") -> list[Fragment]:
        """Write rows as fragments; a failure leaves no file. Raises `SchemaMismatch` naming the column.

        A date or a timestamp without a zone becomes a moment by the clock of `time_zone`.
        """
        if self.done:
            return []
        store = open_root(self.options.path, self.options.storage_options).store
        limits = self.options.limits
        with with_hint(self.hint), writing.FragmentWriter(store, self.schema, self.file_version, limits) as writer:
            seen: pa.Schema | None = None
            for batch in batches:
                if batch.schema != seen:  # all batches of a task have one schema
                    seen, (names, given) = batch.schema, self._names_and_types(batch.schema)
                rule = self.options.case_rule
                rows = fit(batch.rename_columns(names), given, rule, time_zone, rounds=not self.exact)
                _check_match(rows, self.options)
                writer.write(rows)
            return writer.finish()

    def check_fits(self, schema: pa.Schema) -> None:
        """Raise `SchemaMismatch` naming a column whose type `write` would refuse in each batch of this schema.

        Raises `InvalidFilter` for a `replace_where` that names a column which the rows lack, or that compares a column
        with a value of another type than the table's.
        """
        names, given = self._names_and_types(schema)
        columns = [column.combine_chunks() for column in empty_table(schema).columns]
        rows = fit(pa.RecordBatch.from_arrays(columns, names=names), given, self.options.case_rule)
        _check_match(rows, self.options)

    def _names_and_types(self, schema: pa.Schema) -> tuple[list[str], pa.Schema]:
        """Return the table's names for the columns of rows, and these columns in the types that the writer takes."""
        fields = [with_blobs_as(field, pa.large_binary()) for field in self.schema.fields]
        table = text_schema(pa.schema(fields), pa.string())
        names = spelled_as(schema, table, self.options.case_rule).names
        return names, pa.schema([field for field in table if field.name in names])

    def commit(self, fragments: Sequence[Fragment], runner: Runner | None = None) -> int | None:
        """Commit all fragments as one version; return None if there is nothing to commit or the batch was committed
        before.

        The runner, by default threads, writes columns again that get a longer type and finds the rows to replace.
        After a certain failure the fragments' files are deleted; after an unknown outcome they are kept.
        """
        says_nothing = self.mode == "append" and self.read_version is not None and not (fragments or self._properties)
        if self.done or says_nothing:
            return None
        root = open_root(self.options.path, self.options.storage_options)
        with _pending(root.store, fragments).abandoned_on_failure():
            snapshot = None if self.read_version is None else self._open(self.read_version)
            schema, fragments = legacy.join_dictionaries_of_fragments(root.store, self.schema, fragments)
        pending = _pending(root.store, fragments)
        runner = runner or runners.InThreads()
        try:
            made = (
                self._create(root, schema, pending, runner)
                if snapshot is None
                else self._change(snapshot, schema, pending, runner)
            )
        except RetryableConflict:
            # Another run may have committed the same batch meanwhile; then this run is the replay.
            if is_replay(self.options, self._open()):
                return None
            raise
        return made.version

    def _create(self, root: DatasetRoot, schema: Schema, pending: PendingFiles, runner: Runner) -> Snapshot:
        """Commit version 1, or change the table that another writer created meanwhile.

        Raises `SchemaMismatch` if the rows were written for another table than that one, and `DatasetAlreadyExists` if
        the write is to create the table itself.
        """
        try:
            return writing.create_dataset(
                root,
                schema,
                pending,
                self.file_version,
                stable_row_ids=self.options.enable_stable_row_ids,
                config=self.options.config,
                properties=self._properties,
                keep_if_there=True,
            )
        except DatasetAlreadyExists as error:
            is_there = error
        with pending.abandoned_on_failure():
            there = self._open()
            if is_replay(self.options, there):
                raise RetryableConflict(f"{there.uri}: another writer committed batch {self.options.batch!r}")
            if self.mode == "create":
                raise is_there
            if not self.replaces_all and (schema, self.file_version) != (there.schema, there.file_version):
                raise SchemaMismatch(
                    f"{there.uri}: another writer created the table meanwhile, with other columns or types or in "
                    "another file version: write again, and the rows are cast to its types"
                )
            if self.options.enable_stable_row_ids:
                writing.check_stable_row_ids(there)
        return self._change(there, schema, pending, runner)

    def _change(self, snapshot: Snapshot, schema: Schema, pending: PendingFiles, runner: Runner) -> Snapshot:
        if self.change:
            with pending.abandoned_on_failure():
                snapshot = columns.change_schema(snapshot, self.change, self.schema, runner)
                if is_replay(self.options, snapshot):  # a commit compares itself only with versions after this one
                    raise RetryableConflict(f"{snapshot.uri}: another writer committed batch {self.options.batch!r}")
        if self.options.replace_where is not None:
            condition = self.options.replace_where
            retries = 0 if self.is_computed else writing.CONFLICT_RETRIES
            made = changing.replace_matching(snapshot, condition, pending, runner, self._properties, retries)
        else:
            made = writing.commit_operation(
                snapshot,
                transactions.Overwrite(pending.fragments, schema, self.options.config, reads_rows=self.is_computed)
                if self.mode == "overwrite"
                else transactions.Append(pending.fragments),
                properties=self._properties,
                pending=pending,
                file_version=self.file_version,
            )
        cleanup.clean_up_if_due(snapshot.version, made)
        return made

    @property
    def replaces_all(self) -> bool:
        """Whether the write replaces all rows, and with them the schema."""
        return replaces_all(self.mode, self.options)

    @property
    def _properties(self) -> dict[str, str]:
        batch = self.options.batch
        return maintenance.batch_properties({batch: batch}) if batch else {}

    def _open(self, version: int | None = None) -> Snapshot:
        return Snapshot.open(self.options.path, version, self.options.storage_options)

    def discard(self, fragments: Iterable[Fragment]) -> None:
        """Delete the files of fragments for which no commit was attempted."""
        store = open_root(self.options.path, self.options.storage_options).store
        _pending(store, fragments).abandon()

    def discard_job(self, token: str) -> None:
        """Delete the files whose names have a job's token. No commit of the job was attempted."""
        store = open_root(self.options.path, self.options.storage_options).store
        transactions.remove_files_of_job(store, token)


def replaces_all(mode: WriteMode, options: SourceOptions) -> bool:
    """Return whether a write replaces all rows of its table."""
    return mode == "overwrite" and options.replace_where is None


def is_replay(options: SourceOptions, snapshot: Snapshot) -> bool:
    """Return whether the table has the write's batch; raise `InvalidInput` if it was one of raw files."""
    batch = options.batch
    if not batch:
        return False
    known = maintenance.ingested_batches(snapshot).get(batch)
    if known is not None and known.token != batch:
        raise InvalidInput(
            f"batch {batch!r} was ingested from raw files in version {known.version}: give this write another name"
        )
    return known is not None


@contextmanager
def with_hint(hint: str) -> Iterator[None]:
    """Add a hint to the text of a `SchemaMismatch`; an empty hint changes nothing."""
    try:
        yield
    except SchemaMismatch as error:
        if not hint:
            raise
        raise SchemaMismatch(f"{error}{hint}") from error


def _pending(store: Store, fragments: Iterable[Fragment]) -> PendingFiles:
    """Return the files of fragments that tasks wrote: `WritePlan.write` makes them durable."""
    return transactions.PendingFiles.of_fragments(FileLocations(store), fragments)


def _check_match(rows: pa.RecordBatch, options: SourceOptions) -> None:
    condition = options.replace_where
    if condition is None:
        return
    predicate = predicates.parse_filter(condition, rows.schema)
    others = pc.indices_nonzero(pc.invert(pc.fill_null(predicate.mask(rows), False)))
    if len(others):
        shown = rows.select(sorted(predicate.columns())).slice(others[0].as_py(), 1).to_pylist()[0]
        name = options.spelling("replace_where")
        raise InvalidInput(f"option {name!r}: {len(others)} rows to write do not match {condition!r}: {shown}")
