"""A cache of decoded manifests: versions are opened repeatedly, most often right after their commit."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

import pyarrow as pa

from lance_ops.core.versions import FileVersion
from lance_ops.table.manifest.changed_manifest import change_manifest
from lance_ops.table.manifest.manifest import Manifest
from lance_ops.table.manifest.manifest_bytes import decode_manifest, decode_with_transaction, inline_transaction

__all__ = ["MANIFEST_CACHE", "ManifestCache"]

_LONGEST_BYTES, _MAX_BYTES = 512 << 10, 2 << 20
"""The bytes of the longest manifest that is cached, and of all together; decoded, they take several times as much."""


class ManifestCache:
    """Caches manifests by path; an entry is used only while the file has the bytes that it was decoded from.

    It holds at most `capacity` manifests, of at most `max_bytes` together, and never less than the one used last.
    """

    def __init__(self, capacity: int, max_bytes: int = _MAX_BYTES) -> None:
        self._capacity = capacity
        self._max_bytes = max_bytes
        self.reset()

    def decode(self, data: pa.Buffer, path: str) -> Manifest:
        """Return the cached manifest, or decode it as `decode_manifest` does."""
        manifest = self._find(data, path)
        if manifest is None:
            manifest = decode_manifest(data, path)
            self._keep(data, path, manifest)
        return manifest

    def decode_with_transaction(
        self, data: pa.Buffer, path: str, *, in_passing: bool = False
    ) -> tuple[Manifest, bytes | None]:
        """Return the manifest as `decode` does, and the encoded transaction in its file, if there is one.

        A manifest that is read `in_passing`, as one of all versions, pushes none out of the cache.
        """
        manifest = self._find(data, path)
        if manifest is not None:
            return manifest, inline_transaction(data, path)
        manifest, transaction = decode_with_transaction(data, path)
        self._keep(data, path, manifest, in_passing)
        return manifest, transaction

    def add(self, data: bytes, path: str, manifest: Manifest) -> None:
        """Cache a manifest that was just written; its bytes must decode to an equal manifest."""
        if len(data) > _LONGEST_BYTES or manifest.data_format.version == FileVersion.V0_1.value:
            return  # a 0.1 manifest learns the positions of its dictionaries only when it is read
        self._keep(pa.py_buffer(data), path, change_manifest(manifest, fragments=manifest.fragments.as_read_from(path)))

    def _find(self, data: pa.Buffer, path: str) -> Manifest | None:
        cached = self._manifests.get(path)
        return cached[1] if cached is not None and cached[0].equals(data) else None

    def _keep(self, data: pa.Buffer, path: str, manifest: Manifest, in_passing: bool = False) -> None:
        if data.size > _LONGEST_BYTES or (in_passing and len(self._manifests) >= self._capacity):
            return
        copied = pa.py_buffer(data.to_pybytes())  # a local store's buffer may map the file
        with self._lock:
            replaced = self._manifests.pop(path, None)
            self._num_bytes += copied.size - (0 if replaced is None else replaced[0].size)
            self._manifests[path] = copied, manifest
            while len(self._manifests) > self._capacity or (
                self._num_bytes > self._max_bytes and len(self._manifests) > 1
            ):
                _, (oldest, _) = self._manifests.popitem(last=False)
                self._num_bytes -= oldest.size

    def reset(self) -> None:
        """Empty the cache and renew the lock: in a forked child, the thread that held the lock does not exist."""
        self._manifests: OrderedDict[str, tuple[pa.Buffer, Manifest]] = OrderedDict()
        self._num_bytes = 0
        self._lock = threading.Lock()


MANIFEST_CACHE = ManifestCache(capacity=16)
os.register_at_fork(after_in_child=MANIFEST_CACHE.reset)
