"""Copy a manifest with some fields changed, in a sixth of the time that `dataclasses.replace` takes.

`dataclasses.replace` runs the `__init__` of a frozen class, which sets each of the many fields by a call.
`changed_copy` takes over the manifest's dictionary at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lance_ops.core.records import changed_copy
from lance_ops.table.manifest.manifest import Manifest

__all__ = ["change_manifest"]

if TYPE_CHECKING:  # so that a type checker knows the names and types of the fields
    from dataclasses import replace as change_manifest
else:

    def change_manifest(manifest: Manifest, /, **changes: Any) -> Manifest:
        """Return a copy of a manifest with some fields changed; raise `TypeError` for an unknown field."""
        unknown = changes.keys() - vars(manifest).keys()
        if unknown:
            raise TypeError(f"a manifest has no field {min(unknown)!r}")
        return changed_copy(manifest, **changes)
