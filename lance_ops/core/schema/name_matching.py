"""Match the names of incoming columns with a table's names, with or without regard to case.

Spark matches without case unless `spark.sql.caseSensitive` is set, and so do writes and ingestion here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.arrow import with_child_fields
from lance_ops.core.errors import SchemaMismatch

__all__ = ["CaseRule", "spelled_as"]


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


def spelled_as(schema: pa.Schema, table: pa.Schema, case_rule: CaseRule) -> pa.Schema:
    """Return a schema with the table's spelling of every name that the table has, in structs, too.

    Raises `SchemaMismatch` if two columns have one name in the table.
    """
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
    if hasattr(given, "value_field") and hasattr(table, "value_field"):
        value = given.value_field
        return _list_of(given, value.with_type(_type_spelled(value.type, table.value_field.type, case_rule)))
    if pt.is_map(given) and pt.is_map(table):
        key, item = given.key_field, given.item_field
        return pa.map_(
            key.with_type(_type_spelled(key.type, table.key_type, case_rule)),
            item.with_type(_type_spelled(item.type, table.item_type, case_rule)),
            given.keys_sorted,
        )
    return given


def _list_of(kind: pa.DataType, items: pa.Field) -> pa.DataType:
    """Return the list type of the same kind with other items."""
    if pt.is_list_view(kind):
        return pa.list_view(items)
    return pa.large_list_view(items) if pt.is_large_list_view(kind) else with_child_fields(kind, [items])
