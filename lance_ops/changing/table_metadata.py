"""Change what a table says of itself: configuration, and metadata of the table, its schema and its fields."""

from __future__ import annotations

from collections.abc import Mapping

from lance_ops.core.errors import InvalidInput
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import UpdateConfig, UpdateMap
from lance_ops.writing import commit_operation

__all__ = ["Values", "bind_field_metadata", "bind_metadata", "update_config"]

Values = Mapping[str, str | None]


def update_config(snapshot: Snapshot, operation: UpdateConfig, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Commit the updates; raise `IncompatibleTransaction` when a concurrent commit set the same key."""
    return commit_operation(snapshot, operation, properties=properties)


def bind_metadata(values: Values, replace: bool) -> UpdateMap:
    """Return the update that sets keys, or removes those whose value is None; with `replace` there are no others.

    Raises `InvalidInput` for what is no text.
    """
    for key, value in values.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            raise InvalidInput(f"metadata is text by text, not {key!r}: {value!r}")
    kept = {key: value for key, value in values.items() if value is not None} if replace else dict(values)
    return UpdateMap(kept, replace)


def bind_field_metadata(snapshot: Snapshot, updates: Mapping[str, Values], replace: bool) -> dict[int, UpdateMap]:
    """Return the updates by field id; raise `InvalidInput` for a path that is not there."""
    return {snapshot.schema.field(path).id: bind_metadata(values, replace) for path, values in updates.items()}
