"""The limits of schemas. Writers refuse what is beyond them, so that readers open whatever a writer commits.

    depth      a column nests at most `MAX_DEPTH` levels; readers have the same limit
    columns    rows need at least one, because a batch without columns does not state its rows
    names      of a table's columns: not empty, without a dot, a back quote or a NUL, and not that of a row column;
               of fields inside a column: without a NUL, and different from their siblings' names
    keys       a part of the primary key has no fields in it, and is not null
    extensions a column's extension type takes its storage type, and the schema itself names none

The reference refuses to create such columns, or cannot read them. Readers take any name, because renames by the
reference check none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lance_ops.core.arrow import EXTENSION_NAME
from lance_ops.core.errors import InvalidInput, LanceOpsError
from lance_ops.core.schema.primary_key import primary_key_flaws
from lance_ops.core.schema.schema import Schema

__all__ = ["ROW_COLUMN_NAMES", "check_column_name", "check_table_schema", "schema_flaws"]

ROW_COLUMN_NAMES = frozenset(
    {"_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"}
)
"""The names of the columns that scans add to a table's own."""

_FORBIDDEN = {
    ".": "a dot, which separates the names of a path",
    "`": "a back quote, which quotes a name",
    "\0": "a NUL",
}


def check_column_name(name: str) -> None:
    """Raise `InvalidInput` for a name that no new column of a table may have."""
    flaw = _flaw_of_name(name)
    if flaw is not None:
        raise InvalidInput(f"column {name!r}: {flaw}: choose another name")


def check_table_schema(schema: Schema) -> None:
    """Raise `InvalidInput` for the first flaw of a new table's schema."""
    flaw = next(schema_flaws(schema), None)
    if flaw is not None:
        raise InvalidInput(flaw)


def schema_flaws(schema: Schema) -> Iterator[str]:
    """Yield what is beyond the limits of a table's schema, except its depth, which `Schema.from_arrow` checks."""
    if EXTENSION_NAME in schema.metadata:
        yield f"the metadata key {EXTENSION_NAME!r} of the schema names an extension type, which only a column has"
    try:
        schema.to_arrow()
    except LanceOpsError as error:
        yield str(error)
    for column in schema.fields:
        flaw = _flaw_of_name(column.name)
        if flaw is not None:
            yield f"column {column.name!r}: {flaw}: choose another name"
        if column.unenforced_primary_key or column.children:
            yield from primary_key_flaws(column)
        for node in column.walk():
            yield from (
                f"column {column.name!r}: field {child.name!r} has a NUL in its name"
                for child in node.children
                if "\0" in child.name
            )
            twice = _first_repeated(child.name for child in node.children)
            if twice is not None:
                yield f"column {column.name!r}: two fields are named {twice!r}: choose another name"
    twice = _first_repeated(column.name for column in schema.fields)
    if twice is not None:
        yield f"two columns are named {twice!r}: choose another name"


def _flaw_of_name(name: str) -> str | None:
    if not name:
        return "the name is empty"
    if name in ROW_COLUMN_NAMES:
        return "the name belongs to a column that scans add"
    return next((f"the name has {what}" for char, what in _FORBIDDEN.items() if char in name), None)


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
