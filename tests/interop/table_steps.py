"""Steps on a table as hypothesis draws them: what a library is asked to do, and what that means to the model."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

import lance_ops
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import write
from lance_ops.snapshot.fragment_writer import FragmentLimits
from lance_ops.snapshot.table_schema import table_schema
from tests.interop.table_model import (
    KEY,
    AddColumn,
    Append,
    Cast,
    Change,
    Column,
    Condition,
    Delete,
    DropColumn,
    Matched,
    MergeInsert,
    Overwrite,
    Record,
    Rename,
    State,
    Update,
    Value,
)

__all__ = ["Step", "append", "cast", "conditions", "drop", "merge_insert", "overwrite", "rename", "update", "values_of"]

NAMES = ("a", "b", "c", "d")
TYPES = (pa.int64(), pa.int32(), pa.float64(), pa.string())
CASTS = {pa.int64(): pa.int32(), pa.int32(): pa.int64(), pa.float64(): pa.float32(), pa.float32(): pa.float64()}


@dataclass(frozen=True)
class Step:
    """Something to do with a handle, which may be replaced by the one returned, and what it means."""

    act: Callable[[Any], Any]
    change: Change
    expected_error: str | None = None
    """What the error says that the step must end with."""


def values_of(kind: pa.DataType) -> st.SearchStrategy[Value]:
    """Return a strategy of a column's values, few enough for rows to have some in common."""
    if pa.types.is_string(kind):
        return st.sampled_from([None, "", "x", "yy"])
    numbers = st.integers(0, 4)
    return st.none() | (numbers.map(float) if pa.types.is_floating(kind) else numbers)


def conditions(columns: tuple[Column, ...]) -> st.SearchStrategy[Condition]:
    """Return a strategy of filters on columns, the key among them."""
    rest = st.tuples(st.integers(2, 5), st.integers(0, 3)).map(
        lambda drawn: Condition(
            f"{KEY} % {drawn[0]} = {drawn[1]}", lambda record: _number(record[KEY]) % drawn[0] == drawn[1]
        )
    )
    others = [column for column in columns if column.name != KEY]
    if not others:
        return rest
    return rest | st.sampled_from(others).flatmap(condition_on)


def condition_on(column: Column) -> st.SearchStrategy[Condition]:
    """Return a strategy of filters on one column, which an index could answer."""
    name = column.name
    null = Condition(f"{name} IS NULL", lambda record: record[name] is None)
    some = values_of(column.type).filter(lambda value: value is not None)
    return st.just(null) | some.flatmap(lambda value: st.sampled_from(_compared(name, value)))


def probes(column: Column) -> list[Condition]:
    """Return filters on a column that between them meet every row."""
    name, middle = column.name, "x" if pa.types.is_string(column.type) else 2
    null = Condition(f"{name} IS NULL", lambda record: record[name] is None)
    return [null, *_compared(name, middle)]


def append(records: tuple[Record, ...], schema: pa.Schema, rows_per_file: int, version: str | None) -> Step:
    """Append rows; the reference may do so in files of another version than the table's."""
    table = pa.Table.from_pylist(list(records), schema=schema)

    def act(handle: Any) -> Any:
        if isinstance(handle, lance_ops.LanceDataset):  # `insert` and `write_dataset` turn to the newest version
            snapshot = write.append(handle.snapshot, table.to_batches(), FragmentLimits(rows_per_file), {})
            return lance_ops.LanceDataset(snapshot)
        return handle.insert(table, max_rows_per_file=rows_per_file, data_storage_version=version)

    return Step(act, Append(records))


def overwrite(columns: tuple[Column, ...], records: tuple[Record, ...], version: str | None) -> Step:
    change = Overwrite(columns, records)
    table = pa.Table.from_pylist(list(records), schema=State(columns).schema)

    def act(handle: Any) -> Any:
        if isinstance(handle, lance_ops.LanceDataset):
            snapshot = handle.snapshot
            file_version = FileVersion.parse(version) if version else snapshot.file_version
            schema = table_schema(table.schema, file_version)
            batches = table.to_batches()
            return lance_ops.LanceDataset(
                write.overwrite(snapshot, batches, schema, file_version, FragmentLimits(3), {})
            )
        return handle.insert(table, mode="overwrite", max_rows_per_file=3, data_storage_version=version)

    return Step(act, change)


def delete(condition: Condition) -> Step:
    return Step(lambda handle: handle.delete(condition.sql), Delete(condition))


@st.composite
def update(draw: st.DrawFn, state: State) -> Step:
    column = draw(st.sampled_from(state.columns[1:]))
    condition = draw(conditions(state.columns))
    if pa.types.is_string(column.type) or draw(st.booleans()):
        literal = draw(values_of(column.type).filter(lambda value: value is not None))
        sql, value = _literal(literal), lambda _: literal
    else:
        sql, value = f"{column.name} + 1", lambda old: None if old is None else old + 1
    return Step(
        lambda handle: handle.update({column.name: sql}, where=condition.sql), Update(column.name, value, condition)
    )


