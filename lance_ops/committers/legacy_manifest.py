"""Read `_latest.manifest`, the copy of the newest manifest that the oldest writers kept in a dataset's root.

It is used only if `_versions` holds no manifest. Its version number is only inside the manifest.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, ObjectNotFound
from lance_ops.core.records import dataclass
from lance_ops.pb.table_pb2 import Manifest
from lance_ops.store import Store
from lance_ops.wire import MAGIC, parse_message, unframe

__all__ = ["LEGACY_MANIFEST_PATH", "LegacyManifest", "read_legacy_manifest"]

LEGACY_MANIFEST_PATH = "_latest.manifest"
_FOOTER = struct.Struct("<QHH4s")  # position of the manifest, two words of format version, magic


@dataclass(frozen=True, slots=True)
class LegacyManifest:
    """The one version of a dataset without `_versions`."""

    version: int
    data: pa.Buffer


def read_legacy_manifest(store: Store) -> LegacyManifest | None:
    """Return the legacy manifest, None if there is none. Raises `CorruptFile` if its version cannot be read."""
    try:
        data = store.get(LEGACY_MANIFEST_PATH)
    except ObjectNotFound:
        return None
    path = store.uri_of(LEGACY_MANIFEST_PATH)
    view = memoryview(data)
    if len(view) < _FOOTER.size:
        raise CorruptFile(path, "footer", f"the file has only {len(view)} bytes")
    position, _, _, magic = _FOOTER.unpack(view[-_FOOTER.size :])
    if magic != MAGIC:
        raise CorruptFile(path, "footer", "it does not end with the magic of a manifest")
    manifest = parse_message(Manifest, unframe(view, position, path, "manifest"), path, "manifest")
    if manifest.version == 0:
        raise CorruptFile(path, "manifest", "it has no version number")
    return LegacyManifest(manifest.version, data)
