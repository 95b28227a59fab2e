"""External manifest stores, one file for each kind. A kind's packages are imported when a store of it is opened."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from lance_ops.committers.manifest_stores.contract import ManifestRow, ManifestStore
from lance_ops.core.errors import InvalidInput, MissingPackage

__all__ = [
    "ALL_MANIFEST_STORES",
    "ManifestRow",
    "ManifestStore",
    "open_manifest_store",
]

ALL_MANIFEST_STORES: Mapping[str, tuple[str, ...]] = {
    "sql.SqlManifestStore": ("sqlite", "postgresql", "mysql", "mariadb", "oracle", "mssql"),
    "dynamodb.DynamoDbManifestStore": ("dynamodb",),
    "redis.RedisManifestStore": ("redis", "rediss", "unix"),
    "etcd.EtcdManifestStore": ("etcd", "etcds"),
}
"""The module and class of each kind, with the schemes of its URLs."""


def open_manifest_store(url: str, dataset_uri: str, storage_options: Mapping[str, object]) -> ManifestStore:
    """Return the manifest store at `url` for one dataset.

    Raises `InvalidInput`, without showing the URL, if it names no store, and `MissingPackage` if its client is missing.
    """
    if not isinstance(url, str):
        raise InvalidInput(f"manifest_store: a URL is wanted, not a {type(url).__name__}")
    scheme = url.partition("://")[0].partition("+")[0].lower()
    place = next((place for place, schemes in ALL_MANIFEST_STORES.items() if scheme in schemes), None)
    if place is None:
        known = sorted(scheme for schemes in ALL_MANIFEST_STORES.values() for scheme in schemes)
        # Without a scheme the text may be a connection string, so none of it is shown.
        raise InvalidInput(f"manifest_store: a URL is wanted that begins with one of {', '.join(known)}, then ://")
    module, _, name = place.partition(".")
    try:
        kind: type[ManifestStore] = getattr(import_module(f"{__name__}.{module}"), name)
    except ImportError as error:
        use = f"manifest_store: {scheme}://"
        raise MissingPackage(use, error.name or "a package", "manifest-stores", str(error)) from error
    return kind.open(url, dataset_uri, storage_options)
