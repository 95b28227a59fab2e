"""Check the base paths that a caller gives, and return them as a manifest states them; nothing is committed here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, replace
from typing import Self

from lance_ops.committers import open_base, options_for_base, with_allowed_bases
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.snapshot import Snapshot
from lance_ops.store import path_beneath
from lance_ops.table import BasePath

__all__ = ["BaseStoreParams", "DatasetBasePath", "declared_bases", "with_base_store_params", "with_params"]

BaseStoreParams = Mapping[str, Mapping[str, str]]
"""Storage options for single base paths, by URI. No manifest stores them."""


@dataclass(frozen=True)
class DatasetBasePath:
    """A location outside the root that may hold files: the root of a dataset, or a plain directory of data files.

    A new base path gets the next free id.
    """

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None
    _: KW_ONLY
    unknown: bytes = b""

    @classmethod
    def of(cls, base: BasePath) -> Self:
        """Return a base as a manifest declares it."""
        return cls(base.path, base.name, base.is_dataset_root, base.id, unknown=base.unknown)


def declared_bases(bases: Sequence[DatasetBasePath], storage_options: Mapping[str, str] | None) -> tuple[BasePath, ...]:
    """Return the base paths as a manifest declares them, with absolute paths; a base path without an id gets 0."""
    return tuple(
        BasePath(base.id or 0, open_base(base.path, storage_options).uri, base.name, base.is_dataset_root, base.unknown)
        for base in bases
    )


def with_base_store_params(
    root: str, storage_options: Mapping[str, str] | None, bases: Iterable[BasePath], params: BaseStoreParams | None
) -> Mapping[str, str] | None:
    """Return storage options with those of the base paths merged in; raise `InvalidInput` for an unknown URI.

    The dataset at `root` may follow the base paths that the caller names here.
    """
    if not params:
        return storage_options
    merged, known = dict(storage_options or {}), list(bases)
    for uri, options in params.items():
        base = next((base for base in known if path_beneath(base.path, uri) == ""), None)
        if base is None:
            raise InvalidInput(f"base_store_params: {uri} is none of the base paths: {[base.path for base in known]}")
        merged |= options_for_base(base.id, options)
    return with_allowed_bases(root, merged, params)


def with_params(snapshot: Snapshot, params: BaseStoreParams | None) -> Snapshot:
    """Return the snapshot with options for its base paths; raise `InvalidInput` as `with_base_store_params` does."""
    if not params:
        return snapshot
    options = with_base_store_params(snapshot.uri, snapshot.storage_options, snapshot.manifest.base_paths, params)
    return replace(snapshot, storage_options=options or {})
