"""Open the store and the committer of the dataset at a URI.

The storage option `manifest_store`, a URL, names an external manifest store. For DynamoDB there is also the reference's
form of URI: `s3+ddb://bucket/path?ddbTableName=table`. An option `base_{id}.{key}` applies to one base path of the
dataset, where it replaces the option `{key}`. `allowed_bases` and `allow_expansion` are for what manifests say:
see `allowed_bases.py` and `allowed_expansion.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from urllib.parse import parse_qs

from lance_ops import committers
from lance_ops.committers.allowed_bases import ALLOWED_BASES_OPTION
from lance_ops.committers.allowed_expansion import ALLOW_EXPANSION_OPTION
from lance_ops.committers.contract import Committer
from lance_ops.committers.manifest_stores import open_manifest_store
from lance_ops.committers.put_if_absent import PutIfAbsentCommitter
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.file_names import ManifestNaming
from lance_ops.core.records import dataclass
from lance_ops.store import Store, open_store

__all__ = [
    "MANIFEST_STORE_OPTION",
    "DatasetRoot",
    "files_uri",
    "open_base",
    "open_root",
    "options_for_base",
    "options_of_base",
]

MANIFEST_STORE_OPTION = "manifest_store"
_NOT_FOR_STORES = (MANIFEST_STORE_OPTION, "dynamodb_endpoint", ALLOWED_BASES_OPTION, ALLOW_EXPANSION_OPTION)
_TABLE_PARAMETER = "ddbTableName"
_OF_ONE_BASE = re.compile(r"base_(?P<id>\d+)\.(?P<key>.+)", re.DOTALL)
_DYNAMODB_URI = re.compile(r"(?P<scheme>s3a?)\+ddb://(?P<rest>[^?]*)(?:\?(?P<query>.*))?", re.IGNORECASE)


@dataclass(frozen=True)
class DatasetRoot:
    """A dataset's store and committer. The URI and `storage_options`, which may hold secrets, open the same again."""

    store: Store
    committer: Committer
    storage_options: Mapping[str, str] = field(repr=False)


def open_root(
    uri: str, storage_options: Mapping[str, str] | None = None, *, new_naming: ManifestNaming = ManifestNaming.V2
) -> DatasetRoot:
    """Return a dataset's store and committer, whether the dataset exists or not.

    `new_naming` is the naming scheme of a new dataset; with a manifest store it must be V2. Raises `InvalidInput` for a
    URI or options that name nothing.
    """
    if not uri:
        raise InvalidInput("the dataset's URI is empty")
    options = dict(storage_options or {})
    match = _DYNAMODB_URI.fullmatch(uri)
    if match is not None:
        tables = parse_qs(match["query"] or "").get(_TABLE_PARAMETER)
        if not tables:
            raise InvalidInput(f"{uri.partition('?')[0]} names no table: end it with ?{_TABLE_PARAMETER}=table")
        uri = files_uri(uri)
        options[MANIFEST_STORE_OPTION] = f"dynamodb://{tables[0]}"
    store = open_base(uri, options)
    url = options.get(MANIFEST_STORE_OPTION)
    if url is None:
        return DatasetRoot(store, PutIfAbsentCommitter(store, new_naming=new_naming), options)
    if new_naming is not ManifestNaming.V2:
        raise UnsupportedFeature("manifests of the old names in a manifest store", store.uri)
    only_here = (MANIFEST_STORE_OPTION, ALLOWED_BASES_OPTION, ALLOW_EXPANSION_OPTION)
    others = {key: value for key, value in options.items() if key not in only_here and not _OF_ONE_BASE.fullmatch(key)}
    rows = open_manifest_store(url, store.uri, others)
    return DatasetRoot(store, committers.ExternalManifestCommitter(store, rows), options)


def files_uri(uri: str) -> str:
    """Return the URI of a dataset's files, which says nothing of a manifest store; no store is opened."""
    match = _DYNAMODB_URI.fullmatch(uri)
    return uri if match is None else f"{match['scheme']}://{match['rest']}"


def open_base(path: str, storage_options: Mapping[str, str] | None = None) -> Store:
    """Return the store at a path of a dataset's files, by those of the dataset's options that are for stores.

    Raises `InvalidInput` for a path or options that name nothing.
    """
    options = storage_options or {}
    return open_store(
        path,
        {
            key: value
            for key, value in options.items()
            if key not in _NOT_FOR_STORES and not _OF_ONE_BASE.fullmatch(key)
        },
    )


def options_of_base(storage_options: Mapping[str, str] | None, base_id: int) -> dict[str, str]:
    """Return the options of a base path: its own ones, and the shared ones that they do not replace."""
    shared: dict[str, str] = {}
    own: dict[str, str] = {}
    for key, value in (storage_options or {}).items():
        match = _OF_ONE_BASE.fullmatch(key)
        if match is None:
            shared[key] = value
        elif int(match["id"]) == base_id:
            own[match["key"]] = value
    return shared | own


def options_for_base(base_id: int, options: Mapping[str, str]) -> dict[str, str]:
    """Return options under the names that apply them to one base path."""
    return {f"base_{base_id}.{key}": value for key, value in options.items()}
