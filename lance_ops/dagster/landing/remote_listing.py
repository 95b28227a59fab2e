"""List a landing folder in an object store or any other file system of fsspec.

A folder in S3 is listed by the client that datasets there have, which is many times as fast as s3fs, and lists the
folders of a long listing side by side. What only s3fs understands is left to s3fs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from fsspec.config import conf as fsspec_settings

from lance_ops.core.errors import InvalidInput, LanceOpsError, ObjectNotFound, StoreUnreachable
from lance_ops.dagster.declaration import StoreLocation
from lance_ops.dagster.landing.landing_entries import LandedFile, SetAside
from lance_ops.maintenance.ingest import (
    etag_of,
    failures_of_store,
    printable,
    remote_file_system,
    why_not_literal,
)
from lance_ops.store import ObjectInfo, modified_of, open_store, with_short_timeouts

__all__ = ["list_remote"]

_SCHEMES = ("s3", "s3a")
"""The schemes of folders in S3, and the names of s3fs's own settings, which fsspec takes from variables and files."""

_S3_OPTIONS = {
    "key": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "token": "aws_session_token",
    "endpoint_url": "aws_endpoint",
}
"""The options of s3fs that a store in S3 has too, by their names there."""

_ONLY_STORES_READ = (
    "AWS_ENDPOINT",
    "AWS_SKIP_SIGNATURE",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AWS_S3_EXPRESS",
    "AWS_TOKEN",
)
"""Variables that our store reads and s3fs does not. If one is set, the two could list different places."""

_SESSION_TOKEN = "AWS_SESSION_TOKEN"

_SHORT_REQUESTS = {"connect_timeout": 5, "read_timeout": 10, "retries": {"total_max_attempts": 3, "mode": "standard"}}
"""What botocore is told for a listing: a tick may take a minute."""


def list_remote(location: StoreLocation, *, follow_links: bool) -> Iterator[LandedFile | SetAside]:
    """Yield what is beneath a location: files, and what is set aside, in no order.

    A missing folder counts as empty. Raises `StoreError`, and `InvalidInput` for a file without a modification time.
    """
    folder = "s3://" + location.uri.partition("://")[2].rstrip("/")
    objects = _objects_in_s3(location, folder)
    if objects is None:
        return _list_by_fsspec(location, follow_links=follow_links)
    return (_entry_of(listed, folder) for listed in objects)


def _objects_in_s3(location: StoreLocation, folder: str) -> Sequence[ObjectInfo] | None:
    """Return what a store lists; None for a location, options and names of objects that are s3fs's alone.

    s3fs then has the last word in every failure but one: where the store does not answer, `StoreUnreachable` is raised.
    """
    given, variables = location.storage_options, os.environ
    if (
        location.uri.partition("://")[0] not in _SCHEMES
        or not given.keys() <= _S3_OPTIONS.keys()
        or variables.keys() & {*_ONLY_STORES_READ}
        or fsspec_settings.keys() & {*_SCHEMES}
    ):
        return None
    if "key" in given and "token" not in given and _SESSION_TOKEN in variables:
        return None  # a store would complete the key by the variable
    options = {_S3_OPTIONS[name]: value for name, value in given.items()}
    store = open_store(folder, with_short_timeouts(folder, {**options, "allow_http": "true"}))
    try:
        found = list(store.list())
        if not found:
            store.list_names("", 1)  # fails for a bucket that does not exist, which the listing takes for an empty one
        return found
    except StoreUnreachable:
        raise  # s3fs would not reach it either, and tries for a minute
    except LanceOpsError:
        return None


def _entry_of(listed: ObjectInfo, folder: str) -> LandedFile | SetAside:
    """Return the entry of an object in S3. s3fs takes every name without empty segments literally."""
    reason = why_not_literal(listed.path)
    if reason is not None:
        return SetAside(listed.path, reason)
    return LandedFile(listed.path, f"{folder}/{listed.path}", listed.size_bytes, listed.modified, listed.tag)


def _list_by_fsspec(location: StoreLocation, *, follow_links: bool) -> Iterator[LandedFile | SetAside]:
    """List a location by its file system of fsspec; no request is left for the caller's iteration."""
    try:
        with failures_of_store(location.uri, location.storage_options):
            filesystem, root = _short_file_system(location)
            found = filesystem.find(root, detail=True)
    except ObjectNotFound:
        return iter(())
    return _entries_of(filesystem, root, found, follow_links=follow_links)


def _short_file_system(location: StoreLocation) -> tuple[Any, str]:
    """Return the file system of a location. That of S3 gives a store up within a minute, unless its options say so."""
    given: dict[str, Any] = dict(location.storage_options)
    if location.uri.partition("://")[0] not in _SCHEMES or "config_kwargs" in given:
        return remote_file_system(location.uri, given)
    # Raw files are read by another file system, whose options lack these: fsspec shares those of the same options.
    filesystem, root = remote_file_system(location.uri, {**given, "config_kwargs": _SHORT_REQUESTS})
    filesystem.retries = 1  # s3fs tries again what botocore has tried
    return filesystem, root


def _entries_of(
    filesystem: Any, root: str, found: Mapping[str, Mapping[str, Any]], *, follow_links: bool
) -> Iterator[LandedFile | SetAside]:
    prefix = root.rstrip("/") + "/"
    for path, info in found.items():
        if not path.startswith(prefix) or path.endswith("/"):  # consoles mark a folder by an object `folder/`
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
