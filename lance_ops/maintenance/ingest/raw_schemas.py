"""Find the schema of raw files, in tasks that open each file once.

A file that knows its types gives them; of a text file they are inferred from its first block. If files differ, the
column begins with the type that most files give it. If two types are equally frequent, the first file decides. The type
is then promoted until it holds the types of the other files, as int32 and float64 become float64. With `most_decide`,
only text files promote a type, unless it is null or contains null, and none adds a field to a struct: the fields of
structs are those that most files agree on, as the columns are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field, replace

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import InvalidInput, LanceOpsError, RawFileRefused, SchemaMismatch
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import redact
from lance_ops.core.schema import CaseRule, spelled_as
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.ingest.decoding import NO_UTF8
from lance_ops.maintenance.ingest.raw_files import RawFile, RawReader, RawReading
from lance_ops.maintenance.ingest.raw_names import is_text_file, raw_format, shown_uri
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.writing import table_schema

__all__ = ["FileDisagrees", "FoundSchemas", "unified_raw_schema"]

_FILES_PER_TASK = 64
_BYTES_OF_COLUMNS = 1 << 20
"""About how many bytes are read of a long file: its footer, or its first block of text."""


class FileDisagrees(SchemaMismatch):
    """A raw file has columns that no table may have, or that contradict those of the table or of the files before it.

    `others` are the errors of the other files that have such columns.
    """

    def __init__(self, file: RawFile, reason: str, others: Sequence[FileDisagrees] = ()) -> None:
        self.file, self.reason, self.others = file, reason, tuple(others)
        super().__init__(f"raw file {redact(shown_uri(file.uri))}: {redact(reason)}")

    def __reduce__(self) -> tuple[type[FileDisagrees], tuple[RawFile, str, tuple[FileDisagrees, ...]]]:
        return type(self), (self.file, self.reason, self.others)


@dataclass(frozen=True)
class SchemaTask:
    """Raw files whose columns to find."""

    files: tuple[RawFile, ...]
    reading: RawReading | None
    names: tuple[str, ...] | None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


class FoundSchemas:
    """The schemas found in raw files, and the files that were refused.

    Columns of a file without a header have the names that the caller gives, so a schema is kept by file and names.
    Calls of `unified_raw_schema` that share one object read each file once.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[RawFile, tuple[str, ...] | None], pa.Schema | RawFileRefused] = {}

    @property
    def refused(self) -> dict[RawFile, RawFileRefused]:
        """The files that were refused, with the reasons."""
        return {file: found for (file, _), found in self._found.items() if isinstance(found, RawFileRefused)}

    def read(self, wanted: SchemaTask, runner: Runner, job: Job | None) -> list[pa.Schema]:
        """Return the schemas of the wanted files, and read those that are not known yet.

        Raises `RawFileRefused` for the first file that was refused, when all of them have been read.
        """
        unknown = [file for file in wanted.files if (file, wanted.names) not in self._found]
        tasks = [replace(wanted, files=part) for part in _parts(unknown)]
        for task, found in zip(tasks, runner.map(read_schemas, tasks, job) if tasks else (), strict=True):
            self._found.update(zip(((file, wanted.names) for file in task.files), found, strict=True))
        schemas = []
        for file in wanted.files:
            schema = self._found[file, wanted.names]
            if isinstance(schema, RawFileRefused):
                raise schema
            schemas.append(schema)
        return schemas


