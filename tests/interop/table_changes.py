"""Changes of the model table: each computes the content of a new version from the newest one.

A change is planned on one version and may be committed on a newer one. The rows that it touches must be unchanged in
between, and changes of other rows by other writers are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from tests.interop.table_model import KEY, Change, Column, Condition, Record, Row, State, Unseen, Value

__all__ = [
    "AddColumn",
    "AddField",
    "Append",
    "Cast",
    "Configure",
    "Delete",
    "DropColumn",
    "Matched",
    "MergeInsert",
    "Overwrite",
    "Rename",
    "ReplaceValues",
    "Restore",
    "Truncate",
    "Update",
]


@dataclass(frozen=True)
class Append(Change):
    records: tuple[Record, ...]

    def applied(self, planned: State, newest: State, version: int) -> State:
        lost = {column.cast_from for column in newest.walk()} & {column.id for column in planned.walk()}
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
    """The treatment of matched rows: `updates` of (source, target) says whether the row takes the source's values."""

    updates: Callable[[Record, Record], bool] | None = None
    deletes: bool = False


@dataclass(frozen=True)
class MergeInsert(Change):
    """A merge of rows with some of the table's columns, or with structs of some of their fields."""

    columns: tuple[Column, ...]
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
                old = newest.rows[key]
                changed[key] = _changed(old, self._values(planned, source[key], old.values), version)
        if self.deletes_unmatched:
            gone |= planned.keys_where(self.unmatched) - source.keys()
        if self.inserts:
            new = source.keys() - planned.rows.keys()
            if new & newest.rows.keys():
                raise Unseen(f"keys {new & newest.rows.keys()} were inserted twice")
            changed |= {key: Row(self._values(planned, source[key], {}), version, version) for key in new}
        return _with_rows(_without(newest, _seen(planned, newest, gone)), changed)

    def _values(self, planned: State, record: Record, old: Mapping[int, Value]) -> dict[int, Value]:
        """Return the values of a record; struct fields that it lacks keep their old values."""
        values: dict[int, Value] = {}
        for given in self.columns:
            whole = planned.column(given.name)
            names = {field.name for field in given.fields}
            column = replace(whole, fields=tuple(field for field in whole.fields if field.name in names))
            before, new = old.get(column.id), column.kept(record[column.name])
            if column.is_struct and column != whole and before is not None:
                new = before | (new or {field.id: None for field in column.fields})
            values[column.id] = new
        return values


@dataclass(frozen=True)
class AddColumn(Change):
    """A new column; if `value` is None, it is null everywhere and no row changes."""

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
class AddField(Change):
    """A new field of a struct, null in every row."""

    struct: str
    field: Column

    def applied(self, planned: State, newest: State, version: int) -> State:
        struct = planned.column(self.struct).id
        return newest.edited(struct, lambda column: replace(column, fields=(*column.fields, self.field)))


@dataclass(frozen=True)
class DropColumn(Change):
    path: str

    def applied(self, planned: State, newest: State, version: int) -> State:
        return newest.edited(planned.column(self.path).id, lambda column: None)


@dataclass(frozen=True)
class Rename(Change):
    path: str
    new_name: str

    def applied(self, planned: State, newest: State, version: int) -> State:
        return newest.edited(planned.column(self.path).id, lambda column: replace(column, name=self.new_name))


@dataclass(frozen=True)
class Cast(Change):
    """A column, or a field of a struct, whose values are rewritten in another type."""

    path: str
    id: int
    type: pa.DataType

    def applied(self, planned: State, newest: State, version: int) -> State:
        old = planned.column(self.path)
        if old.type == self.type:
            return newest
        if planned.rows != newest.rows:
            raise Unseen("rows came, went or changed while a column was cast")
        new = replace(old, id=self.id, leaf_type=self.type, cast_from=old.id)
        rows = {
            key: Row(_copied(row.values, old.id, new.id), row.created_at, version) for key, row in newest.rows.items()
        }
        return _with_rows(newest.edited(old.id, lambda column: new), rows)


@dataclass(frozen=True)
class ReplaceValues(Change):
    """New values of a column in place, for the remaining rows of a fragment."""

    path: str
    values: Mapping[int, Value]

    def applied(self, planned: State, newest: State, version: int) -> State:
        column = planned.column(self.path)
        here = self.values.keys() & newest.rows.keys()
        return _with_rows(
            newest,
            {key: _changed(newest.rows[key], {column.id: column.kept(self.values[key])}, version) for key in here},
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
    """Return the keys; their rows must be the same in the newest version and in the planned one."""
    keys = set(keys)
    other = {key for key in keys if planned.rows[key] != newest.rows.get(key)}
    if other:
        raise Unseen(f"rows {sorted(other)} are not any more what was planned on")
    return keys


def _changed(row: Row, values: Mapping[int, Value], version: int) -> Row:
    return Row({**row.values, **values}, row.created_at, version)


def _copied(values: Mapping[int, Value], old_id: int, new_id: int) -> dict[int, Value]:
    """Return values with the value of one column id copied to another id, also inside a struct."""
    made = {
        column_id: _copied(value, old_id, new_id) if isinstance(value, dict) else value
        for column_id, value in values.items()
    }
    if old_id in made:
        made[new_id] = made[old_id]
    return made


def _with_rows(state: State, rows: Mapping[int, Row]) -> State:
    return replace(state, rows={**state.rows, **rows})


def _without(state: State, keys: set[int]) -> State:
    return replace(state, rows={key: row for key, row in state.rows.items() if key not in keys})
