"""The local file system as a store: durable writes, exclusive names, memory maps."""

from lance_ops.store.local.local_store import LocalStore

__all__ = [
    "LocalStore",
]
