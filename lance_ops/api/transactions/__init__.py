"""Transactions and their operations under the reference's names, and their translation to those of this library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.api.transactions.operations import AnyOperation, LanceOperation, from_internal, to_internal
    from lance_ops.api.transactions.transaction import Transaction, as_read

__all__ = [
    "AnyOperation",
    "LanceOperation",
    "Transaction",
    "as_read",
    "from_internal",
    "to_internal",
]

_MODULES = {
    "AnyOperation": "operations",
    "LanceOperation": "operations",
    "Transaction": "transaction",
    "as_read": "transaction",
    "from_internal": "operations",
    "to_internal": "operations",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
