"""Namespaces: datasets by name, with the storage options that open them.

    open_namespace("/data")                     the folders /data/<name>.lance
    open_namespace("s3://bucket/lake", {…})     the same beneath a prefix of an object store
    open_namespace("/data/*/*.lance")           the folders that match; each is named by its last part
    open_namespace("s3://bucket/*/*.lance")     the same in a bucket; see `store_patterns`
    open_namespace("tables.yaml")               a file of names; see `table_list`

The methods have the names that `lance_namespace` gives its requests, and its names of their results' fields.
"""

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from os import PathLike, fspath
from pathlib import Path

from lance_ops.api.namespaces.store_patterns import StorePattern, ask_side_by_side
from lance_ops.api.namespaces.table_list import read_table_list
from lance_ops.core.errors import DatasetNotFound, InvalidInput
from lance_ops.core.file_names import VERSIONS_DIR, is_staged_manifest, parse_manifest_name
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import public_uri
from lance_ops.store import LocalStore, Store, is_local, open_store

__all__ = [
    "FolderNamespace",
    "ListedNamespace",
    "Namespace",
    "PatternNamespace",
    "TableDescription",
    "open_namespace",
]

_SUFFIX = ".lance"
_YAML = (".yaml", ".yml")
_MOST_NAMED = 20  # names in an error


@dataclass(frozen=True)
class TableDescription:
    """Where a table is; `repr` does not show the storage options."""

    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)


class Namespace(ABC):
    """Tables by name. A name is looked up when it is used, so a table that appears later is found."""

    @abstractmethod
    def list_tables(self) -> list[str]:
        """Return the names of the tables in order."""

    @abstractmethod
    def declare_table(self, name: str) -> TableDescription:
        """Return where a table of that name is or would be created; nothing is written.

        Raises `InvalidInput` for a name that cannot be one here.
        """

    @abstractmethod
    def table_exists(self, name: str) -> bool:
        """Return whether the name is known; the table itself is not opened."""

    def find_table(self, name: str) -> TableDescription | None:
        """Return where a table is; None if the name is not known. The table itself is not opened."""
        return self.declare_table(name) if self.table_exists(name) else None

    def tables_like(self, name: str) -> dict[str, TableDescription]:
        """Return where the tables are whose names are `name`, or differ from it in case alone; by name, in order.

        A namespace that cannot list cheaply may try `name` and its lower case alone.
        """
        return {each: self.declare_table(each) for each in self.list_tables() if each.lower() == name.lower()}

    def describe_table(self, name: str) -> TableDescription:
        """Return where a table is; raise `DatasetNotFound` naming the tables that exist."""
        found = self.find_table(name)
        if found is None:
            names = self.list_tables()
            shown = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
            raise DatasetNotFound(f"no table {name!r} in the namespace: it has {shown or 'none'}")
        return found


@dataclass(frozen=True)
class FolderNamespace(Namespace):
    """The tables `<root>/<name>.lance`.

    `list_tables` of an object store lists what is directly beneath the root, and asks for each table; the other methods
    ask for one name. So there `tables_like` knows `name` and its lower case alone.
    """

    root: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def list_tables(self) -> list[str]:
        store = open_store(self.root, self.storage_options)
        if isinstance(store, LocalStore):
            found = Path(store.uri).glob(f"*{_SUFFIX}/{VERSIONS_DIR}")
            names = [path.parent.name for path in found if _has_manifest(path)]
        else:
            names = _datasets_among(store, [name for name in store.list_folders("") if name.endswith(_SUFFIX)])
        return sorted({name.removesuffix(_SUFFIX) for name in names})

    def declare_table(self, name: str) -> TableDescription:
        if not name or "/" in name or "\\" in name or name.startswith("."):
            raise InvalidInput(f"{name!r} is no name of a table: it is one part of a path")
        root = self.root
        if "%" in name:  # it means itself in a plain path, and would be decoded in a file: URI
            store = open_store(root, self.storage_options)
            root = store.uri if isinstance(store, LocalStore) else root
        return TableDescription(f"{root.rstrip('/')}/{name}{_SUFFIX}", self.storage_options)

    def table_exists(self, name: str) -> bool:
        try:
            found = self.declare_table(name)
        except InvalidInput:
            return False
        return _is_dataset(found)

    def tables_like(self, name: str) -> dict[str, TableDescription]:
        if isinstance(open_store(self.root, self.storage_options), LocalStore):
            return super().tables_like(name)
        return {each: self.declare_table(each) for each in sorted({name, name.lower()}) if self.table_exists(each)}


