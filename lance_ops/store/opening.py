"""Open the store that a URI or path names, and compare URIs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.store.contract import Store
from lance_ops.store.local import LocalStore
from lance_ops.store.memory import MemoryStore
from lance_ops.store.remote import FsspecStore
from lance_ops.store.services import service_of

__all__ = ["is_local", "is_well_known", "open_store", "path_beneath"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # at least two letters, because `C:` is no scheme


def open_store(uri: str | os.PathLike[str], storage_options: Mapping[str, object] | None = None) -> Store:
    """Return the store at a path or URI, which need not exist yet.

    Plain paths (`~` is expanded, relative ones are made absolute here and now), `file://`, `memory://name`, `s3://`,
    `gs://`, `az://`, `abfss://` and every other scheme of fsspec. `storage_options` are the reference
    implementation's; local and memory stores take none and ignore them, as it does.
    """
    text = os.fspath(uri)
    if not text:
        raise InvalidInput("the URI of a dataset is empty")
    match = _SCHEME.match(text)
    if match is None:
        return LocalStore(os.path.expanduser(text))
    scheme = match[1].lower()
    rest = text[match.end() :]
    if scheme in ("file", "local"):
        return LocalStore(_file_path(text))
    if scheme == "memory":
        return MemoryStore(rest.strip("/") or "default")
    if ":" in rest.partition("/")[0].rpartition("@")[0]:  # URIs are shown, and stored in manifests
        raise InvalidInput(f"a {scheme}:// URI with a password in it: pass credentials in storage_options")
    if "+" in scheme:
        raise UnsupportedFeature(f"the external manifest store of {scheme}://", "URI")
    return FsspecStore(text, storage_options)


def is_well_known(uri: str) -> bool:
    """Return whether a URI names this machine's disk, this process's memory, or a well-known object store."""
    match = _SCHEME.match(uri)
    scheme = match[1].lower() if match else ""
    service = service_of(scheme)
    return is_local(uri) or (service.well_known and scheme in service.schemes)


def is_local(uri: str) -> bool:
    """Return whether a URI names this machine's disk or this process's memory."""
    match = _SCHEME.match(uri)
    return match is None or match[1].lower() in ("file", "local", "memory")


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
    match = _SCHEME.match(uri)
    scheme = match[1].lower() if match else ""
    if scheme in ("", "file", "local"):
        return os.path.realpath(_file_path(uri) if scheme else os.path.expanduser(uri)).rstrip("/")
    service = service_of(scheme)
    authority, slash, path = uri.partition("://")[2].strip("/").partition("/")
    return f"{service.schemes[0] if service.schemes else scheme}://{authority.partition('@')[0]}{slash}{path}"


def _file_path(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.netloc not in ("", "localhost"):
        raise InvalidInput(f"{uri}: a file URI names this machine, as in file:///path; {parts.netloc!r} is a host")
    return unquote(uri.partition("://")[2].removeprefix(parts.netloc))
