"""Store objects as local files: durable writes, exclusive names, memory maps."""

from lance_ops.store.local.local_store import LocalStore

__all__ = [
    "LocalStore",
]
