"""Read tokens in transactions' properties, and save the tokens of versions that clean-up removes, for `find_commit`.

    lance_ops.token             a second commit with the same token returns the version that has it
    lance_ops.batch.<key>       a batch of input: of two concurrent commits only one may add the same key
    lance_ops.replaces.<key>    rows that the commit replaces, even if none exist: of two concurrent commits only one
                                may replace the rows of the same key

Retained versions hold their tokens in their transactions. Before clean-up removes a version, it saves the token of this
version:

    _lance_ops/tokens/{SHA-256 of the token}.json       {"token": "…", "version": 7, "uuid": "…"}

Clean-up also saves it before it removes the next version, because only the next version shows that this one is not
stray. The token of a stray version is not saved.

A transaction's file is no evidence: the file of a transaction that was never committed looks the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import pyarrow as pa

from lance_ops.core.errors import CorruptFile, ObjectNotFound
from lance_ops.store import Store
from lance_ops.table import inline_transaction
from lance_ops.transactions.committed.committed_versions import CommittedVersion
from lance_ops.transactions.transaction import Transaction

__all__ = [
    "BATCH_PREFIX",
    "REPLACES_PREFIX",
    "TOKEN",
    "TOKENS_DIR",
    "exclusive_key_properties",
    "find_duplicate_work",
    "load_token_version",
    "may_have_token",
    "save_token",
    "token_of",
]

TOKEN = "lance_ops.token"
BATCH_PREFIX = "lance_ops.batch."
REPLACES_PREFIX = "lance_ops.replaces."
TOKENS_DIR = "_lance_ops/tokens"

_EXCLUSIVE_WORK = ((BATCH_PREFIX, "add batch"), (REPLACES_PREFIX, "replace"))


def exclusive_key_properties(keys: Iterable[str]) -> dict[str, str]:
    """Return the properties of a transaction that merges by these keys: of two concurrent ones only one commits.

    So no key is inserted twice, although the inserts of both touch no row of the other.
    """
    return {f"{REPLACES_PREFIX}keys={','.join(sorted({*keys}))}": ""}


def token_of(transaction: Transaction | CommittedVersion) -> str | None:
    """Return the token of a transaction, or of the transaction that made a version."""
    return transaction.transaction_properties.get(TOKEN)


def may_have_token(manifest: pa.Buffer, path: str) -> bool:
    """Return False if the transaction in a manifest's file has no token; True also if the file holds no transaction.

    This takes a fraction of the time that decoding the version takes. Raises as `inline_transaction` does.
    """
    inline = inline_transaction(manifest, path)
    return inline is None or TOKEN.encode() in inline


def find_duplicate_work(ours: Transaction, theirs: Transaction) -> str | None:
    """Return, in words, work that both transactions do and only one of them may do; None if there is none."""
    shared = sorted(ours.transaction_properties.keys() & theirs.transaction_properties.keys())
    for prefix, verb in _EXCLUSIVE_WORK:
        for key in shared:
            if key.startswith(prefix):
                return f"{verb} {key.removeprefix(prefix)!r}"
    return None


def save_token(store: Store, committed: CommittedVersion) -> None:
    """Save, durably, the token of a version that is about to be removed; do nothing if it has none."""
    token, stored = token_of(committed), committed.stored_transaction
    if token is None or stored is None:
        return
    content = {"token": token, "version": committed.version, "uuid": stored.uuid}
    store.put(_path(token), json.dumps(content, sort_keys=True).encode())


def load_token_version(store: Store, token: str) -> int | None:
    """Return the removed version that had the token; None if no such token was saved."""
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
