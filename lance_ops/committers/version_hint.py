"""Read and write `_versions/latest_version_hint.json`: the newest version, with a proof that it still is the newest.

    {"version":7}                              written by others, and by us if the directory cannot be sealed
    {"version":7,"seal":"0f9a6b2c41d87e35"}    7 is the newest version while the directory keeps its stamp

The seal is a digest of the version and of the stamp that `Store.seal_directory` gave the directory before its newest
version was found. No other state of that directory, and no other directory, has this stamp. So while the directory has
this stamp, the newest version is the one that was found then. A hint without a seal is not used: it only allows probing
upwards from its version, and that stops too early where clean-up has removed a version below the newest.

The hint is overwritten in place. A torn hint does not match its seal, and the reference ignores it.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b

from lance_ops.committers.versions_directory import manifest_path
from lance_ops.core.errors import LanceOpsError
from lance_ops.core.file_names import VERSIONS_DIR, ManifestNaming
from lance_ops.store import Store

__all__ = ["VERSION_HINT_PATH", "newest_by_hint", "uses_version_hint", "write_hint"]

VERSION_HINT_PATH = f"{VERSIONS_DIR}/latest_version_hint.json"

_SWITCH = "LANCE_USE_VERSION_HINT"
_OFF = ("0", "false", "off")
_SEALED = re.compile(rb'\{"version":([1-9][0-9]{0,18}),"seal":"([0-9a-f]{16})"\}')
_LONGEST_BYTES = 64


def uses_version_hint(store: Store) -> bool:
    """Return whether hints are used for a store: not if it lists names in order, and not if the user forbids it.

    The environment variable `LANCE_USE_VERSION_HINT` forbids hints, as in the reference.
    """
    return not store.lists_in_order and os.environ.get(_SWITCH, "").strip().lower() not in _OFF


def write_hint(store: Store, version: int, stamp: str | None) -> None:
    """Write a hint. `stamp` is the sealed directory's, under which `version` was listed as the newest; or None."""
    seal = "" if stamp is None else f',"seal":"{_seal(version, stamp)}"'
    store.put_hint(VERSION_HINT_PATH, f'{{"version":{version}{seal}}}'.encode())


def newest_by_hint(store: Store, stamp: str) -> int | None:
    """Return the newest version of the directory, whose stamp is `stamp` now; None if it must be listed.

    All versions of a sealed directory have V2 names. Looking for two of them guards against a file system that does not
    change a directory's times.
    """
    try:
        hint = store.get(VERSION_HINT_PATH)
        match = _SEALED.fullmatch(hint.to_pybytes()) if hint.size <= _LONGEST_BYTES else None
        if match is None:
            return None
        version = int(match[1])
        if _seal(version, stamp) != match[2].decode():
            return None
        is_there = store.exists(manifest_path(version, ManifestNaming.V2))
        has_next = store.exists(manifest_path(version + 1, ManifestNaming.V2))
    except LanceOpsError:
        return None
    return version if is_there and not has_next else None


def _seal(version: int, stamp: str) -> str:
    return blake2b(f"{version} {stamp}".encode(), digest_size=8).hexdigest()
