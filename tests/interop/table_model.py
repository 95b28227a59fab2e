"""The model of a table as plain dictionaries: the content of each version, row by row.

Each column and struct field has an id that does not change with its name. Values are stored by id, and a value whose
id belongs to no column is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa

__all__ = [
    "KEY",
    "Change",
    "Column",
    "Condition",
    "Leaf",
    "Nothing",
    "Record",
    "Row",
    "State",
    "Terse",
    "Unseen",
    "Value",
]

KEY = "k"
"""The column whose values are unique in every version."""

Value: TypeAlias = Any
"""A number, a string or None; a dictionary for a struct, a list of dictionaries for a list of structs."""

Record = dict[str, Value]


class Unseen(AssertionError):
    """A change was committed over rows that another writer had changed: that writer's work is lost."""


class Terse:
    """A value that a failing example prints by its `repr` instead of with all of its fields."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))


@dataclass(frozen=True, slots=True)
class Column(Terse):
    """A column or a struct field; it keeps its id when it is renamed.

    A cast makes a new column from the old one. With `fields` it is a struct, or a list of such structs, and
    `leaf_type` is ignored.
    """

    id: int
    name: str
    leaf_type: pa.DataType
    cast_from: int | None = None
    fields: tuple[Column, ...] = ()
    is_list: bool = False
    is_late: bool = False
    """Whether it was added to a struct, so that older rows have no values of it in any file."""

    def __repr__(self) -> str:
        return f"{self.name}#{self.id}: {self.type}"

    @property
    def type(self) -> pa.DataType:
        """The Arrow type."""
        if not self.fields:
            return self.leaf_type
        struct = pa.struct([(each.name, each.type) for each in self.fields])
        return pa.list_(struct) if self.is_list else struct

    @property
    def is_struct(self) -> bool:
        """Whether this is a struct outside of any list."""
        return bool(self.fields) and not self.is_list

    @property
    def prefix(self) -> str:
        """The prefix of the fields' paths."""
        return f"{self.name}.item." if self.is_list else f"{self.name}."

    def walk(self) -> Iterator[Column]:
        """Yield this column and all fields inside it."""
        yield self
        for each in self.fields:
            yield from each.walk()

    def shown(self, value: Value) -> Value:
        """Return a stored value as readers see it, by the current field names."""
        return self._each(value, lambda struct: {each.name: each.shown(struct.get(each.id)) for each in self.fields})

    def kept(self, value: Value) -> Value:
        """Return a value by the ids of its fields."""
        return self._each(
            value, lambda struct: {each.id: each.kept(struct[each.name]) for each in self.fields if each.name in struct}
        )

    def _each(self, value: Value, convert: Callable[[Any], Value]) -> Value:
        """Return a value with its structs converted, one or a list of them."""
        if value is None or not self.fields:
            return value
        if self.is_list:
            return [None if item is None else convert(item) for item in value]
        return convert(value)


@dataclass(frozen=True, slots=True)
class Leaf(Terse):
    """A column of single values, or a field of a struct: filters and indices use leaves."""

    path: str
    column: Column

    def __repr__(self) -> str:
        return f"{self.path}#{self.column.id}: {self.type}"

    @property
    def type(self) -> pa.DataType:
        """The Arrow type."""
        return self.column.type

    @property
    def index_name(self) -> str:
        """The name of an index on this leaf."""
        return f"index_{self.column.id}"

    def of(self, record: Record) -> Value:
        """Return the value in a record; it is null if its struct is null."""
        value: Value = record
        for name in self.path.split("."):
            value = None if value is None else value[name]
        return value


@dataclass(frozen=True, slots=True)
class Row:
    """A row's values by column id, and the versions that created it and last changed it."""

    values: Mapping[int, Value]
    created_at: int
    updated_at: int


@dataclass(frozen=True)
class State:
    """One version's content: rows by key."""

    columns: tuple[Column, ...] = ()
    rows: Mapping[int, Row] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow fields."""
        return pa.schema([(column.name, column.type) for column in self.columns])

    @property
    def leaves(self) -> list[Leaf]:
        """The key first, then every other leaf outside of lists."""
        outer = [Leaf(column.name, column) for column in self.columns if not column.fields]
        inner = [
            Leaf(column.prefix + each.name, each)
            for column in self.columns
            if column.is_struct
            for each in column.fields
        ]
        return outer + inner

    def walk(self) -> Iterator[Column]:
        """Yield every column and every field inside."""
        for column in self.columns:
            yield from column.walk()

    def column(self, path: str) -> Column:
        """Return the column, or the field of a struct, at a path."""
        found = {column.name: column for column in self.columns}
        for column in self.columns:
            found |= {column.prefix + each.name: each for each in column.fields}
        return found[path]

    def edited(self, column_id: int, edit: Callable[[Column], Column | None]) -> State:
        """Return this state with one column replaced by `edit`'s result, or removed."""
        return replace(self, columns=_edited(self.columns, column_id, edit))

    def record(self, row: Row) -> Record:
        """Return a row's values by the columns' names."""
        return {column.name: column.shown(row.values.get(column.id)) for column in self.columns}

    def records(self, condition: Condition | None = None) -> list[Record]:
        """Return the rows for which a condition is true, by key."""
        found = (self.record(self.rows[key]) for key in sorted(self.rows))
        return [record for record in found if condition is None or condition.holds(record)]

    def keys_where(self, condition: Condition | None) -> set[int]:
        """Return the keys of the rows for which a condition is true."""
        return {key for key, row in self.rows.items() if condition is None or condition.holds(self.record(row))}

    def values_of(self, record: Record) -> dict[int, Value]:
        """Return a record's values by column id."""
        return {(column := self.column(name)).id: column.kept(value) for name, value in record.items()}

    def row_of(self, record: Record, version: int) -> Row:
        """Return a new row of a version."""
        return Row(self.values_of(record), version, version)


@dataclass(frozen=True, slots=True)
class Condition(Terse):
    """A filter as SQL, and the equivalent Python predicate."""

    sql: str
    holds: Callable[[Record], bool]

    def __repr__(self) -> str:
        return self.sql


class Change:
    """The effect of a step: it computes the next version's content from the newest one's."""

    @property
    def label(self) -> str:
        """The change's name."""
        return type(self).__name__

    def applied(self, planned: State, newest: State, version: int) -> State:
        """Return the content of `version`, for a change planned on one state and committed on another."""
        raise NotImplementedError

    def changes_nothing(self, state: State) -> bool:
        """Return whether a state stays as it is."""
        try:
            return self.applied(state, state, 0) == state
        except KeyError:  # a column that the change needs is missing
            return False


@dataclass(frozen=True)
class Nothing(Change):
    """A change that keeps all rows: compaction, indexing."""

    kind: str

    @property
    def label(self) -> str:
        return self.kind

    def applied(self, planned: State, newest: State, version: int) -> State:
        return newest


def _edited(columns: tuple[Column, ...], column_id: int, edit: Callable[[Column], Column | None]) -> tuple[Column, ...]:
    made: list[Column] = []
    for column in columns:
        new = edit(column) if column.id == column_id else _inside(column, column_id, edit)
        made += [new] if new is not None else []
    return tuple(made)


def _inside(column: Column, column_id: int, edit: Callable[[Column], Column | None]) -> Column | None:
    """Return a column with its fields edited, or None if no field is left."""
    if not column.fields:
        return column
    fields = _edited(column.fields, column_id, edit)
    return replace(column, fields=fields) if fields else None
