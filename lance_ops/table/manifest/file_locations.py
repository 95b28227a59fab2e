"""Where the files that a manifest names are: beneath the table's root, or beneath one of its base paths.

                  own root, base that is a dataset's root      another base
    data file     data/{path}                                  {path}
    blobs of one  data/{stem}/….blob                           {stem}/….blob
    deletions     _deletions/{name}                            refused
    an index      _indices/{uuid}/                             refused

A path is checked as every store checks it: it cannot leave the base that it is declared to be under.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lance_ops.committers import open_base, options_of_base
from lance_ops.core.errors import CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR
from lance_ops.store import Store, is_well_known
from lance_ops.table.fragments import Fragment
from lance_ops.table.manifest.base_path import BasePath

__all__ = ["FileLocations", "ObjectLocation"]


class ObjectLocation(NamedTuple):
    """An object: a store, and its path there."""

    store: Store
    path: str

    @property
    def uri(self) -> str:
        """The object's full name, for people."""
        return self.store.uri_of(self.path)


class FileLocations:
    """A table's root and its base paths, by id.

    Stores are opened when first needed, with the root's options and those for that base alone (`base_{id}.{key}`).
    """

    def __init__(self, root: Store, paths: Iterable[BasePath] = (), storage_options: Mapping[str, str] | None = None):
        self._root = root
        self._paths = {base.id: base for base in paths}
        self._options = storage_options
        self._stores: dict[int, Store] = {}

    def data_file(self, base_id: int | None, path: str) -> ObjectLocation:
        """Return where a data file, or a sidecar of one, is.

        Raises `CorruptFile` for a base that the manifest does not declare, as the other methods do.
        """
        store, directory = self.data_directory(base_id)
        return ObjectLocation(store, f"{directory}/{path}" if directory else path)

    def outside(self, uri: str) -> ObjectLocation:
        """Return where an object is that is none of the table's, read with the table's own storage options.

        Raises `InvalidInput` for a URI that names nothing.
        """
        folder, _, name = uri.rpartition("/")
        if not (folder and name):
            raise InvalidInput(f"{uri!r} is no URI of an object")
        return ObjectLocation(open_base(folder, self._options), name)

    def data_directory(self, base_id: int | None) -> ObjectLocation:
        """Return the directory of the data files under a base; its path is `""` where that is the base itself."""
        base = self._declared(base_id)
        if base is None:
            return ObjectLocation(self._root, DATA_DIR)
        return ObjectLocation(self._store(base), DATA_DIR if base.is_dataset_root else "")

    def deletion_file(self, fragment: Fragment) -> ObjectLocation:
        """Return where a fragment's deletion file is; there must be one."""
        file = fragment.deletion_file
        assert file is not None
        return ObjectLocation(
            self.dataset_root(file.base_id, "a deletion file"), f"{DELETIONS_DIR}/{file.name(fragment.id)}"
        )

    def dataset_root(self, base_id: int | None, what: str) -> Store:
        """Return the root of the dataset that `what` is in; raise `UnsupportedFeature` for a base that is none."""
        base = self._declared(base_id)
        if base is None:
            return self._root
        if not base.is_dataset_root:
            raise UnsupportedFeature(f"{what} under a base path that is no dataset's root", f"base path {base.path!r}")
        return self._store(base)

    def _declared(self, base_id: int | None) -> BasePath | None:
        if base_id is None:
            return None
        base = self._paths.get(base_id)
        if base is None:
            known = sorted(self._paths)
            raise CorruptFile(self._root.uri, "base paths", f"a file is under base {base_id}, and there are {known}")
        return base

    def _store(self, base: BasePath) -> Store:
        store = self._stores.get(base.id)
        if store is None:
            if not is_well_known(
                base.path
            ):  # a manifest shall not make this process talk to any server in any protocol
                raise UnsupportedFeature(f"files under {base.path!r}", f"{self._root.uri}: base path {base.id}")
            store = self._stores[base.id] = open_base(base.path, options_of_base(self._options, base.id))
        return store
