"""Keep the bytes of small manifests that this process has read or written, by the entity tag that a listing states.

A listing that states the same tag proves that the object still has these bytes, so they are not requested. Bytes that
were read are kept under the tag of the listing before the read. If a later listing states this tag too, the object was
the same at both times, and so also between them. Bytes that were written are kept if the tag is their MD5 digest.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from hashlib import md5

import pyarrow as pa

__all__ = ["KNOWN_MANIFESTS", "KnownManifests", "is_digest"]

_LONGEST_BYTES = 128 << 10


class KnownManifests:
    """The manifests that were used last, at most `capacity` of them. A key names the object and states its tag."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.reset()

    def get(self, key: object) -> pa.Buffer | None:
        """Return the bytes under a key, None if they are not kept."""
        return self._manifests.get(key)

    def keep(self, key: object, data: pa.Buffer) -> None:
        """Keep bytes unless they are long."""
        if data.size > _LONGEST_BYTES:
            return
        with self._lock:
            self._manifests[key] = data
            self._manifests.move_to_end(key)
            while len(self._manifests) > self._capacity:
                self._manifests.popitem(last=False)

    def reset(self) -> None:
        """Forget all and renew the lock: in a forked child, the thread that held the lock does not exist."""
        self._manifests: OrderedDict[object, pa.Buffer] = OrderedDict()
        self._lock = threading.Lock()


def is_digest(tag: str, data: bytes) -> bool:
    """Return whether a tag is the MD5 digest of these bytes, as that of an object in S3 is unless it is encrypted."""
    return tag == md5(data, usedforsecurity=False).hexdigest()


KNOWN_MANIFESTS = KnownManifests(capacity=64)
os.register_at_fork(after_in_child=KNOWN_MANIFESTS.reset)
