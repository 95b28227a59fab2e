"""Versions that were committed: read them, recognise the history that a plan was made on, find a transaction again."""

from lance_ops.transactions.committed.committed_versions import (
    Landed,
    decode_version,
    newest_first,
    read_manifest,
    read_transaction,
    read_version,
)
from lance_ops.transactions.committed.continued import was_continued
from lance_ops.transactions.committed.find_commit import find_token, find_transaction
from lance_ops.transactions.committed.ghosts import has_grown
from lance_ops.transactions.committed.lives import Landing, lives_on, see_home, share_files
from lance_ops.transactions.committed.tokens import (
    BATCH_PREFIX,
    REPLACES_PREFIX,
    TOKEN,
    done_by_both,
    keep_token,
    token_of,
)

__all__ = [
    "BATCH_PREFIX",
    "REPLACES_PREFIX",
    "TOKEN",
    "Landed",
    "Landing",
    "decode_version",
    "done_by_both",
    "find_token",
    "find_transaction",
    "has_grown",
    "keep_token",
    "lives_on",
    "newest_first",
    "read_manifest",
    "read_transaction",
    "read_version",
    "see_home",
    "share_files",
    "token_of",
    "was_continued",
]