def unified_raw_schema(
    files: Sequence[RawFile],
    storage_options: Mapping[str, str],
    reading: RawReading | None = None,
    *,
    table: pa.Schema | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    case_rule: CaseRule = CaseRule.INSENSITIVE,
    most_decide: bool = False,
    mixed_as_text: bool = True,
    file_version: FileVersion | None = None,
    runner: Runner | None = None,
    job: Job | None = None,
    known: FoundSchemas | None = None,
) -> pa.Schema:
    """Return a schema with the columns of the table, if there is one, and of all files or of most of them.

    The runner's tasks read the files; without a runner, this process does, one after the other. Files in `known` are
    not read, and those that are read are added to it. Without a `job`, the tasks' job is named after the first file.

    With `most_decide`, files with the same set of columns form a group. The schema has the table's columns, those of
    the largest group in the order of its first file, and those of `types` that a file has. If several groups are
    equally large, the one whose first file comes first decides. Each column has its most frequent type, promoted for
    the other numbers of text files; of structs, the fields count first, as the columns do, and then the types. Reading
    the files with this schema then refuses the others.

    With `mixed_as_text`, a CSV column of numbers in some files and of texts in others is text; without it, it has the
    type that most files have.

    A new column of `types` has that type, whatever the files say, and without a table these are the names of CSV
    without a header. Text files change a type of the table only where it is null, or where a struct lacks a field.
    Raises `FileDisagrees` for the files whose type of a column cannot be promoted together with that of most files, or
    whose text is not UTF-8, and what `RawReader.schema` raises. With `file_version`, it also raises `FileDisagrees` for
    a new column that no table of this version may have. Raises `InvalidInput` if there is no file.
    """
    if not files:
        raise InvalidInput("no raw files to take a schema from")
    types = types or {}
    names = tuple(types) or None if table is None else tuple(table.names)
    wanted_files = SchemaTask(tuple(files), reading, names, dict(storage_options))
    if job is None:
        few_bytes = sum(min(file.size_bytes, _BYTES_OF_COLUMNS) for file in files)
        job = Job.on("read the columns of", files[0].uri, size_bytes=few_bytes)
    found = (known or FoundSchemas()).read(wanted_files, runner or InThreads(1), job)
    unified = {} if table is None else {each.name: each for each in table}
    disagreeing: dict[RawFile, FileDisagrees] = {}
    spelled = _spelled(files, found, list(unified.values()), types, case_rule, disagreeing)
    by_column = _by_column(spelled)
    if most_decide:
        wanted = [
            *_columns_of_largest_group(spelled),
            *(name for name in by_column if name in unified or name in types),
        ]
        by_column = {name: by_column[name] for name in wanted}
    for name, given in by_column.items():
        is_new = table is None or name not in table.names
        for each, alike in _types_of_most_first(given, disagreeing):
            file, before = alike[0], unified.get(name)
            if name in types:
                unified[name] = before or each.with_type(types[name])
                continue
            try:
                if is_new:
                    _check_encoding(file, each)
                promoted = each
                if before is not None:
                    promoted = _promoted(before, each, file, table, mixed_as_text=mixed_as_text)
                    if most_decide:
                        promoted = _as_most_decide(before, each, promoted, file)
                if file_version is not None and (before is None or promoted != before):
                    _check_may_be_stored(file, promoted, file_version)
                unified[name] = promoted
            except FileDisagrees as error:
                form = raw_format(file.uri)[0]  # whether a type disagrees depends on it, too
                same = [other for other in alike if raw_format(other.uri)[0] == form]
                disagreeing |= {other: FileDisagrees(other, error.reason) for other in same}
    if disagreeing:
        first, *others = (disagreeing[file] for file in files if file in disagreeing)
        raise FileDisagrees(first.file, first.reason, others)
    return pa.schema(list(unified.values()))


def _check_encoding(file: RawFile, new: pa.Field) -> None:
    """Refuse a column of CSV that Arrow takes for binary, because it is not UTF-8."""
    if pt.is_binary(new.type) and is_text_file(file.uri):
        raise FileDisagrees(file, f"column {new.name!r}: {NO_UTF8}")


def _check_may_be_stored(file: RawFile, column: pa.Field, version: FileVersion) -> None:
    """Refuse a column that no table of this file version may have."""
    try:
        table_schema(pa.schema([column]), version)
    except LanceOpsError as error:
        has_header = not column.name and raw_format(file.uri)[0] == "csv"
        remedy = "; read it with distinct_names, which numbers columns without a name" if has_header else ""
        raise FileDisagrees(file, f"{error}{remedy}") from error


def _as_most_decide(before: pa.Field, given: pa.Field, promoted: pa.Field, file: RawFile) -> pa.Field:
    """Return a column after a file that most others outnumber: it changes little more than a guess or a null."""
    is_guess = is_text_file(file.uri)  # whole numbers say nothing against fractions
    if is_guess or before.type == given.type or _holds_null(before.type):
        return promoted.with_type(_with_fields_of(before.type, promoted.type))
    return before


def _spelled(
    files: Sequence[RawFile],
    found: Sequence[pa.Schema],
    table: Sequence[pa.Field],
    types: Mapping[str, pa.DataType],
    case_rule: CaseRule,
    disagreeing: dict[RawFile, FileDisagrees],
) -> dict[RawFile, pa.Schema]:
    """Return the files' schemas with one spelling of each name: the table's, the declared one, or the first file's.

    A file with two names for one column is added to those that are `disagreeing` instead.
    """
    known = {each.name: each for each in table}
    spelled = {}
    for file, schema in zip(files, found, strict=True):
        declared = [pa.field(name, kind) for name, kind in types.items() if name not in known]
        try:
            spelled[file] = spelled_as(schema, pa.schema([*known.values(), *declared]), case_rule)
        except SchemaMismatch as error:
            disagreeing[file] = FileDisagrees(file, str(error))
            continue
        for each in spelled[file]:
            known.setdefault(each.name, each)
    return spelled


def _columns_of_largest_group(schemas: Mapping[RawFile, pa.Schema]) -> tuple[str, ...]:
    """Group the files by their set of columns; return the columns of the largest group as its first file orders them.

    If several groups are equally large, this takes the one whose first file comes first.
    """
    groups: dict[tuple[str, ...], list[pa.Schema]] = defaultdict(list)
    for schema in schemas.values():
        groups[tuple(sorted(schema.names))].append(schema)
    return tuple(max(groups.values(), key=len)[0].names) if groups else ()


