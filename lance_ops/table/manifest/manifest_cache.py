"""The manifests met last, decoded: a version is opened time and again, and first of all by whoever made it."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import replace

import pyarrow as pa

from lance_ops.core.versions import FileVersion
from lance_ops.table.manifest.manifest import Manifest
from lance_ops.table.manifest.manifest_bytes import decode_manifest

__all__ = ["MANIFEST_CACHE", "ManifestCache"]

_LONGEST_BYTES = 128 << 10  # what is longer would take much memory, and from a local store it is a map of its file


class ManifestCache:
    """Manifests by the paths of their files, each for as long as its file has the bytes that it was decoded from."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.reset()

    def decode(self, data: pa.Buffer, path: str) -> Manifest:
        """Do what `decode_manifest` does, unless that was done."""
        known = self._manifests.get(path)
        if known is not None and known[0].equals(data):
            return known[1]
        manifest = decode_manifest(data, path)
        self._keep(data, path, manifest)
        return manifest

    def add(self, data: bytes, path: str, manifest: Manifest) -> None:
        """Keep a manifest that was just written: it is what its bytes decode to, its fragments decoded or not."""
        if len(data) > _LONGEST_BYTES or manifest.data_format.version == FileVersion.V0_1.value:
            return  # the dictionaries of the latter know their places once they are read
        self._keep(pa.py_buffer(data), path, replace(manifest, fragments=manifest.fragments.as_read_from(path)))

    def _keep(self, data: pa.Buffer, path: str, manifest: Manifest) -> None:
        if data.size > _LONGEST_BYTES:
            return
        with self._lock:
            self._manifests[path] = data, manifest
            self._manifests.move_to_end(path)
            while len(self._manifests) > self._capacity:
                self._manifests.popitem(last=False)

    def reset(self) -> None:
        """Start empty and unlocked: in a forked child the lock may be held by a thread that does not exist there."""
        self._manifests: OrderedDict[str, tuple[pa.Buffer, Manifest]] = OrderedDict()
        self._lock = threading.Lock()


MANIFEST_CACHE = ManifestCache(capacity=16)
os.register_at_fork(after_in_child=MANIFEST_CACHE.reset)
