"""Table functions for those who stay with `spark.sql`.

    SELECT * FROM lance_versions('/data/flights.lance', branch => 'b')
    SELECT * FROM lance_fragments('/data/flights.lance', version => 3)
    SELECT * FROM lance_indices('/data/flights.lance', tag => 'release')
    SELECT name, num_rows FROM my_tables AS t, LATERAL lance_fragments(t.uri)
    SELECT * FROM lance_scan('/data/flights.lance', columns => 'id,delay', filter => 'delay > 60', version => 3)
    SELECT * FROM lance_changes('/data/flights.lance', 3, 5, branch => 'b')

A function runs in one task. Its rows pass through Python one by one: Spark has no Arrow functions whose columns depend
on their arguments, and none that can be joined `LATERAL`. So `lance_scan` and `lance_changes` are for small answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, UserDefinedTableFunction

from lance_ops.core.arrow import is_any_list
from lance_ops.core.errors import InvalidInput, UnsupportedFeature, WrongType
from lance_ops.core.records import dataclass
from lance_ops.maintenance.health import VersionSummary, index_coverage, timeline
from lance_ops.snapshot import Snapshot
from lance_ops.spark.data_source import (
    LanceReader,
    SourceOptions,
    change_schema,
    read_changes,
    visible_schema,
    without_frames,
)

__all__ = ["register_functions"]

_TEXTS = pa.list_(pa.field("element", pa.string()))
_VERSIONS = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("num_rows", pa.int64()),
        ("num_fragments", pa.int64()),
        ("num_deleted_rows", pa.int64()),
        ("size_bytes", pa.int64()),
        ("indexed_ratio", pa.float64()),
        ("tags", _TEXTS),
        ("batches", _TEXTS),
    ]
)
_FRAGMENTS = pa.schema(
    [
        ("fragment_id", pa.int64()),
        ("num_rows", pa.int64()),
        ("physical_rows", pa.int64()),
        ("num_files", pa.int64()),
        ("size_bytes", pa.int64()),
    ]
)
_INDICES = pa.schema(
    [
        ("name", pa.string()),
        ("type", pa.string()),
        ("num_indexed_rows", pa.int64()),
        ("num_unindexed_rows", pa.int64()),
        ("num_indexed_fragments", pa.int64()),
        ("num_unindexed_fragments", pa.int64()),
    ]
)


def register_functions(session: SparkSession, storage_options: Mapping[str, str] | None = None) -> None:
    """Register the table functions in the session.

    The storage options open the tables of all of them. They travel inside the pickled functions, which no plan shows.
    """
    options = dict(storage_options or {})
    listings: tuple[tuple[str, Callable[[Snapshot], pa.Table], pa.Schema], ...] = (
        ("lance_fragments", _fragments, _FRAGMENTS),
        ("lance_indices", _indices, _INDICES),
    )
    for name, read, schema in listings:
        _register(session, name, _listing(read, options), from_arrow_schema(schema))
    _register(session, "lance_versions", _history(options), from_arrow_schema(_VERSIONS))
    for name, handler in (("lance_scan", _scan(options)), ("lance_changes", _changes(options))):
        _register(session, name, handler)


def _register(session: SparkSession, name: str, handler: type[Any], columns: StructType | None = None) -> None:
    made = udtf(handler, returnType=columns, useArrow=False)  # the other way needs pandas
    session.udtf.register(name, cast(UserDefinedTableFunction, made))


def _history(storage_options: Mapping[str, str]) -> type[Any]:
    """Return `lance_versions(uri, branch)`. Its class is pickled by value, because no module holds it under a name."""

    class History:
        def eval(self, uri: str | None, branch: str | None = None) -> Iterator[tuple[Any, ...]]:
            yield from _listed(_versions, storage_options, uri, branch=branch)

    return History


def _listing(read: Callable[[Snapshot], pa.Table], storage_options: Mapping[str, str]) -> type[Any]:
    """Return a function of a URI and of what names a version of it."""

    class Listing:
        def eval(
            self,
            uri: str | None,
            version: int | None = None,
            tag: str | None = None,
            branch: str | None = None,
            timestamp: str | None = None,
        ) -> Iterator[tuple[Any, ...]]:
            named = {"version": version, "tag": tag, "branch": branch, "timestamp": timestamp}
            yield from _listed(read, storage_options, uri, **named)

    return Listing


def _listed(
    read: Callable[[Snapshot], pa.Table], storage_options: Mapping[str, str], uri: str | None, **named: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield what is read of a version; nothing without a URI: a LATERAL join passes NULL for a row that has none."""
    if uri is None:
        return
    with without_frames():
        for batch in read(_source_options(storage_options, uri, **named).open()).to_batches():
            yield from _rows(batch)


