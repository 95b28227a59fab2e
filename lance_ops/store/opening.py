"""Open the store that a URI or path names, and compare URIs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

from lance_ops import store
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.store import services
from lance_ops.store.contract import Store
from lance_ops.store.local import LocalStore

__all__ = [
    "bucket_and_path",
    "is_local",
    "is_same_bucket",
    "is_well_known",
    "open_store",
    "path_beneath",
    "with_short_timeouts",
]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # at least two letters, because `C:` is no scheme
_LOCAL_SCHEMES = ("file", "file-object-store", "file+uring", "local")
"""The schemes of this machine's disk. The reference names ways to read the same files by the second and the third."""
_LOCAL_URI = re.compile(rf"(?:{'|'.join(map(re.escape, _LOCAL_SCHEMES))}):(?=/)", re.IGNORECASE)
_RELATIVE_FILE_URI = re.compile(r"file:(?!/)", re.IGNORECASE)

_SHORT = {"connect_timeout": "5s", "request_timeout": "20s", "client_retry_timeout": "20s", "download_retry_count": "0"}
"""Time enough to read a large manifest. A server that never answers is asked twice at most."""
_OTHER_NAMES = {"request_timeout": ("timeout",)}


def open_store(uri: str | os.PathLike[str], storage_options: Mapping[str, object] | None = None) -> Store:
    """Return the store at a path or URI, which need not exist yet.

    Plain paths (`~` is expanded, relative ones are made absolute here and now), `file:/path`, `file:///path`,
    `memory://name`, `s3://`, `gs://`, `az://`, `abfss://` and every other scheme of fsspec. Percent signs mean
    themselves in a plain path, and encode bytes in a `file:` URI. `memory://` without a name begins empty each time.
    `storage_options` are the reference implementation's; local and memory stores take none and ignore them, as it does.
    Raises `InvalidInput`, without showing it, for a URI that holds a secret.
    """
    text = os.fspath(uri)
    if not isinstance(text, str):
        raise TypeError(f"the URI of a dataset is text or a path of text, not {text!r}")
    if not text:
        raise InvalidInput("the URI of a dataset is empty")
    path = _local_path(text)
    if path is not None:
        return LocalStore(path)
    scheme, _, rest = text.partition("://")
    scheme = scheme.lower()
    if scheme == "memory":
        return store.MemoryStore(rest.strip("/") or None)
    if "+" in scheme:
        raise UnsupportedFeature(f"the external manifest store of {scheme}://", "URI")
    return store.FsspecStore(text, storage_options)


def with_short_timeouts(uri: str, storage_options: Mapping[str, str] | None) -> dict[str, str]:
    """Return options by which an object store is given up within a minute, as far as the given ones do not say.

    Somebody waits for a look at a table, and asks again. A run that writes may wait longer for its store.
    """
    given = dict(storage_options or {})
    if is_local(uri) or not services.service_of(uri.partition("://")[0].lower()).takes_time_limits:
        return given
    names = {name.lower() for name in given}
    return {
        name: limit for name, limit in _SHORT.items() if names.isdisjoint({name, *_OTHER_NAMES.get(name, ())})
    } | given


def is_well_known(uri: str) -> bool:
    """Return whether a URI names this machine's disk, this process's memory, or a well-known object store."""
    if is_local(uri):
        return True
    scheme = uri.partition("://")[0].lower()
    service = services.service_of(scheme)
    return service.well_known and scheme in service.schemes


def is_local(uri: str) -> bool:
    """Return whether a URI names this machine's disk or this process's memory."""
    match = _SCHEME.match(uri)
    return match is None or match[1].lower() in (*_LOCAL_SCHEMES, "memory")


def is_same_bucket(left: str, right: str) -> bool:
    """Return whether two URIs name the same bucket of an object store, in any spelling.

    Two URIs that name different accounts of Azure are not in the same bucket. Local paths are in no bucket.
    """
    if is_local(left) or is_local(right):
        return False
    accounts = {account for uri in (left, right) if (account := _authority(uri).partition("@")[2])}
    return len(accounts) < 2 and _bucket(left) == _bucket(right)


def bucket_and_path(uri: str) -> tuple[str, str]:
    """Return a store's bucket, "" for a local path, and the path of its root in it. `#` and `?` are parts of a path."""
    path = _local_path(uri)
    if path is not None:
        return "", path.strip("/")
    bucket, _, path = uri.partition("://")[2].partition("/")
    return bucket, path.strip("/")


def path_beneath(root: str, uri: str) -> str | None:
    """Return the path of `uri` beneath `root`: `""` if they are the same, None if it is not beneath.

    Different spellings of one location are equal. So are containers of one name in two accounts of Azure.
    """
    if root == uri:
        return ""
    outer, inner = _canonical(root), _canonical(uri)
    if inner == outer:
        return ""
    return inner.removeprefix(f"{outer}/") if inner.startswith(f"{outer}/") else None


def _canonical(uri: str) -> str:
    path = _local_path(uri)
    if path is not None:
        return os.path.realpath(path).rstrip("/")
    scheme, _, rest = uri.partition("://")
    service = services.service_of(scheme.lower())
    authority, slash, path = rest.strip("/").partition("/")
    name = service.schemes[0] if service.schemes else scheme.lower()
    return f"{name}://{authority.partition('@')[0]}{slash}{path}"


def _bucket(uri: str) -> str:
    return "/".join(_canonical(uri).split("/", 3)[:3])


def _authority(uri: str) -> str:
    return uri.partition("://")[2].partition("/")[0].lower()


def _local_path(uri: str) -> str | None:
    """Return the path that a plain path or a URI of this machine names; None for any other URI.

    Raises `InvalidInput` for a `file:` URI of another machine, or without an absolute path.
    """
    match = _LOCAL_URI.match(uri)
    if match is None:
        if _RELATIVE_FILE_URI.match(uri):
            raise InvalidInput(f"{uri}: a file URI has an absolute path, as in file:///path; or pass a path alone")
        return None if _SCHEME.match(uri) else os.path.expanduser(uri)
    place = uri[match.end() :]
    host, _, path = place[2:].partition("/") if place.startswith("//") else ("", "", place[1:])
    if host not in ("", "localhost"):
        raise InvalidInput(f"{uri}: a file URI names this machine, as in file:///path; {host!r} is a host")
    return unquote(f"/{path}")
