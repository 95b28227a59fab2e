"""Match column names as Spark does: by `spark.sql.caseSensitive`, which is false unless the session sets it.

Spark does not tell a data source the session's setting, so it comes as option `case_sensitive`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.schema import Field, Schema, split_path
from lance_ops.reading import ROW_ADDRESS, ROW_ID, VERSION_COLUMNS

__all__ = ["FRAGMENT_ID", "ROW_COLUMN_TYPES", "CaseRule", "spelled_as", "stored_path", "stored_paths"]

FRAGMENT_ID = "_fragid"
"""The id of a row's fragment, under the name that other Spark connectors of Lance give it."""

ROW_COLUMN_TYPES: Mapping[str, pa.DataType] = {
    ROW_ID: pa.int64(),
    ROW_ADDRESS: pa.int64(),
    FRAGMENT_ID: pa.int32(),
    **dict.fromkeys(VERSION_COLUMNS, pa.int64()),
}
"""The columns that a read can add, in the types that Spark sees."""


class CaseRule(Enum):
    """Whether names that differ only in case are one name. A name of exactly the same spelling always comes first."""

    SENSITIVE = True
    INSENSITIVE = False

    def find(self, name: str, among: Sequence[str]) -> str | None:
        """Return the name among others that means the same; raise `SchemaMismatch` if several others do."""
        if name in among:
            return name
        if self is CaseRule.SENSITIVE:
            return None
        found = [other for other in among if other.lower() == name.lower()]
        if len(found) > 1:
            raise SchemaMismatch(
                f"column {name!r} may be any of {', '.join(found)}: write the name as the table does, "
                "or set option 'case_sensitive' to 'true'"
            )
        return found[0] if found else None


def stored_path(path: str, schema: Schema, case_rule: CaseRule) -> str:
    """Return a column's path in the table's spelling; raise `InvalidInput` naming the existing columns."""
    if path in schema.names:
        return path
    names: list[str] = []
    siblings = schema.fields
    for name in split_path(path):
        found = _child(name, siblings, case_rule, path)
        names.append(f"`{found.name}`" if "." in found.name else found.name)
        siblings = found.children
    return ".".join(names)


def stored_paths(fields: Iterable[pa.Field], table: Sequence[Field], case_rule: CaseRule) -> Iterator[str]:
    """Yield the paths of what a schema of Spark names, in the table's spelling; of a struct only the named children.

    Raises `InvalidInput` for a column that the table does not have.
    """
    for field in fields:
        found = _child(field.name, table, case_rule, field.name)
        name = f"`{found.name}`" if "." in found.name else found.name
        if pt.is_struct(field.type) and field.type.num_fields and found.children and not found.is_blob_v2:
            yield from (f"{name}.{path}" for path in stored_paths(field.type, found.children, case_rule))
        else:
            yield name


def _child(name: str, siblings: Sequence[Field], case_rule: CaseRule, path: str) -> Field:
    known = {field.name: field for field in siblings}
    found = case_rule.find(name, tuple(known))
    if found is None:
        raise InvalidInput(f"no column {path!r}: {name!r} is not among {', '.join(known) or 'none'}")
    return known[found]


def spelled_as(schema: pa.Schema, table: pa.Schema, case_rule: CaseRule) -> pa.Schema:
    """Return a schema with the table's spelling of every name that the table has, in structs, too.

    Raises `SchemaMismatch` if two columns have one name in the table.
    """
    if case_rule is CaseRule.SENSITIVE:
        return schema
    return pa.schema(_spelled(list(schema), list(table), case_rule), schema.metadata)


def _spelled(fields: Sequence[pa.Field], table: Sequence[pa.Field], case_rule: CaseRule) -> list[pa.Field]:
    by_name = {field.name: field for field in table}
    spelled: dict[str, pa.Field] = {}
    for field in fields:
        known = case_rule.find(field.name, tuple(by_name))
        name = field.name if known is None else known
        if name in spelled:
            raise SchemaMismatch(f"column {field.name!r} is there twice: the table calls both {name!r}")
        field_type = field.type if known is None else _type_spelled(field.type, by_name[known].type, case_rule)
        spelled[name] = field.with_name(name).with_type(field_type)
    return list(spelled.values())


def _type_spelled(given: pa.DataType, table: pa.DataType, case_rule: CaseRule) -> pa.DataType:
    if pt.is_struct(given) and pt.is_struct(table):
        return pa.struct(_spelled(list(given), list(table), case_rule))
    if pt.is_list(given) and hasattr(table, "value_field"):
        value = given.value_field
        return pa.list_(value.with_type(_type_spelled(value.type, table.value_field.type, case_rule)))
    return given
