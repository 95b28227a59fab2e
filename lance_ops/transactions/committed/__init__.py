"""Read committed versions, tell whether they are in the history of a plan, and find the version of a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.transactions.committed.committed_versions import (
        CommittedVersion,
        decode_version,
        manifests_newest_first,
        read_manifest,
        read_version,
        summaries_newest_first,
        versions_newest_first,
    )
    from lance_ops.transactions.committed.find_commit import find_token, find_transaction
    from lance_ops.transactions.committed.same_history import (
        descends_from,
        is_in_history,
        is_listed_in_same_dataset,
        is_same_dataset,
        share_data_file,
        version_set_back_to,
        was_made_in_same_dataset,
    )
    from lance_ops.transactions.committed.tokens import (
        BATCH_PREFIX,
        REPLACES_PREFIX,
        TOKEN,
        TOKENS_DIR,
        exclusive_key_properties,
        find_duplicate_work,
        may_have_token,
        save_token,
        token_of,
    )

__all__ = [
    "BATCH_PREFIX",
    "REPLACES_PREFIX",
    "TOKEN",
    "TOKENS_DIR",
    "CommittedVersion",
    "decode_version",
    "descends_from",
    "exclusive_key_properties",
    "find_duplicate_work",
    "find_token",
    "find_transaction",
    "is_in_history",
    "is_listed_in_same_dataset",
    "is_same_dataset",
    "manifests_newest_first",
    "may_have_token",
    "read_manifest",
    "read_version",
    "save_token",
    "share_data_file",
    "summaries_newest_first",
    "token_of",
    "version_set_back_to",
    "versions_newest_first",
    "was_made_in_same_dataset",
]

_MODULES = {
    "BATCH_PREFIX": "tokens",
    "REPLACES_PREFIX": "tokens",
    "TOKEN": "tokens",
    "TOKENS_DIR": "tokens",
    "CommittedVersion": "committed_versions",
    "decode_version": "committed_versions",
    "descends_from": "same_history",
    "find_duplicate_work": "tokens",
    "find_token": "find_commit",
    "find_transaction": "find_commit",
    "is_in_history": "same_history",
    "is_listed_in_same_dataset": "same_history",
    "is_same_dataset": "same_history",
    "manifests_newest_first": "committed_versions",
    "may_have_token": "tokens",
    "exclusive_key_properties": "tokens",
    "read_manifest": "committed_versions",
    "read_version": "committed_versions",
    "save_token": "tokens",
    "version_set_back_to": "same_history",
    "share_data_file": "same_history",
    "summaries_newest_first": "committed_versions",
    "token_of": "tokens",
    "versions_newest_first": "committed_versions",
    "was_made_in_same_dataset": "same_history",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
