"""What a table is, as plain dictionaries: what each version holds, and what each change makes of it.

A change is planned on one version and lands on a newer one. It may then say only what it meant: rows that it touches
must be as it saw them, and what others did to other rows stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

__all__ = [
    "KEY",
    "AddColumn",
    "Append",
    "Cast",
    "Change",
    "Column",
    "Condition",
    "Configure",
    "Delete",
    "DropColumn",
    "Matched",
    "MergeInsert",
    "Nothing",
    "Overwrite",
    "Record",
    "Rename",
    "Restore",
    "Row",
    "State",
    "Truncate",
    "Unseen",
    "Update",
    "Value",
]

KEY = "k"
"""The column whose values are unique in every version."""

Value = int | float | str | None
Record = dict[str, Value]


class Unseen(AssertionError):
    """A change landed on rows that were not as it had seen them: somebody's work is lost."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column, which keeps its identity under another name; a cast one is another, made from the one before."""

    id: int
    name: str
    type: pa.DataType
    cast_from: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row's values by column identity, and the versions that brought it and that last changed it."""

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

    def column(self, name: str) -> Column:
        """Return the column of that name."""
        return {column.name: column for column in self.columns}[name]

    def record(self, row: Row) -> Record:
        """Return a row's values by the columns' names."""
        return {column.name: row.values.get(column.id) for column in self.columns}

    def records(self, condition: Condition | None = None) -> list[Record]:
        """Return the rows that a condition is true of, by key."""
        found = (self.record(self.rows[key]) for key in sorted(self.rows))
        return [record for record in found if condition is None or condition.holds(record)]

    def keys_where(self, condition: Condition | None) -> set[int]:
        """Return the keys of the rows that a condition is true of."""
        return {key for key, row in self.rows.items() if condition is None or condition.holds(self.record(row))}

    def row_of(self, record: Record, version: int) -> Row:
        """Return a new row of a version."""
        return Row({self.column(name).id: value for name, value in record.items()}, version, version)


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter in SQL's words, and what it is true of."""

    sql: str
    holds: Callable[[Record], bool]

    def __repr__(self) -> str:
        return self.sql


class Change:
    """What a step means: how the newest version's content becomes the next one's."""

    @property
    def label(self) -> str:
        """What to call it."""
        return type(self).__name__

    def applied(self, planned: State, newest: State, version: int) -> State:
        """Return the content of `version`, for a change planned on one state that lands on another."""
        raise NotImplementedError

    def changes_nothing(self, state: State) -> bool:
        """Return whether a state stays as it is."""
        try:
            return self.applied(state, state, 0) == state
        except KeyError:  # a column that it is about is not there
            return False


@dataclass(frozen=True)
class Nothing(Change):
    """The rows stay: compactions, indices."""

    kind: str

    @property
    def label(self) -> str:
        return self.kind

    def applied(self, planned: State, newest: State, version: int) -> State:
        return newest


@dataclass(frozen=True)
class Append(Change):
    records: tuple[Record, ...]

    def applied(self, planned: State, newest: State, version: int) -> State:
        lost = {column.cast_from for column in newest.columns} & {column.id for column in planned.columns}
        if lost:
            raise Unseen(f"values of columns {lost}, which were cast meanwhile, are appended where nobody reads them")
        return _with_rows(newest, {_key(record): planned.row_of(record, version) for record in self.records})


@dataclass(frozen=True)
class Overwrite(Change):
    columns: tuple[Column, ...]
    records: tuple[Record, ...]

    def applied(self, planned: State, newest: State, version: int) -> State:
        empty = State(self.columns, {}, newest.config)
        return _with_rows(empty, {_key(record): empty.row_of(record, version) for record in self.records})


@dataclass(frozen=True)
class Delete(Change):
    condition: Condition | None

    def applied(self, planned: State, newest: State, version: int) -> State:
        return _without(newest, _seen(planned, newest, planned.keys_where(self.condition)))


class Truncate(Delete):
    def __init__(self) -> None:
        super().__init__(None)


@dataclass(frozen=True)
class Update(Change):
    column: str
    value: Callable[[Value], Value]
    condition: Condition | None

    def applied(self, planned: State, newest: State, version: int) -> State:
        keys = _seen(planned, newest, planned.keys_where(self.condition))
        column = planned.column(self.column).id
        return _with_rows(
            newest,
            {
                key: _changed(newest.rows[key], {column: self.value(newest.rows[key].values.get(column))}, version)
                for key in keys
            },
        )


