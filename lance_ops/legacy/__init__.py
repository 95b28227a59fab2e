"""Support for tables of file version 0.1: pending dictionaries, and pruning by batch statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.legacy.batch_pruning import rows_that_may_match
    from lance_ops.legacy.pending_dictionaries import (
        has_pending_dictionaries,
        join_dictionaries_of_fragments,
        join_pending_dictionaries,
        with_pending_dictionaries,
    )

__all__ = [
    "has_pending_dictionaries",
    "join_dictionaries_of_fragments",
    "join_pending_dictionaries",
    "rows_that_may_match",
    "with_pending_dictionaries",
]

_MODULES = {
    "has_pending_dictionaries": "pending_dictionaries",
    "join_dictionaries_of_fragments": "pending_dictionaries",
    "join_pending_dictionaries": "pending_dictionaries",
    "rows_that_may_match": "batch_pruning",
    "with_pending_dictionaries": "pending_dictionaries",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
