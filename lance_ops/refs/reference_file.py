"""Small JSON files, one a tag or a branch, as `_refs` holds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from lance_ops.core.errors import CorruptFile, InvalidInput, ObjectNotFound, ReferenceNotFound
from lance_ops.store import Store

__all__ = [
    "REFERENCE_SUFFIX",
    "check_metadata",
    "decode_reference",
    "encode_reference",
    "read_each",
    "read_reference",
    "stems",
]

T = TypeVar("T")

REFERENCE_SUFFIX = ".json"


def encode_reference(content: Mapping[str, Any]) -> bytes:
    """Return the file with this content."""
    return json.dumps(content, indent=2).encode()


def decode_reference(data: bytes, path: str, kind: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Return what `build` makes of a file's content; raise `CorruptFile` naming it if it is no such `kind`."""
    try:
        return build(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, InvalidInput) as error:
        raise CorruptFile(path, kind, f"not a {kind}: {error!r}") from error


def read_reference(store: Store, path: str, kind: str, name: str) -> bytes:
    """Return a file's bytes; raise `ReferenceNotFound` if there is none."""
    try:
        data: bytes = store.get(path).to_pybytes()
    except ObjectNotFound:
        raise ReferenceNotFound(f"{store.uri} has no {kind} {name!r}") from None
    return data


def stems(store: Store, directory: str) -> list[str]:
    """Return the names of the files in a directory, in order, without their suffix."""
    names = store.list_names(directory)
    return sorted(name.removesuffix(REFERENCE_SUFFIX) for name in names if name.endswith(REFERENCE_SUFFIX))


def read_each(store: Store, names: Iterable[str], read: Callable[[Store, str], T]) -> dict[str, T]:
    """Return what is noted under each name; what was removed since it was listed is left out.

    Where a file that is replaced is absent for a moment, nobody can tell that from a removal: there it is an error.
    """
    found: dict[str, T] = {}
    for name in names:
        try:
            found[name] = read(store, name)
        except ReferenceNotFound:
            if not store.replaces_at_once:
                raise
    return found


def check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata to note; raise `InvalidInput` for what is no text."""
    if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
        raise InvalidInput("the metadata of a tag or a branch is text by text")
    return dict(metadata)