@dataclass(frozen=True)
class Matched:
    """What becomes of matched rows: `updates` says of (source, target) whether the row takes the source's values."""

    updates: Callable[[Record, Record], bool] | None = None
    deletes: bool = False


@dataclass(frozen=True)
class MergeInsert(Change):
    records: tuple[Record, ...]
    matched: Matched
    inserts: bool
    deletes_unmatched: bool
    unmatched: Condition | None = None

    def applied(self, planned: State, newest: State, version: int) -> State:
        source = {_key(record): record for record in self.records}
        gone, changed = set(), {}
        for key in source.keys() & planned.rows.keys():
            target = planned.record(planned.rows[key])
            if self.matched.deletes:
                gone.add(key)
            elif self.matched.updates is not None and self.matched.updates(source[key], target):
                _seen(planned, newest, [key])
                values = {planned.column(name).id: value for name, value in source[key].items()}
                changed[key] = _changed(newest.rows[key], values, version)
        if self.deletes_unmatched:
            gone |= planned.keys_where(self.unmatched) - source.keys()
        if self.inserts:
            new = source.keys() - planned.rows.keys()
            if new & newest.rows.keys():
                raise Unseen(f"keys {new & newest.rows.keys()} were inserted twice")
            changed |= {key: planned.row_of(source[key], version) for key in new}
        return _with_rows(_without(newest, _seen(planned, newest, gone)), changed)


@dataclass(frozen=True)
class AddColumn(Change):
    """A new column; `value` is None where no row gets one, and no row changes then."""

    column: Column
    value: Callable[[Record], Value] | None

    def applied(self, planned: State, newest: State, version: int) -> State:
        added = replace(newest, columns=(*newest.columns, self.column))
        if self.value is None:
            return added
        if planned.rows != newest.rows:
            raise Unseen("rows came, went or changed while a column was computed")
        return _with_rows(
            added,
            {
                key: _changed(row, {self.column.id: self.value(planned.record(row))}, version)
                for key, row in newest.rows.items()
            },
        )


@dataclass(frozen=True)
class DropColumn(Change):
    name: str

    def applied(self, planned: State, newest: State, version: int) -> State:
        gone = planned.column(self.name).id
        return replace(newest, columns=tuple(column for column in newest.columns if column.id != gone))


@dataclass(frozen=True)
class Rename(Change):
    name: str
    new_name: str

    def applied(self, planned: State, newest: State, version: int) -> State:
        renamed = planned.column(self.name).id
        columns = (replace(column, name=self.new_name) if column.id == renamed else column for column in newest.columns)
        return replace(newest, columns=tuple(columns))


@dataclass(frozen=True)
class Cast(Change):
    name: str
    id: int
    type: pa.DataType

    def applied(self, planned: State, newest: State, version: int) -> State:
        old = planned.column(self.name)
        if old.type == self.type:
            return newest
        if planned.rows != newest.rows:
            raise Unseen("rows came, went or changed while a column was cast")
        new = Column(self.id, self.name, self.type, old.id)
        cast = replace(newest, columns=tuple(new if column == old else column for column in newest.columns))
        return _with_rows(
            cast,
            {key: _changed(row, {new.id: row.values.get(old.id)}, version) for key, row in newest.rows.items()},
        )


@dataclass(frozen=True)
class Restore(Change):
    content: State

    def applied(self, planned: State, newest: State, version: int) -> State:
        return self.content


@dataclass(frozen=True)
class Configure(Change):
    """Keys that are set, or removed where the value is None."""

    values: Mapping[str, str | None]

    def applied(self, planned: State, newest: State, version: int) -> State:
        kept = {key: value for key, value in newest.config.items() if key not in self.values}
        return replace(newest, config=kept | {key: value for key, value in self.values.items() if value is not None})


def _key(record: Record) -> int:
    key = record[KEY]
    assert isinstance(key, int)
    return key


def _seen(planned: State, newest: State, keys: Iterable[int]) -> set[int]:
    """Return the keys, whose rows must be in the newest version as they were planned on."""
    keys = set(keys)
    other = {key for key in keys if planned.rows[key] != newest.rows.get(key)}
    if other:
        raise Unseen(f"rows {sorted(other)} are not any more what was planned on")
    return keys


def _changed(row: Row, values: Mapping[int, Value], version: int) -> Row:
    return Row({**row.values, **values}, row.created_at, version)


def _with_rows(state: State, rows: Mapping[int, Row]) -> State:
    return replace(state, rows={**state.rows, **rows})


def _without(state: State, keys: set[int]) -> State:
    return replace(state, rows={key: row for key, row in state.rows.items() if key not in keys})
