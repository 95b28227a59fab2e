"""Match column names as Spark does: by `spark.sql.caseSensitive`, which is false unless the session sets it.

Spark does not tell a data source the session's setting, so it comes as option `case_sensitive`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import CaseRule, Field, Schema, split_path
from lance_ops.reading import ROW_ADDRESS, ROW_ID, VERSION_COLUMNS
from lance_ops.spark.session_kind import is_switched_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "FRAGMENT_ID",
    "ROW_COLUMN_TYPES",
    "quoted_path",
    "row_column",
    "session_case_rule",
    "stored_path",
    "stored_paths",
]

FRAGMENT_ID = "_fragid"
"""The id of a row's fragment, under the name that other Spark connectors of Lance give it."""

ROW_COLUMN_TYPES: Mapping[str, pa.DataType] = {
    ROW_ID: pa.int64(),
    ROW_ADDRESS: pa.int64(),
    FRAGMENT_ID: pa.int32(),
    **dict.fromkeys(VERSION_COLUMNS, pa.int64()),
}
"""The columns that a read can add, in the types that Spark sees."""


def session_case_rule(session: SparkSession) -> CaseRule:
    """Return the rule by which the session matches names of columns."""
    return CaseRule(is_switched_on(session, "spark.sql.caseSensitive"))


def row_column(name: str, columns: Sequence[str], case_rule: CaseRule) -> str | None:
    """Return the row column that a name means, in its own spelling; None if it means one of the table's columns."""
    return None if case_rule.find(name, columns) is not None else case_rule.find(name, tuple(ROW_COLUMN_TYPES))


def quoted_path(*names: str) -> str:
    """Return the path of a column with each name in backticks, as Spark's own calls and SQL take it."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


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
