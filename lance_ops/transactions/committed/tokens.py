"""Work that must happen once: a caller's token in the transaction's properties.

    lance_ops.token             a replay of the same token is answered with the version that has it
    lance_ops.batch.<key>       a batch of input: no two commits on the same version may bring the same key
    lance_ops.replaces.<key>    rows that others take the place of, even if there are none: no two commits on the same
                                version may replace those of the same key

The history holds the tokens of the versions that are retained. Before clean-up removes a version it writes down the
token that the version carries:

    _lance_ops/tokens/{SHA-256 of the token}.json       {"token": "…", "version": 7, "uuid": "…"}

and so it does before it removes the one after, by which one can tell that the version is no ghost: of ghosts nothing is
kept.

A transaction's file proves nothing: one that never was committed looks the same.
"""

from __future__ import annotations

import hashlib
import json

from lance_ops.core.errors import CorruptFile, ObjectNotFound
from lance_ops.store import Store
from lance_ops.transactions.committed.committed_versions import CommittedVersion
from lance_ops.transactions.transaction import Transaction

__all__ = [
    "BATCH_PREFIX",
    "REPLACES_PREFIX",
    "TOKEN",
    "TOKENS_DIR",
    "find_duplicate_work",
    "load_token_version",
    "save_token",
    "token_of",
]

TOKEN = "lance_ops.token"
BATCH_PREFIX = "lance_ops.batch."
REPLACES_PREFIX = "lance_ops.replaces."
TOKENS_DIR = "_lance_ops/tokens"

_NOT_BY_BOTH = ((BATCH_PREFIX, "bring batch"), (REPLACES_PREFIX, "replace"))


def token_of(transaction: Transaction) -> str | None:
    """Return the transaction's token."""
    return transaction.transaction_properties.get(TOKEN)


def find_duplicate_work(ours: Transaction, theirs: Transaction) -> str | None:
    """Return, in words, what both do and only one of two commits on the same version may do."""
    shared = sorted(ours.transaction_properties.keys() & theirs.transaction_properties.keys())
    for prefix, verb in _NOT_BY_BOTH:
        for key in shared:
            if key.startswith(prefix):
                return f"{verb} {key.removeprefix(prefix)!r}"
    return None


def save_token(store: Store, landed: CommittedVersion) -> None:
    """Write down, durably, the token of a version that is about to be removed; nothing if it has none."""
    token = token_of(landed.transaction) if landed.transaction else None
    if token is None or landed.transaction is None:
        return
    content = {"token": token, "version": landed.version, "uuid": landed.transaction.uuid}
    store.put(_path(token), json.dumps(content, sort_keys=True).encode())


def load_token_version(store: Store, token: str) -> int | None:
    """Return the removed version that carried the token; None if none was written down."""
    path = _path(token)
    try:
        content = json.loads(store.get(path).to_pybytes())
        return int(content["version"]) if content["token"] == token else None
    except ObjectNotFound:
        return None
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptFile(store.uri_of(path), "token", f"not a version: {error!r}") from error


def _path(token: str) -> str:
    return f"{TOKENS_DIR}/{hashlib.sha256(token.encode()).hexdigest()}.json"
