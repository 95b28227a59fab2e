"""Change a table's configuration, and the metadata of the table, its schema and its fields."""

from __future__ import annotations

from collections.abc import Mapping

from lance_ops.core.errors import InvalidInput
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import UpdateConfig, UpdateMap
from lance_ops.writing import commit_operation

__all__ = ["MetadataValues", "bind_field_metadata", "bind_metadata", "update_config"]

MetadataValues = Mapping[str, str | None]


def update_config(snapshot: Snapshot, operation: UpdateConfig, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Commit the updates; raise `IncompatibleTransaction` when a concurrent transaction set the same key."""
    return commit_operation(snapshot, operation, properties=properties)


def bind_metadata(values: MetadataValues, replace: bool) -> UpdateMap:
    """Return the update that sets keys, and removes keys whose value is None; `replace` removes all other keys.

    Raises `InvalidInput` for a key or value that is not text.
    """
    for key, value in values.items():
        if not isinstance(key, str) or not (value is None or isinstance(value, str)):
            raise InvalidInput(f"metadata keys and values are text, not {key!r}: {value!r}")
    kept = {key: value for key, value in values.items() if value is not None} if replace else dict(values)
    return UpdateMap(kept, replace)


def bind_field_metadata(
    snapshot: Snapshot, updates: Mapping[str, MetadataValues], replace: bool
) -> dict[int, UpdateMap]:
    """Return the updates by field id; raise `InvalidInput` for a path that does not exist."""
    return {snapshot.schema.field(path).id: bind_metadata(values, replace) for path, values in updates.items()}
