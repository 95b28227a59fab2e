"""Find the schema of raw files, in tasks that open each file once.

A file that knows its types gives them; of a text file they are inferred from its first block. If files differ, the
column begins with the type that most files give it. If two types are equally frequent, the first file decides. The type
is then promoted until it holds the types of the other files, as int32 and float64 become float64. With `most_decide`,
only text files promote a type, unless it is null or contains null, and none adds a field to a struct: the fields of
structs are those that most files agree on, as the columns are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import InvalidInput, RawFileRefused, SchemaMismatch
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import redact
from lance_ops.core.schema import CaseRule, spelled_as
from lance_ops.maintenance.ingest.decoding import NO_UTF8
from lance_ops.maintenance.ingest.raw_files import RawFile, RawReader, RawReading, is_text, raw_format
from lance_ops.maintenance.ingest.raw_names import shown_uri
from lance_ops.runners import InThreads, Job, Runner

__all__ = ["FileDisagrees", "FoundSchemas", "unified_raw_schema"]

_FILES_PER_TASK = 64
_BYTES_OF_COLUMNS = 1 << 20
"""About how many bytes are read of a long file: its footer, or its first block of text."""


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
    runner: Runner | None = None,
    job: Job | None = None,
    known: FoundSchemas | None = None,
) -> pa.Schema:
    """Return a schema with the columns of the table, if there is one, and of all files.

    The runner's tasks read the files; without a runner, this process does, one after the other. Files in `known` are
    not read, and those that are read are added to it. Without a `job`, theirs is named after the first file.

    With `most_decide`, files with the same set of columns form a group. The schema has the columns of the largest group
    and those of `types`; if two groups are equally large, of the one whose file comes first. Each column has its most
    frequent type, promoted for the other numbers of text files; of structs, the fields count first, as the columns do,
    and then the types. With `mixed_as_text`, a CSV column of numbers in some files and of texts in others is text;
    without it, it is what most files say. Reading the files with this schema then refuses the others.

    A new column of `types` has that type, whatever the files say, and without a table these are the names of CSV
    without a header. Text files change a type of the table only where it is null, or where a struct lacks a field.
    Raises `FileDisagrees` for a file whose type of a column cannot be promoted together with that of most files, or
    whose text is not UTF-8; and what `RawReader.schema` raises.
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
    spelled = _spelled(files, found, list(unified.values()), types, case_rule)
    wanted = {*unified, *types, *_columns_of_most(spelled)} if most_decide else None
    for name, given in _by_column(spelled).items():
        if wanted is not None and name not in wanted:
            continue
        for number, each in _types_of_most_first(given):
            if table is None or name not in table.names:
                _check_encoding(files[number], each, types)
            if name not in unified:
                unified[name] = each.with_type(types.get(name, each.type))
            elif name not in types:
                before = unified[name]
                promoted = _promoted(before, each, files[number], table, mixed_as_text=mixed_as_text)
                is_guess = is_text(files[number].uri)  # whole numbers say nothing against fractions
                if not most_decide:
                    unified[name] = promoted
                elif is_guess or before.type == each.type or _holds_null(before.type):
                    unified[name] = promoted.with_type(_with_fields_of(before.type, promoted.type))
    return pa.schema(list(unified.values()))


def _check_encoding(file: RawFile, new: pa.Field, types: Mapping[str, pa.DataType]) -> None:
    """Refuse a column of CSV that Arrow takes for binary, because it is not UTF-8, unless it is declared."""
    if pt.is_binary(new.type) and new.name not in types and is_text(file.uri):
        raise FileDisagrees(shown_uri(file.uri), f"column {new.name!r}: {NO_UTF8}")


def _spelled(
    files: Sequence[RawFile],
    found: Sequence[pa.Schema],
    table: Sequence[pa.Field],
    types: Mapping[str, pa.DataType],
    case_rule: CaseRule,
) -> list[pa.Schema]:
    """Return the files' schemas with one spelling of each name: the table's, the declared one, or the first file's."""
    known = {each.name: each for each in table}
    spelled = []
    for file, schema in zip(files, found, strict=True):
        declared = [pa.field(name, kind) for name, kind in types.items() if name not in known]
        try:
            spelled.append(spelled_as(schema, pa.schema([*known.values(), *declared]), case_rule))
        except SchemaMismatch as error:
            raise FileDisagrees(shown_uri(file.uri), str(error)) from error
        for each in spelled[-1]:
            known.setdefault(each.name, each)
    return spelled


def _columns_of_most(schemas: Sequence[pa.Schema]) -> tuple[str, ...]:
    """Return the columns of the largest group; a `Counter` keeps the order in which it met equally large ones."""
    ((names, _),) = Counter(tuple(sorted(schema.names)) for schema in schemas).most_common(1)
    return names


def _by_column(schemas: Sequence[pa.Schema]) -> dict[str, list[tuple[int, pa.Field]]]:
    """Return each column's fields with the numbers of their files."""
    fields = defaultdict(list)
    for number, schema in enumerate(schemas):
        for each in schema:
            fields[each.name].append((number, each))
    return fields


def _types_of_most_first(given: Sequence[tuple[int, pa.Field]]) -> Iterator[tuple[int, pa.Field]]:
    """Yield the first file's field of each type of a column: of the most frequent fields within, then types, first."""
    first: dict[pa.Field, tuple[int, pa.Field]] = {}
    for number, each in given:
        first.setdefault(each, (number, each))
    num_files = Counter(each.type for _, each in given)
    num_alike: Counter[frozenset[str]] = Counter()
    for kind, count in num_files.items():
        num_alike[_paths_within(kind)] += count

    def rank(found: tuple[int, pa.Field]) -> tuple[int, int]:
        return -num_alike[_paths_within(found[1].type)], -num_files[found[1].type]

    yield from sorted(first.values(), key=rank)


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
    if is_of_table and is_text(file.uri):
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
            shown_uri(file.uri),
            f"it disagrees with other files: column {known.name!r} is {given.type} here and {known.type} there: "
            "declare a schema",
        ) from error
