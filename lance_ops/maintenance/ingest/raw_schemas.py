"""Find the schema that holds the columns of all raw files, in tasks that open each file once.

A file that knows its types gives them; of a text file they are inferred from its first block. Types of one column are
promoted to one that holds both, as int32 and float64 to float64. CSV columns of numbers in one file and of texts in
another are texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.redaction import redact
from lance_ops.core.schema import CaseRule, spelled_as
from lance_ops.maintenance.ingest.raw_files import RawFile, RawReader, RawReading, is_text, raw_format
from lance_ops.maintenance.ingest.raw_names import shown_uri
from lance_ops.runners import InThreads, Job, Runner

__all__ = ["FileDisagrees", "unified_raw_schema"]

_FILES_PER_TASK = 64


class FileDisagrees(SchemaMismatch):
    """A raw file whose columns contradict those of the table or of the files before it; `path` is as errors show it."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = redact(path)
        super().__init__(f"raw file {self.path}: {redact(reason)}")


@dataclass(frozen=True)
class SchemaTask:
    """Raw files whose columns to find."""

    files: tuple[RawFile, ...]
    reading: RawReading | None
    names: tuple[str, ...] | None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


def unified_raw_schema(
    files: Sequence[RawFile],
    storage_options: Mapping[str, str],
    reading: RawReading | None = None,
    *,
    table: pa.Schema | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    case_rule: CaseRule = CaseRule.INSENSITIVE,
    runner: Runner | None = None,
    job: Job | None = None,
) -> pa.Schema:
    """Return a schema with the columns of the table, if there is one, and of all files.

    A new column of `types` has that type, whatever the files say, and without a table these are the names of CSV
    without a header. Text files do not change the type of a column of the table. Raises `FileDisagrees`
    for the first file that disagrees with those before it, and what `RawReader.schema` raises.
    """
    if not files:
        raise InvalidInput("no raw files to take a schema from")
    types = types or {}
    names = tuple(types) or None if table is None else tuple(table.names)
    tasks = [SchemaTask(part, reading, names, dict(storage_options)) for part in _parts(files)]
    found = [schema for part in (runner or InThreads(1)).map(read_schemas, tasks, job) for schema in part]
    unified = {} if table is None else {each.name: each for each in table}
    for file, schema in zip(files, found, strict=True):
        try:
            spelled = spelled_as(schema, pa.schema([*unified.values(), *_declared(types, unified)]), case_rule)
        except SchemaMismatch as error:
            raise FileDisagrees(shown_uri(file.uri), str(error)) from error
        for given in spelled:
            if given.name not in unified:
                unified[given.name] = given.with_type(types.get(given.name, given.type))
            elif given.name not in types:
                unified[given.name] = _promoted(unified[given.name], given, file, table)
    return pa.schema(list(unified.values()))


def _declared(types: Mapping[str, pa.DataType], unified: Mapping[str, pa.Field]) -> list[pa.Field]:
    """Return the declared columns that no file has had yet."""
    return [pa.field(name, kind) for name, kind in types.items() if name not in unified]


def read_schemas(task: SchemaTask) -> tuple[pa.Schema, ...]:
    """Return the schema of each file."""
    with RawReader(task.storage_options, task.reading) as reader:
        return tuple(reader.schema(file, task.names) for file in task.files)


def _parts(files: Sequence[RawFile]) -> Iterator[tuple[RawFile, ...]]:
    for start in range(0, len(files), _FILES_PER_TASK):
        yield tuple(files[start : start + _FILES_PER_TASK])


def _promoted(known: pa.Field, given: pa.Field, file: RawFile, table: pa.Schema | None) -> pa.Field:
    is_of_table = table is not None and known.name in table.names
    if is_of_table and is_text(file.uri):
        return known
    try:
        both = [pa.schema([known]), pa.schema([given])]
        return pa.unify_schemas(both, promote_options="permissive").field(0)
    except pa.ArrowException as error:
        if is_of_table:  # the writer casts the values or refuses them
            return known
        if raw_format(file.uri)[0] == "csv" and (pt.is_string(known.type) or pt.is_string(given.type)):
            return known.with_type(pa.string())
        raise FileDisagrees(
            shown_uri(file.uri),
            f"it disagrees with the files before it: column {known.name!r} is {given.type} and was {known.type}: "
            "declare a schema",
        ) from error
