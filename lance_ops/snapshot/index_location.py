"""Find the files of an index segment, also where the manifest names the wrong base path.

When the reference compacts a shallow clone, it writes the remapped segment beneath the clone's own root. It keeps the
base path of the segment that it replaced, which is then wrong. A clone of that clone inherits the error. The segment's
id is unique, so a directory of that name beneath any root of the table is the right one.
"""

from __future__ import annotations

from lance_ops.store import Store
from lance_ops.table import IndexMetadata
from lance_ops.table.manifest import FileLocations

__all__ = ["find_index_root"]


def find_index_root(locations: FileLocations, index: IndexMetadata) -> Store | None:
    """Return the root of the dataset that holds a segment's files; None if no root of the table holds them.

    A segment without a base path is beneath the table's own root, and nothing is looked up. Raises `UnsupportedFeature`
    for a base that is not a dataset's root.
    """
    stated = locations.dataset_root(index.base_id, "an index")
    if index.base_id is None or _holds(stated, index):
        return stated
    return next((root for root in locations.dataset_roots() if _holds(root, index)), None)


def _holds(root: Store, index: IndexMetadata) -> bool:
    paths = index.paths()
    return root.exists(paths[0]) if paths else bool(root.list_names(index.directory, limit=1))