def _versions(snapshot: Snapshot) -> pa.Table:
    """Return the retained versions, oldest first."""
    return pa.Table.from_pylist([_row(summary) for summary in timeline(snapshot)], schema=_VERSIONS)


def _row(summary: VersionSummary) -> dict[str, object]:
    return {name: getattr(summary, name) for name in _VERSIONS.names}


def _fragments(snapshot: Snapshot) -> pa.Table:
    """Return the fragments in the order of their rows."""
    rows = [
        {
            "fragment_id": fragment.id,
            "num_rows": snapshot.num_live_rows(fragment),
            "physical_rows": fragment.physical_rows,
            "num_files": len(fragment.files),
            "size_bytes": sum(file.file_size_bytes for file in fragment.files),
        }
        for fragment in snapshot.fragments
    ]
    return pa.Table.from_pylist(rows, schema=_FRAGMENTS)


def _indices(snapshot: Snapshot) -> pa.Table:
    """Return the indices with what they cover."""
    rows = [
        {
            "name": each.name,
            "type": each.type_name,
            **{name: getattr(each, name) for name in _INDICES.names if name.startswith("num_")},
        }
        for each in index_coverage(snapshot)
    ]
    return pa.Table.from_pylist(rows, schema=_INDICES)


@dataclass
class _Settled(AnalyzeResult):
    """What Spark keeps of a call between its plan and its rows: the columns, and the version that they are of."""

    version: SourceOptions | None = None

    @classmethod
    def of(cls, schema: StructType, options: SourceOptions) -> _Settled:
        """Return the columns and the version, without the storage options, which no plan shows."""
        return cls(schema=schema, version=replace(options, storage_options={}))

    def options(self, storage_options: Mapping[str, str]) -> SourceOptions:
        """Return what opens the version."""
        assert self.version is not None
        return replace(self.version, storage_options=dict(storage_options))


def _scan(storage_options: Mapping[str, str]) -> type[Any]:
    """Return `lance_scan(uri, version, columns, filter, tag, branch, timestamp)`; all but the URI may be left out."""
    options_of = partial(_source_options, storage_options)

    class Scan:
        def __init__(self, settled: _Settled) -> None:
            self._settled = settled

        @staticmethod
        def analyze(
            uri: AnalyzeArgument,
            version: AnalyzeArgument | None = None,
            columns: AnalyzeArgument | None = None,
            filter: AnalyzeArgument | None = None,  # noqa: A002 - the option's name
            tag: AnalyzeArgument | None = None,
            branch: AnalyzeArgument | None = None,
            timestamp: AnalyzeArgument | None = None,
        ) -> AnalyzeResult:
            given = _named(version, columns, filter, tag, branch, timestamp)
            with without_frames():
                values = {name: _constant(argument) for name, argument in given.items()}
                settled = options_of(_constant(uri), **values).with_found_version()
                return _Settled.of(_reader(settled)[0], settled)

        def eval(
            self,
            uri: str,
            version: int | None = None,
            columns: str | None = None,
            filter: str | None = None,  # noqa: A002 - the option's name
            tag: str | None = None,
            branch: str | None = None,
            timestamp: str | None = None,
        ) -> Iterator[tuple[Any, ...]]:
            with without_frames():
                _, reader = _reader(self._settled.options(storage_options))
                for partition in reader.partitions():
                    for batch in reader.read(partition):
                        yield from _rows(batch)

    return Scan


def _reader(settled: SourceOptions) -> tuple[StructType, LanceReader]:
    """Return the columns of a scan and its reader, which has checked the filter."""
    columns = from_arrow_schema(visible_schema(settled))
    return columns, LanceReader(settled, columns)


def _named(
    version: Any,
    columns: Any,
    filter: Any,  # noqa: A002 - the option's name
    tag: Any,
    branch: Any,
    timestamp: Any,
) -> dict[str, Any]:
    of_version = {"version": version, "tag": tag, "branch": branch, "timestamp": timestamp}
    return {**of_version, "columns": columns, "filter": filter}


