"""The primary key that a field's metadata declares; nothing enforces it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_ops.core.schema.field import Field

__all__ = ["PRIMARY_KEY", "declares_primary_key", "primary_key_flaws"]

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
"""The key of the metadata by which a field is a part of the primary key."""

_TRUE = ("true", "1", "yes", "on", "y")


def declares_primary_key(metadata: Mapping[str, str]) -> bool:
    """Return whether a field's metadata makes it a part of the primary key; the value's case does not count."""
    return metadata.get(PRIMARY_KEY, "").lower() in _TRUE


def primary_key_flaws(column: Field) -> Iterator[str]:
    """Yield why the reference refuses a column, or fields in it, as parts of the primary key."""
    todo = [(column, column.name, False)]
    while todo:
        node, path, may_be_null = todo.pop()
        may_be_null = may_be_null or node.nullable
        if node.unenforced_primary_key and node.children:
            yield f"column {path!r} is a part of the primary key and nested: declare fields without fields of their own"
        elif node.unenforced_primary_key and may_be_null:
            yield (
                f"column {path!r} is a part of the primary key, but it, or a struct that it is in, may be null: "
                "declare them not null"
            )
        todo += [(child, f"{path}.{child.name}", may_be_null) for child in node.children]
