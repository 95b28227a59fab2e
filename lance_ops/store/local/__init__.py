"""Store objects as local files: durable writes, exclusive names, memory maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.store.local.exclusive_name import link_if_absent
    from lance_ops.store.local.file_system_sync import sync_together
    from lance_ops.store.local.local_store import LocalStore
    from lance_ops.store.local.local_writer import LocalWriter
    from lance_ops.store.local.staging import FILE_MODE, copy_all, create_temporary, discard, publish, stage, write_all
    from lance_ops.store.local.syncing import Syncing, sync, with_names

__all__ = [
    "FILE_MODE",
    "LocalStore",
    "LocalWriter",
    "Syncing",
    "copy_all",
    "create_temporary",
    "discard",
    "link_if_absent",
    "publish",
    "stage",
    "sync",
    "sync_together",
    "with_names",
    "write_all",
]

_MODULES = {
    "FILE_MODE": "staging",
    "LocalStore": "local_store",
    "LocalWriter": "local_writer",
    "Syncing": "syncing",
    "copy_all": "staging",
    "create_temporary": "staging",
    "discard": "staging",
    "link_if_absent": "exclusive_name",
    "publish": "staging",
    "stage": "staging",
    "sync": "syncing",
    "sync_together": "file_system_sync",
    "with_names": "syncing",
    "write_all": "staging",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
