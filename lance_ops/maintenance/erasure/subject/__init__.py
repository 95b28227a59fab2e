"""Say whose rows to erase: by a filter, or by keys, which tasks read from one encrypted file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.erasure.subject.key_join import HasKey
    from lance_ops.maintenance.erasure.subject.shared_table import SharedTable, shared
    from lance_ops.maintenance.erasure.subject.subject import Subject

__all__ = ["HasKey", "SharedTable", "Subject", "shared"]

_MODULES = {
    "HasKey": "key_join",
    "SharedTable": "shared_table",
    "Subject": "subject",
    "shared": "shared_table",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