@st.composite
def merge_insert(draw: st.DrawFn, state: State, known: list[int], new: list[int]) -> Step:
    """Draw a merge of rows with known keys and with new ones."""
    keys = [*draw(st.lists(st.sampled_from(known), unique=True, max_size=4)), *new] if known else new
    names = [column.name for column in state.columns[1:]]
    some = draw(st.lists(st.sampled_from(names), unique=True, min_size=1)) if names else []
    columns = [column for column in state.columns if column.name == KEY or column.name in some]
    records = tuple({KEY: key, **{column.name: draw(values_of(column.type)) for column in columns[1:]}} for key in keys)
    compared = next((column.name for column in columns[1:] if not pa.types.is_string(column.type)), None)
    whole = len(columns) == len(state.columns)
    when_matched = draw(st.sampled_from(["update", "update if", "nothing", "delete", "fail"]))
    inserts = draw(st.booleans())
    unmatched = draw(st.sampled_from(["keep", "keep", "keep", "delete", "delete some"]))
    if when_matched == "update if" and compared is None:
        when_matched = "update"
    if when_matched in ("nothing", "fail"):
        inserts = True
    if when_matched == "delete" and unmatched != "keep":
        inserts = True  # without, the reference ends with an internal error
    if not whole and (unmatched != "keep" or when_matched == "fail"):
        unmatched, when_matched = "keep", "update"
    some_of_them = draw(conditions(state.columns))

    def build(handle: Any) -> Any:
        builder = handle.merge_insert(KEY)
        match when_matched:
            case "update":
                builder = builder.when_matched_update_all()
            case "update if":
                builder = builder.when_matched_update_all(f"source.{compared} > target.{compared}")
            case "delete":
                builder = builder.when_matched_delete()
            case "fail":
                builder = builder.when_matched_fail()
        if inserts:
            builder = builder.when_not_matched_insert_all()
        if unmatched != "keep":
            expression = some_of_them.sql if unmatched == "delete some" else None
            builder = builder.when_not_matched_by_source_delete(expression)
        return builder.execute(pa.Table.from_pylist(list(records), schema=State(tuple(columns)).schema))

    def greater(source: Record, target: Record) -> bool:
        ours, theirs = source[str(compared)], target[str(compared)]
        return ours is not None and theirs is not None and ours > theirs  # type: ignore[operator] # of one type

    updates = {"update": lambda source, target: True, "update if": greater}.get(when_matched)
    change = MergeInsert(
        records,
        Matched(updates, when_matched == "delete"),
        inserts,
        unmatched != "keep",
        some_of_them if unmatched == "delete some" else None,
    )
    fails = when_matched == "fail" and bool(set(keys) & state.rows.keys())
    return Step(build, change, "match" if fails else None)


@st.composite
def add_column(draw: st.DrawFn, state: State, column_id: int) -> Step:
    name = draw(st.sampled_from([name for name in NAMES if name not in state.schema.names]))
    match draw(st.sampled_from(["computed", "null", "stream"])):
        case "null":
            kind = draw(st.sampled_from(TYPES))
            field = pa.field(name, kind)
            return Step(lambda handle: handle.add_columns(field), AddColumn(Column(column_id, name, kind), None))
        case "stream":
            column = Column(column_id, name, pa.int32())

            def act(handle: Any) -> Any:
                keys = handle.to_table([KEY]).column(KEY).to_pylist()
                return handle.add_columns(pa.table({name: pa.array([key % 3 for key in keys], pa.int32())}))

            return Step(act, AddColumn(column, lambda record: _number(record[KEY]) % 3))
        case _:
            column = Column(column_id, name, pa.int64())
            return Step(
                lambda handle: handle.add_columns({name: f"{KEY} * 2"}),
                AddColumn(column, lambda record: _number(record[KEY]) * 2),
            )


@st.composite
def drop(draw: st.DrawFn, state: State) -> Step:
    name = draw(st.sampled_from(state.columns[1:])).name
    return Step(lambda handle: handle.drop_columns([name]), DropColumn(name))


@st.composite
def rename(draw: st.DrawFn, state: State) -> Step:
    name = draw(st.sampled_from(state.columns[1:])).name
    new = draw(st.sampled_from([name for name in NAMES if name not in state.schema.names]))
    return Step(lambda handle: handle.alter_columns({"path": name, "name": new}), Rename(name, new))


def cast(column: Column, column_id: int) -> Step:
    kind = CASTS[column.type]
    return Step(
        lambda handle: handle.alter_columns({"path": column.name, "data_type": kind}),
        Cast(column.name, column_id, kind),
    )


def _compared(name: str, value: Value) -> list[Condition]:
    def compare(sign: str, holds: Callable[[Any, Any], bool]) -> Condition:
        return Condition(
            f"{name} {sign} {_literal(value)}",
            lambda record: record[name] is not None and holds(record[name], value),
        )

    return [compare("<", operator.lt), compare("=", operator.eq), compare(">", operator.gt)]


def _number(value: Value) -> int:
    assert isinstance(value, int | float)
    return int(value)


def _literal(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)
