"""Look at raw files before an ingestion: which fit, what becomes of their columns, and which are refused and why.

A survey reads footers of files that know their types, and the first block of text files. It copies no more of most
files of a store (`raw_copies.py`). It does not find values that do not fit; those are found when the rows are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.blobs import schema_to_write
from lance_ops.changing.columns import SchemaChange
from lance_ops.core.errors import RawFileRefused, SchemaMismatch
from lance_ops.core.records import dataclass
from lance_ops.maintenance.ingest.planning import (
    BadBatches,
    IngestOptions,
    IngestPlan,
    IngestTask,
    plan_ingest,
    plan_readable,
)
from lance_ops.maintenance.ingest.raw_files import IngestBatch, RawFile, RawReader
from lance_ops.maintenance.ingest.raw_names import is_text_file, shown_uri
from lance_ops.maintenance.ingest.raw_rows import ExtraColumns, plain_schema
from lance_ops.runners import InThreads, Runner
from lance_ops.writing import conform_present_columns

__all__ = ["IngestSurvey", "SurveyedFile", "survey_ingest"]


@dataclass(frozen=True)
class SurveyedFile:
    """A file of a batch, and what would become of it.

    `num_rows` is None where no footer states it. `columns` have the table's names and the file's types. `effects` say
    in words what the policies do to its columns. A file with a reason in `refused` would not be ingested.
    """

    file: RawFile
    key: str
    num_rows: int | None = None
    columns: pa.Schema | None = None
    effects: tuple[str, ...] = ()
    refused: str = ""

    def with_changes(self, change: SchemaChange, before: pa.Schema) -> SurveyedFile:
        """Return the file with what its columns, and the fields within them, do to the table's schema of before."""
        types = dict(_types_by_path(self.columns or ()))
        added = [path for path in _new_paths(change.added, before) if path in types]
        widened = [f"{path} to {kind}" for path, kind in change.widened.items() if types.get(path) == kind]
        effects = [f"adds {', '.join(added)}"] if added else []
        effects += [f"widens {', '.join(widened)}"] if widened else []
        return replace(self, effects=(*effects, *self.effects))


@dataclass(frozen=True)
class IngestSurvey:
    """The files of the plan's tasks in their order, then those of batches that cannot be planned; and the plan.

    `plan` is None if no batch is left. `refused` has the reason of each batch that would not be ingested.
    """

    plan: IngestPlan | None
    files: tuple[SurveyedFile, ...]
    refused: Mapping[str, str]

    @property
    def num_rows(self) -> int | None:
        """The rows of the files that fit; None if a footer does not state them."""
        counts = [each.num_rows for each in self.files if each.key not in self.refused]
        return None if None in counts else sum(count for count in counts if count is not None)


def survey_ingest(
    uri: str,
    batches: Sequence[IngestBatch],
    *,
    storage_options: Mapping[str, str] | None = None,
    raw_storage_options: Mapping[str, str] | None = None,
    options: IngestOptions | None = None,
    runner: Runner | None = None,
    version: int | None = None,
) -> IngestSurvey:
    """Plan an ingestion as `ingest` would, and look at its files in tasks. Nothing is written.

    A bad batch is in `refused`, whatever the options say of bad batches. Other errors are raised as by `plan_ingest`.
    """
    used = runner or InThreads()
    asked = options or IngestOptions()
    plan, unreadable = plan_readable(
        batches,
        BadBatches.SET_ASIDE,
        partial(
            plan_ingest,
            uri,
            storage_options=storage_options,
            raw_storage_options=raw_storage_options,
            options=asked,
            runner=used,
            version=version,
        ),
    )
    found = [each for part in used.map(look_at_files, plan.tasks, plan.job) for each in part] if plan else []
    refused = {**unreadable}
    for each in found:
        if each.refused:
            refused.setdefault(each.key, each.refused)
    before = plain_schema(plan.snapshot.schema) if plan and plan.snapshot else pa.schema([])
    shown = [each.with_changes(plan.change, before) for each in found] if plan else []
    bad = [
        SurveyedFile(file, batch.key, refused=unreadable[batch.key])
        for batch in batches
        if batch.key in unreadable
        for file in batch.files
    ]
    return IngestSurvey(plan, (*shown, *bad), refused)


def look_at_files(task: IngestTask) -> tuple[SurveyedFile, ...]:
    """Return what would become of each file that begins in a task."""
    with RawReader(task.raw_storage_options, task.reading) as reader:
        return tuple(_looked_at(part.file, part.key, reader, task) for part in task.parts if part.is_first)


def _looked_at(file: RawFile, key: str, reader: RawReader, task: IngestTask) -> SurveyedFile:
    table = task.fitting.table
    num_rows = None
    try:
        schema, num_rows = reader.look(file, tuple(table.names))
        names = task.fitting.matched(file, schema)
        lacking = [name for name in table.names if name not in names.values()]
        for name in task.required:
            if name in lacking:
                raise SchemaMismatch(f"raw file {shown_uri(file.uri)} has no column {name!r}, by which rows are merged")
        found = task.fitting.spelled(names, schema).empty_table()
        read = found if is_text_file(file.uri) else _conformed(file, found, schema_to_write(task.schema))
    except (RawFileRefused, SchemaMismatch) as error:
        return SurveyedFile(file, key, num_rows, refused=str(error))
    ignored = [name for name in schema.names if name not in names] if task.fitting.extra is ExtraColumns.IGNORE else []
    cast = [
        f"casts {field.name}: {field.type} to {table.field(field.name).type}"
        for field in found.schema
        if not is_text_file(file.uri) and field.type != read.schema.field(field.name).type
    ]
    folders = [name for name in lacking if name in _names_of_folders(file)]
    effects = (
        *([f"fills {', '.join(lacking)} with nulls"] if lacking else []),
        *([f"takes no {', '.join(folders)} from the names of its folders"] if folders else []),
        *([f"ignores {', '.join(ignored)}"] if ignored else []),
        *cast,
    )
    return SurveyedFile(file, key, num_rows, found.schema, effects)


def _names_of_folders(file: RawFile) -> frozenset[str]:
    """Return the columns that other readers take from folders of a path such as `year=2026/month=1/a.parquet`."""
    parts = (folder.partition("=") for folder in file.uri.split("/")[:-1])
    return frozenset(name for name, equals, _ in parts if equals)


def _conformed(file: RawFile, found: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the empty columns as the writer would cast them; raise `SchemaMismatch` for types that never fit."""
    try:
        return conform_present_columns(found, schema)
    except SchemaMismatch as error:
        raise SchemaMismatch(f"raw file {shown_uri(file.uri)}: {error}") from error


def _types_by_path(fields: Iterable[pa.Field], path: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Yield the path and type of each field, and of those within structs."""
    for field in fields:
        yield f"{path}{field.name}", field.type
        if pt.is_struct(field.type):
            yield from _types_by_path(field.type, f"{path}{field.name}.")


def _new_paths(added: Iterable[pa.Field], table: Iterable[pa.Field], path: str = "") -> Iterator[str]:
    """Yield the paths of the fields that the table lacks, but none within another one of these."""
    known = {field.name: field for field in table}
    for field in added:
        if field.name in known:
            yield from _new_paths(field.type, known[field.name].type, f"{path}{field.name}.")
        else:
            yield f"{path}{field.name}"
