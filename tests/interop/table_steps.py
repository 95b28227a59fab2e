"""Hypothesis strategies for steps on rows: the library call, and its effect on the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

import lance_ops
from lance_ops.core.versions import FileVersion
from lance_ops.fragment import write_fragments
from lance_ops.writing import create_append_overwrite as write
from lance_ops.writing.fragment_limits import FragmentLimits
from lance_ops.writing.new_table_schema import table_schema
from tests.interop.table_changes import Append, Delete, Matched, MergeInsert, Overwrite, Update
from tests.interop.table_model import KEY, Change, Column, Condition, Record, State, Terse, Value
from tests.interop.table_values import conditions, literal, records_of, some_value_of

__all__ = ["Step", "append", "append_batch", "delete", "merge_insert", "overwrite", "update"]


@dataclass(frozen=True)
class Step(Terse):
    """An action on a handle, which may return a new handle, and its effect on the model."""

    act: Callable[[Any], Any]
    change: Change
    expected_error: str | None = None
    """The message of the error that the step must raise."""
    brings_files: bool = False
    """Whether its files were written before the step, so that they stay if it is refused."""

    def __repr__(self) -> str:
        return repr(self.change)


def append(records: tuple[Record, ...], schema: pa.Schema, rows_per_file: int, version: str | None) -> Step:
    """Append rows; the reference may do so in files of another version than the table's."""
    table = pa.Table.from_pylist(list(records), schema=schema)

    def act(handle: Any) -> Any:
        if isinstance(handle, lance_ops.LanceDataset):  # `insert` and `write_dataset` turn to the newest version
            snapshot = write.append(handle.snapshot, table.to_batches(), FragmentLimits(rows_per_file), {})
            return lance_ops.LanceDataset.of(snapshot)
        return handle.insert(table, max_rows_per_file=rows_per_file, data_storage_version=version)

    return Step(act, Append(records))


def append_batch(parts: list[tuple[Record, ...]], schema: pa.Schema) -> Step:
    """Append the fragments of several writers as one transaction."""
    tables = [pa.Table.from_pylist(list(part), schema=schema) for part in parts]

    def act(handle: Any) -> Any:
        ours = isinstance(handle, lance_ops.LanceDataset)
        write: Callable[..., Any] = write_fragments if ours else import_module("lance.fragment").write_fragments
        prepared = [write(table, handle, return_transaction=True, max_rows_per_file=2) for table in tables]
        return type(handle).commit_batch(handle, prepared)["dataset"]

    return Step(act, Append(tuple(record for part in parts for record in part)), brings_files=True)


def overwrite(columns: tuple[Column, ...], records: tuple[Record, ...], version: str | None) -> Step:
    change = Overwrite(columns, records)
    table = pa.Table.from_pylist(list(records), schema=State(columns).schema)

    def act(handle: Any) -> Any:
        if isinstance(handle, lance_ops.LanceDataset):
            snapshot = handle.snapshot
            file_version = FileVersion.parse(version) if version else snapshot.file_version
            schema = table_schema(table.schema, file_version)
            batches = table.to_batches()
            return lance_ops.LanceDataset.of(
                write.overwrite(snapshot, batches, schema, file_version, FragmentLimits(3), {})
            )
        return handle.insert(table, mode="overwrite", max_rows_per_file=3, data_storage_version=version)

    return Step(act, change)


def delete(condition: Condition) -> Step:
    return Step(lambda handle: handle.delete(condition.sql), Delete(condition))


@st.composite
def update(draw: st.DrawFn, state: State) -> Step:
    column = draw(st.sampled_from(state.columns[1:]))
    condition = draw(conditions(state))
    value: Callable[[Value], Value]
    if column.fields:  # neither library makes a struct of literals, or changes a single field
        sql, value = "NULL", lambda old: None
    elif pa.types.is_string(column.type) or draw(st.booleans()):
        drawn = draw(some_value_of(column))
        sql, value = literal(drawn), lambda _: drawn
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
    columns = tuple(draw(_some_fields(each)) for each in state.columns if each.name == KEY or each.name in some)
    records = draw(records_of(columns, keys))
    compared = next((column.name for column in columns[1:] if _is_number(column)), None)
    whole = columns == state.columns
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
    some_of_them = draw(conditions(state))

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
        return builder.execute(pa.Table.from_pylist(list(records), schema=State(columns).schema))

    def greater(source: Record, target: Record) -> bool:
        ours, theirs = source[str(compared)], target[str(compared)]
        return ours is not None and theirs is not None and bool(ours > theirs)

    updates = {"update": lambda source, target: True, "update if": greater}.get(when_matched)
    change = MergeInsert(
        columns,
        records,
        Matched(updates, when_matched == "delete"),
        inserts,
        unmatched != "keep",
        some_of_them if unmatched == "delete some" else None,
    )
    fails = when_matched == "fail" and bool(set(keys) & state.rows.keys())
    return Step(build, change, "match" if fails else None)


@st.composite
def _some_fields(draw: st.DrawFn, column: Column) -> Column:
    """Draw a struct of some of its fields, or take the column as it is."""
    if not column.is_struct or draw(st.booleans()):
        return column
    chosen = draw(st.sets(st.sampled_from([field.id for field in column.fields]), min_size=1))
    return replace(column, fields=tuple(field for field in column.fields if field.id in chosen))


def _is_number(column: Column) -> bool:
    return not column.fields and not pa.types.is_string(column.type)
