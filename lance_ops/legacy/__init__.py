"""What only tables of file version 0.1 need: pending dictionaries, and pruning by the statistics of batches."""

from lance_ops.legacy.batch_pruning import rows_that_may_match
from lance_ops.legacy.pending_dictionaries import (
    begins_dictionaries,
    settle_dictionaries,
    settle_fragments,
    with_begun_dictionaries,
)

__all__ = [
    "begins_dictionaries",
    "rows_that_may_match",
    "settle_dictionaries",
    "settle_fragments",
    "with_begun_dictionaries",
]
