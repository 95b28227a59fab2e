"""Change a table's configuration, and the metadata of the table, its schema and its fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from lance_ops.core.errors import InvalidInput
from lance_ops.core.schema import PRIMARY_KEY, Field, declares_primary_key, primary_key_flaws, with_field
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
    """Return the updates by field id.

    Raises `InvalidInput` for a path that does not exist, and for a primary key that the reference refuses.
    """
    found = {}
    for path, values in updates.items():
        node, update = snapshot.schema.field(path), bind_metadata(values, replace)
        is_key = declares_primary_key(update.apply(node.metadata))
        if node.unenforced_primary_key and not is_key:
            raise InvalidInput(f"{path}: a field stays a part of the primary key: {PRIMARY_KEY} cannot be changed")
        if values.get(PRIMARY_KEY) is not None and not is_key:
            raise InvalidInput(f"{path}: {PRIMARY_KEY} is 'true', not {values[PRIMARY_KEY]!r}")
        found[node.id] = update
        if is_key:
            changed = with_field(snapshot.schema, node.id, _as_key)
            flaw = next((flaw for column in changed.fields for flaw in primary_key_flaws(column)), None)
            if flaw is not None:
                raise InvalidInput(flaw)
    return found


def _as_key(node: Field) -> Field:
    return dataclasses.replace(node, unenforced_primary_key=True)
