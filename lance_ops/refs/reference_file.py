"""Encode, decode and list the small JSON files in `_refs`, one for each tag or branch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from lance_ops.core.errors import (
    CorruptFile,
    InvalidInput,
    ObjectNotFound,
    ReferenceNotFound,
    StoreError,
    WriteRefused,
)
from lance_ops.store import PutOutcome, Store

__all__ = [
    "REFERENCE_SUFFIX",
    "check_metadata",
    "create_reference",
    "decode_reference",
    "encode_reference",
    "list_stems",
    "read_reference",
    "read_references",
]

T = TypeVar("T")

REFERENCE_SUFFIX = ".json"


def encode_reference(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file with this content."""
    return json.dumps(content, indent=2).encode()


def decode_reference(data: bytes, path: str, kind: str, build: Callable[[dict[str, Any]], T]) -> T:
    """Return what `build` makes of a file's content; raise `CorruptFile` with its path if that is not a `kind`."""
    try:
        return build(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, InvalidInput) as error:
        raise CorruptFile(path, kind, f"not a {kind}: {error!r}") from error


def create_reference(store: Store, path: str, data: bytes) -> bool:
    """Create a file; return whether it is there with these bytes, which no other caller writes, False for others.

    An answer that was lost is looked up. Raises `StoreError` if the file is not there; a request on its way may still
    create it.
    """
    try:
        if store.put_if_absent(path, data) is PutOutcome.CREATED:
            return True
    except WriteRefused:
        raise
    except StoreError:
        if not store.exists(path):
            raise
    found: bytes = store.get(path).to_pybytes()
    return found == data


def read_reference(store: Store, path: str, kind: str, name: str) -> bytes:
    """Return a file's bytes; raise `ReferenceNotFound` if it does not exist."""
    try:
        data: bytes = store.get(path).to_pybytes()
    except ObjectNotFound:
        raise ReferenceNotFound(f"{store.uri} has no {kind} {name!r}") from None
    return data


def list_stems(store: Store, directory: str) -> list[str]:
    """Return the sorted names of the reference files in a directory, without their suffix."""
    names = store.list_names(directory)
    return sorted(name.removesuffix(REFERENCE_SUFFIX) for name in names if name.endswith(REFERENCE_SUFFIX))


def read_references(store: Store, names: Iterable[str], read: Callable[[Store, str], T]) -> dict[str, T]:
    """Return the reference of each name; names that were removed since they were listed are left out.

    In a store where a file is absent for a moment while it is replaced, a missing file may be a replacement: there the
    error is raised.
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
    """Return the metadata as a dict; raise `InvalidInput` for a key or value that is not a string."""
    if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
        raise InvalidInput("the metadata of a tag or a branch must map strings to strings")
    return dict(metadata)