@dataclass(frozen=True)
class PatternNamespace(Namespace):
    """The datasets whose paths match a pattern.

    On this machine's file system it is a pattern of `glob`, and in an object store a `StorePattern`. A name is the last
    part of the path without `.lance`. Raises `InvalidInput` naming two paths of one name. In an object store the two
    are noticed when the name is used, or all names are listed.
    """

    pattern: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def list_tables(self) -> list[str]:
        return sorted(self._places())

    def declare_table(self, name: str) -> TableDescription:
        found = self.find_table(name)
        if found is None:
            raise InvalidInput(f"a pattern says no place for a new table {name!r}: create it by its path")
        return found

    def table_exists(self, name: str) -> bool:
        return self.find_table(name) is not None

    def find_table(self, name: str) -> TableDescription | None:
        place = self._places(name).get(name)
        return None if place is None else TableDescription(place, self.storage_options)

    def tables_like(self, name: str) -> dict[str, TableDescription]:
        places = sorted(self._places(name, any_case=True).items())
        return {each: TableDescription(at, self.storage_options) for each, at in places if each.lower() == name.lower()}

    def _places(self, name: str | None = None, *, any_case: bool = False) -> dict[str, str]:
        """Return where the tables are, by name.

        With `name`, other tables may be missing; with `any_case`, its case does not matter.
        """
        found: dict[str, str] = {}
        for place in self._found(name, any_case):
            known = found.setdefault(_name_of(place), place)
            if known != place:
                raise InvalidInput(
                    f"{known} and {place} are both named {_name_of(place)!r}: name tables in a YAML file"
                )
        return found

    def _found(self, name: str | None, any_case: bool) -> list[str]:
        store = open_store(self.pattern, self.storage_options)
        if isinstance(store, LocalStore):
            paths = sorted(glob.glob(store.uri, recursive=True))
            return [path for path in paths if _has_manifest(Path(path, VERSIONS_DIR))]
        pattern = StorePattern(self.pattern)
        store = open_store(pattern.root, self.storage_options)
        if name is None:
            folders = pattern.folders(store)
        elif any_case:
            folders = [each for each in pattern.folders(store) if _name_of(each).lower() == name.lower()]
        else:
            folders = pattern.folders(store, (f"{name}{_SUFFIX}", name))
        return [f"{pattern.root}/{folder}" for folder in _datasets_among(store, folders)]


@dataclass(frozen=True)
class ListedNamespace(Namespace):
    """Tables that are named one by one."""

    tables: Mapping[str, TableDescription]

    def list_tables(self) -> list[str]:
        return sorted(self.tables)

    def declare_table(self, name: str) -> TableDescription:
        if name not in self.tables:
            raise InvalidInput(f"the namespace lists no table {name!r}: add it to the list, or use its path")
        return self.tables[name]

    def table_exists(self, name: str) -> bool:
        return name in self.tables


def open_namespace(
    source: str | PathLike[str] | Mapping[str, str], storage_options: Mapping[str, str] | None = None
) -> Namespace:
    """Return the namespace of a folder, of a pattern, of a YAML file, or of URIs by name.

    `storage_options` hold for every table; a YAML file's own are added to them. Raises `InvalidInput` for a URI that
    holds a secret, without showing it, and `ConfigError` naming the key of a YAML file that is wrong.
    """
    shared = dict(storage_options or {})
    if isinstance(source, Mapping):
        return ListedNamespace({name: TableDescription(uri, shared) for name, uri in source.items()})
    text = fspath(source)
    if public_uri(text) != text:
        raise InvalidInput("a URI with a password, token or signature in it: pass credentials in storage_options")
    if text.lower().endswith(_YAML):
        listed = read_table_list(Path(text))
        return ListedNamespace(
            {name: TableDescription(uri, {**shared, **options}) for name, (uri, options) in listed.items()}
        )
    if glob.has_magic(text):
        if not is_local(text):
            StorePattern(text)  # refuses a bucket with a wildcard
        return PatternNamespace(text, shared)
    return FolderNamespace(text, shared)


def _name_of(place: str) -> str:
    """Return the name of the table in a folder."""
    return place.rpartition("/")[2].removesuffix(_SUFFIX)


def _is_dataset(table: TableDescription) -> bool:
    store = open_store(table.location, table.storage_options)
    if isinstance(store, LocalStore):
        return _has_manifest(Path(store.uri, VERSIONS_DIR))
    return bool(_datasets_among(store, [""]))


def _datasets_among(store: Store, folders: Sequence[str]) -> list[str]:
    """Return the folders of a store, which is not this machine's disk, that hold a dataset."""
    num_found = ask_side_by_side(
        lambda folder: len(store.list_names(f"{folder}/{VERSIONS_DIR}".lstrip("/"), 1)), folders
    )
    return [folder for folder, num_names in zip(folders, num_found, strict=True) if num_names]


def _has_manifest(versions: Path) -> bool:
    """Return whether a folder holds a manifest: a removal or a first write that was interrupted leaves it empty."""
    try:
        with os.scandir(versions) as entries:
            return any(
                parse_manifest_name(entry.name) is not None or is_staged_manifest(entry.name) for entry in entries
            )
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError:  # whoever opens the table is told
        return True
