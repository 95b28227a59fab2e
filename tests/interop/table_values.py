"""Hypothesis strategies for tables: columns, values, filters and rows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa

from tests.interop.table_model import KEY, Column, Condition, Leaf, Record, State, Value

__all__ = [
    "NAMES",
    "TYPES",
    "condition_on",
    "conditions",
    "literal",
    "new_column",
    "probes",
    "records_of",
    "some_value_of",
    "values_of",
]

NAMES = ("a", "b", "c", "d")
"""The names for columns and struct fields."""

TYPES = (pa.int64(), pa.int32(), pa.float64(), pa.string())


@st.composite
def new_column(draw: st.DrawFn, ids: Iterator[int], name: str, *, nested: bool) -> Column:
    """Draw a column of single values; if `nested`, also of structs or lists of structs."""
    shape = draw(st.sampled_from(["leaf", "struct", "list"])) if nested else "leaf"
    if shape == "leaf":
        return Column(next(ids), name, draw(st.sampled_from(TYPES)))
    fields = tuple(Column(next(ids), each, draw(st.sampled_from(TYPES))) for each in NAMES[:2])
    return Column(next(ids), name, pa.null(), fields=fields, is_list=shape == "list")


def values_of(column: Column) -> st.SearchStrategy[Value]:
    """Return a strategy of a column's values, including null; they are few, so that rows share some."""
    return st.none() | some_value_of(column)


def some_value_of(column: Column) -> st.SearchStrategy[Value]:
    """Return a strategy of a column's values that are not null."""
    if column.fields:
        struct = st.fixed_dictionaries({each.name: values_of(each) for each in column.fields})
        return st.lists(st.none() | struct, max_size=2) if column.is_list else struct
    if pa.types.is_string(column.type):
        return st.sampled_from(["", "x", "yy"])
    numbers = st.integers(0, 4)
    return numbers.map(float) if pa.types.is_floating(column.type) else numbers


@st.composite
def records_of(draw: st.DrawFn, columns: tuple[Column, ...], keys: list[int]) -> tuple[Record, ...]:
    """Draw a row for each key."""
    others = columns[1:]
    values = st.tuples(*map(values_of, others))
    drawn = draw(st.lists(values, min_size=len(keys), max_size=len(keys)))
    named = [dict(zip((column.name for column in others), row, strict=True)) for row in drawn]
    return tuple({KEY: key, **rest} for key, rest in zip(keys, named, strict=True))


def conditions(state: State) -> st.SearchStrategy[Condition]:
    """Return a strategy of filters on the leaves, the key among them."""
    rest = st.tuples(st.integers(2, 5), st.integers(0, 3)).map(
        lambda drawn: Condition(f"{KEY} % {drawn[0]} = {drawn[1]}", lambda record: record[KEY] % drawn[0] == drawn[1])
    )
    others = state.leaves[1:]
    if not others:
        return rest
    return rest | st.sampled_from(others).flatmap(condition_on)


def condition_on(leaf: Leaf) -> st.SearchStrategy[Condition]:
    """Return a strategy of filters on one leaf, which an index could answer."""
    null = Condition(f"{leaf.path} IS NULL", lambda record: leaf.of(record) is None)
    return st.just(null) | some_value_of(leaf.column).flatmap(lambda value: st.sampled_from(_compared(leaf, value)))


def probes(leaf: Leaf) -> list[Condition]:
    """Return filters on a leaf that together match every row."""
    middle = "x" if pa.types.is_string(leaf.type) else 2
    null = Condition(f"{leaf.path} IS NULL", lambda record: leaf.of(record) is None)
    return [null, *_compared(leaf, middle)]


def literal(value: Value) -> str:
    """Return a single value in SQL."""
    return f"'{value}'" if isinstance(value, str) else str(value)


def _compared(leaf: Leaf, value: Value) -> list[Condition]:
    def compare(sign: str, holds: Callable[[Any, Any], bool]) -> Condition:
        def meets(record: Record) -> bool:
            found = leaf.of(record)
            return found is not None and holds(found, value)

        return Condition(f"{leaf.path} {sign} {literal(value)}", meets)

    return [compare("<", operator.lt), compare("=", operator.eq), compare(">", operator.gt)]
