"""List a landing folder in an object store or any other file system of fsspec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from lance_ops.core.errors import InvalidInput, ObjectNotFound
from lance_ops.dagster.declaration import StoreLocation
from lance_ops.dagster.landing.landing_entries import LandedFile, SetAside
from lance_ops.maintenance.ingest import (
    etag_of,
    failures_of_store,
    modified_of,
    printable,
    remote_file_system,
    why_not_literal,
)

__all__ = ["list_remote"]


def list_remote(location: StoreLocation, *, follow_links: bool) -> Iterator[LandedFile | SetAside]:
    """Yield what is beneath a location: files, and what is set aside, in no order.

    A missing folder counts as empty. Raises `StoreError`, and `InvalidInput` for a file without a modification time.
    """
    try:
        with failures_of_store(location.uri, location.storage_options):
            filesystem, root = remote_file_system(location.uri, location.storage_options)
            filesystem.invalidate_cache()
            found = filesystem.find(root, detail=True)
    except ObjectNotFound:
        return
    prefix = root.rstrip("/") + "/"
    for path, info in found.items():
        if not path.startswith(prefix):
            continue
        uri = filesystem.unstrip_protocol(path)
        reason = why_not_literal(path.removeprefix(prefix)) or _why_not_a_file(info, follow_links=follow_links)
        if reason is None and type(filesystem)._strip_protocol(uri) != path:
            reason = "its store would read this name as another one; rename it"
        if reason is not None:
            yield SetAside(path.removeprefix(prefix), reason)
            continue
        yield LandedFile(
            path=path.removeprefix(prefix),
            uri=uri,
            size_bytes=int(info["size"]),
            modified=_modified(info, path),
            etag=etag_of(info),
        )


def _why_not_a_file(info: Mapping[str, Any], *, follow_links: bool) -> str | None:
    if (info.get("islink") or info.get("type") == "link") and not follow_links:
        return "a symbolic link; copy the file here, or set raw.links to follow"
    if info.get("type") == "other":
        return "neither a file nor a folder; remove it"
    return None


def _modified(info: Mapping[str, Any], path: str) -> datetime:
    modified = modified_of(info)
    if modified is None:
        raise InvalidInput(
            f"raw file {printable(path)}: its file system does not say when it was modified, so it cannot be watched"
        )
    return modified
