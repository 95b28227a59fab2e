"""Read the files that URIs of images name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import urlopen

from lance_ops.core.errors import InvalidInput, ObjectNotFound, StoreError
from lance_ops.core.threads import map_ordered
from lance_ops.store import Store, open_store

__all__ = ["read_images"]

_FILES_AT_ONCE = 16
_SERVER_SECONDS = 60
_WEB = ("http://", "https://")


def read_images(uris: Sequence[str | None]) -> Iterator[bytes | None]:
    """Yield the bytes of each file in order, and None for the URI None; files are read concurrently.

    Raises `StoreError` naming a URI that cannot be read, `ObjectNotFound` if nothing is there, and `InvalidInput` for a
    URI that ends with a slash.
    """
    stores: dict[str, Store] = {}
    return map_ordered(partial(_read, stores), uris, min(_FILES_AT_ONCE, len(uris)), _FILES_AT_ONCE)


def _read(stores: dict[str, Store], uri: str | None) -> bytes | None:
    if uri is None:
        return None
    if uri.lower().startswith(_WEB):
        return _download(uri)
    folder, slash, name = uri.rpartition("/")
    if not name:
        raise InvalidInput(f"the URI of an image names no file: {uri!r}")
    folder = folder or (slash and "/") or "."
    store = stores.get(folder)
    if store is None:
        store = stores[folder] = open_store(folder)
    data: bytes = store.get(unquote(name) if uri.lower().startswith("file:") else name).to_pybytes()
    return data


def _download(uri: str) -> bytes:
    try:
        with urlopen(uri, timeout=_SERVER_SECONDS) as answer:
            data: bytes = answer.read()
            return data
    except HTTPError as error:
        with error:
            if error.code in (404, 410):
                raise ObjectNotFound(f"{uri}: the server has no such image") from error
            raise StoreError(f"{uri}: the server refused to send the image: {error}") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"{uri}: the image cannot be read: {error}") from error
