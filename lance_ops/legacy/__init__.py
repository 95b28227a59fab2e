"""Support for tables of file version 0.1: pending dictionaries, and pruning by batch statistics."""

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
