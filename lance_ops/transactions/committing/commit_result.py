"""The outcome of a commit that succeeded."""

from __future__ import annotations

from lance_ops.core.records import dataclass
from lance_ops.table import Manifest
from lance_ops.transactions.transaction import Transaction

__all__ = ["CommitResult"]


@dataclass(frozen=True)
class CommitResult:
    """The version that holds the work.

    `replayed` means that the version existed before this call. `transaction` is the one that made the version. If its
    UUID differs from that of the caller's transaction, another commit with the same token did the work, and the files
    of the caller's transaction are not in the table.
    """

    version: int
    manifest: Manifest
    transaction: Transaction
    replayed: bool = False