def _by_column(schemas: Mapping[RawFile, pa.Schema]) -> dict[str, list[tuple[RawFile, pa.Field]]]:
    """Return each column's fields with their files."""
    fields = defaultdict(list)
    for file, schema in schemas.items():
        for each in schema:
            fields[each.name].append((file, each))
    return fields


def _types_of_most_first(
    given: Sequence[tuple[RawFile, pa.Field]], left_out: Container[RawFile]
) -> list[tuple[pa.Field, list[RawFile]]]:
    """Return the fields of a column with their files: of the most frequent fields within, then types, first."""
    alike: dict[pa.Field, list[RawFile]] = defaultdict(list)
    for file, each in given:
        if file not in left_out:
            alike[each].append(file)
    num_files: Counter[pa.DataType] = Counter()
    num_alike: Counter[frozenset[str]] = Counter()
    for each, files in alike.items():
        num_files[each.type] += len(files)
        num_alike[_paths_within(each.type)] += len(files)

    def rank(found: tuple[pa.Field, list[RawFile]]) -> tuple[int, int]:
        kind = found[0].type
        return -num_alike[_paths_within(kind)], -num_files[kind]

    return sorted(alike.items(), key=rank)


def _paths_within(kind: pa.DataType, path: str = "") -> frozenset[str]:
    """Return the paths of the fields of the structs within a type; none for a type without structs."""
    found: set[str] = set()
    for number in range(kind.num_fields):
        child = kind.field(number)
        below = f"{path}.{child.name}" if pt.is_struct(kind) else path
        found |= {below} if pt.is_struct(kind) else set()
        found |= _paths_within(child.type, below)
    return frozenset(found)


def _with_fields_of(first: pa.DataType, promoted: pa.DataType) -> pa.DataType:
    """Return a promoted type without the fields of structs that the first type lacks.

    A struct without fields says nothing about them, as null does.
    """
    if pt.is_struct(first) and pt.is_struct(promoted) and first.num_fields:
        return pa.struct(
            [
                promoted.field(child.name).with_type(_with_fields_of(child.type, promoted.field(child.name).type))
                for child in first
            ]
        )
    if pt.is_list(first) and pt.is_list(promoted):
        items = promoted.value_field
        return pa.list_(items.with_type(_with_fields_of(first.value_type, items.type)))
    return promoted


def _with_new_fields(known: pa.DataType, given: pa.DataType) -> pa.DataType:
    """Return a known type with the fields of structs that only the given type has, and with types in place of null."""
    if pt.is_null(known):
        return given
    if pt.is_struct(known) and pt.is_struct(given):
        others = {child.name: child for child in given}
        kept = [
            child.with_type(_with_new_fields(child.type, others.pop(child.name).type))
            if child.name in others
            else child
            for child in known
        ]
        return pa.struct([*kept, *others.values()])
    if pt.is_list(known) and pt.is_list(given):
        items = known.value_field
        return pa.list_(items.with_type(_with_new_fields(items.type, given.value_type)))
    return known


def read_schemas(task: SchemaTask) -> tuple[pa.Schema | RawFileRefused, ...]:
    """Return the schema of each file, or why the file is refused."""
    with RawReader(task.storage_options, task.reading) as reader:
        return tuple(_schema_or_refusal(reader, file, task.names) for file in task.files)


def _schema_or_refusal(reader: RawReader, file: RawFile, names: tuple[str, ...] | None) -> pa.Schema | RawFileRefused:
    try:
        return reader.schema(file, names)
    except RawFileRefused as error:
        return error.with_traceback(None)  # which would hold the reader


def _parts(files: Sequence[RawFile]) -> Iterator[tuple[RawFile, ...]]:
    for start in range(0, len(files), _FILES_PER_TASK):
        yield tuple(files[start : start + _FILES_PER_TASK])


def _holds_null(kind: pa.DataType) -> bool:
    """Return whether the type is null or contains null, as that of lists without items does."""
    return pt.is_null(kind) or any(_holds_null(kind.field(number).type) for number in range(kind.num_fields))


def _promoted(
    known: pa.Field, given: pa.Field, file: RawFile, table: pa.Schema | None, *, mixed_as_text: bool
) -> pa.Field:
    is_of_table = table is not None and known.name in table.names
    if is_of_table and is_text_file(file.uri):
        return known.with_type(_with_new_fields(known.type, given.type))
    try:
        both = [pa.schema([known]), pa.schema([given])]
        return pa.unify_schemas(both, promote_options="permissive").field(0)
    except pa.ArrowException as error:
        if is_of_table:  # the writer casts the values or refuses them
            return known
        if raw_format(file.uri)[0] == "csv" and (pt.is_string(known.type) or pt.is_string(given.type)):
            return known.with_type(pa.string()) if mixed_as_text else known
        raise FileDisagrees(
            file,
            f"it disagrees with other files: column {known.name!r} is {given.type} here and {known.type} there: "
            "declare a schema",
        ) from error
