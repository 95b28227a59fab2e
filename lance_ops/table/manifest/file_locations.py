"""Convert the paths in a manifest to locations: a file is beneath the table's root or beneath one of its base paths.

                  own root, base that is a dataset's root      another base
    data file     data/{path}                                  {path}
    blobs of one  data/{stem}/….blob                           {stem}/….blob
    deletions     _deletions/{name}                            refused
    an index      _indices/{uuid}/                             refused

The store checks each path, so a file cannot be outside the base that it is declared under.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lance_ops.committers import check_base_is_allowed, open_base, options_of_base
from lance_ops.core.errors import CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR
from lance_ops.store import Store, is_well_known
from lance_ops.table.fragments import Fragment
from lance_ops.table.manifest.base_path import BasePath

__all__ = ["FileLocations", "ObjectLocation"]


class ObjectLocation(NamedTuple):
    """The location of an object: a store and a path in it."""

    store: Store
    path: str

    @property
    def uri(self) -> str:
        """The object's URI, for messages."""
        return self.store.uri_of(self.path)


class FileLocations:
    """Locates the files of one table from its root and its base paths.

    A base's store is opened on first use, with the root's options and the options for this base (`base_{id}.{key}`).
    Raises `UnsafePath` then for a base that may not be followed; see `committers.allowed_bases`.
    """

    def __init__(self, root: Store, paths: Iterable[BasePath] = (), storage_options: Mapping[str, str] | None = None):
        self._root = root
        self._paths = {base.id: base for base in paths}
        self._options = storage_options
        self._stores: dict[int, Store] = {}

    def data_file(self, base_id: int | None, path: str) -> ObjectLocation:
        """Return the location of a data file, or of a sidecar of one.

        This and the other methods raise `CorruptFile` for a base that the manifest does not declare.
        """
        store, directory = self.data_directory(base_id)
        return ObjectLocation(store, f"{directory}/{path}" if directory else path)

    def outside(self, uri: str) -> ObjectLocation:
        """Return the location of an object outside the table; it is read with the table's storage options.

        Raises `InvalidInput` for a URI without a folder or a name.
        """
        folder, _, name = uri.rpartition("/")
        if not (folder and name):
            raise InvalidInput(f"{uri!r} is not the URI of an object")
        return ObjectLocation(open_base(folder, self._options), name)

    def data_directory(self, base_id: int | None) -> ObjectLocation:
        """Return the directory of the data files under a base; its path is `""` if it is the base itself."""
        base = self._declared(base_id)
        if base is None:
            return ObjectLocation(self._root, DATA_DIR)
        return ObjectLocation(self._store(base), DATA_DIR if base.is_dataset_root else "")

    def deletion_file(self, fragment: Fragment) -> ObjectLocation:
        """Return the location of a fragment's deletion file; the fragment must have one."""
        file = fragment.deletion_file
        assert file is not None
        return ObjectLocation(
            self.dataset_root(file.base_id, "a deletion file"), f"{DELETIONS_DIR}/{file.name(fragment.id)}"
        )

    def dataset_root(self, base_id: int | None, what: str) -> Store:
        """Return the root of the dataset that `what` is in; raise `UnsupportedFeature` if the base is not a dataset."""
        base = self._declared(base_id)
        if base is None:
            return self._root
        if not base.is_dataset_root:
            raise UnsupportedFeature(
                f"{what} under a base path that is not the root of a dataset", f"base path {base.path!r}"
            )
        return self._store(base)

    def dataset_roots(self) -> Iterator[Store]:
        """Yield the table's own root and its bases that are roots of datasets."""
        yield self._root
        yield from (self._store(base) for base in self._paths.values() if base.is_dataset_root)

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
            # a manifest must not make this process contact any server by any protocol
            if not is_well_known(base.path):
                raise UnsupportedFeature(f"files under {base.path!r}", f"{self._root.uri}: base path {base.id}")
            check_base_is_allowed(self._root.uri, base.path, self._options)
            opened = open_base(base.path, options_of_base(self._options, base.id))
            store = self._stores[base.id] = opened.counted_by(self._root.counters)
        return store
