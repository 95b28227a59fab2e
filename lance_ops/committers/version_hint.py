"""`_versions/latest_version_hint.json`: which version was the newest, and a way to tell that it still is.

    {"version":7}                              what others write, and we where a directory cannot be sealed
    {"version":7,"seal":"0f9a6b2c41d87e35"}    7 is the newest for as long as the directory is what it was then

The seal is a digest of the version and of the stamp that `Store.seal` gave the directory before the versions in it were
listed. No other state of that directory, and no other directory, has this stamp. So what was the newest under it is so
whenever the directory has it, and there is nothing to list. A hint without a seal is never believed: all it allows is
to probe upwards from it, and that stops short where clean-up has removed a version between it and the newest.

The hint is overwritten in place. One that is torn does not match, and the reference takes it for none.
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.file_names import VERSIONS_DIR, ManifestNaming, manifest_name
from lance_ops.store import Store

__all__ = ["VERSION_HINT_PATH", "newest_by_hint", "uses_version_hint", "write_hint"]

_NAME = "latest_version_hint.json"
VERSION_HINT_PATH = f"{VERSIONS_DIR}/{_NAME}"

_SWITCH = "LANCE_USE_VERSION_HINT"
_OFF = ("0", "false", "off")
_SEALED = re.compile(rb'\{"version":([1-9][0-9]{0,18}),"seal":"([0-9a-f]{16})"\}')
_LONGEST_BYTES = 64


def uses_version_hint(store: Store) -> bool:
    """Return whether versions of a store are hinted at: not where names are listed in order, nor where it is forbidden.

    The reference's variable of the environment, `LANCE_USE_VERSION_HINT`, forbids it.
    """
    return not store.lists_in_order and os.environ.get(_SWITCH, "").strip().lower() not in _OFF


def write_hint(store: Store, version: int, stamp: str | None) -> None:
    """Leave a hint; `stamp` is that of the directory, sealed, when `version` was seen to be the newest, else None."""
    seal = "" if stamp is None else f',"seal":"{_seal(version, stamp)}"'
    store.put_hint(VERSION_HINT_PATH, f'{{"version":{version}{seal}}}'.encode())


def newest_by_hint(store: Store, stamp: str) -> int | None:
    """Return the newest version of a directory that has this stamp now, or None where it has to be listed.

    All versions of a sealed directory have V2 names. Asking for two of them guards against a file system whose
    directories do not show that they changed.
    """
    try:
        versions = store.child(VERSIONS_DIR)
        hint = versions.get(_NAME)
        match = _SEALED.fullmatch(hint.to_pybytes()) if hint.size <= _LONGEST_BYTES else None
        if match is None:
            return None
        version = int(match[1])
        if _seal(version, stamp) != match[2].decode():
            return None
        is_there = versions.exists(manifest_name(version, ManifestNaming.V2))
        has_next = versions.exists(manifest_name(version + 1, ManifestNaming.V2))
    except LanceOpsError:
        return None
    return version if is_there and not has_next else None


def _seal(version: int, stamp: str) -> str:
    return blake2b(f"{version} {stamp}".encode(), digest_size=8).hexdigest()