def _source_options(storage_options: Mapping[str, str], uri: Any, **given: Any) -> SourceOptions:
    texts = {name: str(value) for name, value in given.items() if value is not None}
    private = {f"storage_options.{key}": value for key, value in storage_options.items()}
    return SourceOptions.parse({"path": _uri(uri), **texts, **private})


def _changes(storage_options: Mapping[str, str]) -> type[Any]:
    """Return `lance_changes(uri, begin, end, branch)`: what became of rows from one version to the other."""
    options_of = partial(_options_of_branch, storage_options)

    class Changes:
        def __init__(self, settled: _Settled) -> None:
            self._settled = settled

        @staticmethod
        def analyze(
            uri: AnalyzeArgument,
            begin: AnalyzeArgument,
            end: AnalyzeArgument | None = None,
            branch: AnalyzeArgument | None = None,
        ) -> AnalyzeResult:
            with without_frames():
                settled = options_of(*map(_constant, (uri, end, branch))).with_found_version()
                return _Settled.of(from_arrow_schema(change_schema(settled.open())), settled)

        def eval(
            self, uri: str, begin: int, end: int | None = None, branch: str | None = None
        ) -> Iterator[tuple[Any, ...]]:
            with without_frames():
                opened = self._settled.options(storage_options).open()
                for batch in read_changes(_version(begin), opened, change_schema(opened)):
                    yield from _rows(batch)

    return Changes


def _options_of_branch(storage_options: Mapping[str, str], uri: Any, version: Any, branch: Any) -> SourceOptions:
    number = None if version is None else _version(version)
    return _source_options(storage_options, uri, version=number, branch=branch)


def _uri(given: Any) -> str:
    if not isinstance(given, str):
        raise WrongType(
            f"the first argument of a table function is the dataset's path or URI in quotes, not {given!r}, as in "
            "lance_versions('/data/flights.lance')"
        )
    return given


def _version(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise WrongType(f"lance_changes('/data/flights.lance', 3, 5) takes versions as whole numbers, not {given!r}")
    return given


def _constant(argument: AnalyzeArgument | None) -> Any:
    """Return the value of an argument, on which the columns of the answer depend."""
    if argument is None:
        return None
    if argument.value is None and not argument.isConstantExpression:
        raise InvalidInput("the arguments of a table function on Lance tables are constants")
    return argument.value


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yield a batch's rows; nested values are dictionaries and lists, and a struct that is a map's key is a `Row`.

    Raises `UnsupportedFeature` naming a column whose values Python cannot hold.
    """
    columns = [_values(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
    return zip(*columns, strict=True)


def _values(name: str, column: pa.Array) -> list[Any]:
    try:
        convert = _conversion(column.type)
        values = column.to_pylist()
        return values if convert is None else [convert(value) for value in values]
    except (ValueError, OverflowError, TypeError) as error:
        raise UnsupportedFeature(
            f"column {name!r} in a table function, whose rows pass through Python: {error}. Name the other columns in "
            "columns => '…', or read the table by lance_ops.spark.sql or format('lance')"
        ) from error


def _conversion(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """Return what makes dictionaries of the lists of pairs that Arrow makes of maps; None for a type without maps.

    As in what Spark itself collects, the last one of repeated keys wins.
    """
    if pt.is_map(kind):
        key, item = _key(kind.key_type), _conversion(kind.item_type) or _same
        return lambda pairs: None if pairs is None else {key(k): item(value) for k, value in pairs}
    if pt.is_struct(kind):
        found = {field.name: convert for field in kind if (convert := _conversion(field.type)) is not None}
        if found:
            return lambda parts: parts and parts | {name: convert(parts[name]) for name, convert in found.items()}
    if is_any_list(kind):
        each = _conversion(kind.value_type)
        if each is not None:
            return lambda values: None if values is None else [each(value) for value in values]
    return None


def _key(kind: pa.DataType) -> Callable[[Any], Any]:
    """Return what makes a key of a map out of Arrow's value; raise `TypeError` if Python has no such key."""
    if pt.is_struct(kind):
        made, parts = Row(*(field.name for field in kind)), [(field.name, _key(field.type)) for field in kind]
        return lambda value: None if value is None else made(*(convert(value[name]) for name, convert in parts))
    if pt.is_nested(kind):
        raise TypeError(f"a map with keys of type {kind}")
    return _same


def _same(value: Any) -> Any:
    return value
