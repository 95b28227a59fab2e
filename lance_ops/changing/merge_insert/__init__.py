"""Merge a source into a table by key: update, insert and delete in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.changing.merge_insert.explain import explain_merge_from
    from lance_ops.changing.merge_insert.inserted_key_filter import encode_keys
    from lance_ops.changing.merge_insert.key_types import cast_may_change, check_key_casts, check_key_values
    from lance_ops.changing.merge_insert.matching import find_matches
    from lance_ops.changing.merge_insert.merge import (
        MergeCounts,
        MergePlan,
        PreparedMerge,
        commit_merge,
        merge_insert,
        plan_merge,
        prepare_merge,
    )
    from lance_ops.changing.merge_insert.merge_request import (
        MergeRequest,
        WhenMatched,
        bind_merge,
        key_column,
        key_columns,
        merge_keys,
        primary_key,
    )
    from lance_ops.changing.merge_insert.missing_struct_fields import check_struct_fields, check_structs_in_lists

__all__ = [
    "MergeCounts",
    "MergePlan",
    "MergeRequest",
    "PreparedMerge",
    "WhenMatched",
    "bind_merge",
    "cast_may_change",
    "check_key_casts",
    "check_key_values",
    "check_struct_fields",
    "check_structs_in_lists",
    "commit_merge",
    "encode_keys",
    "explain_merge_from",
    "find_matches",
    "key_column",
    "key_columns",
    "merge_insert",
    "merge_keys",
    "plan_merge",
    "prepare_merge",
    "primary_key",
]

_MODULES = {
    "MergeCounts": "merge",
    "MergePlan": "merge",
    "MergeRequest": "merge_request",
    "PreparedMerge": "merge",
    "WhenMatched": "merge_request",
    "bind_merge": "merge_request",
    "cast_may_change": "key_types",
    "check_key_casts": "key_types",
    "check_key_values": "key_types",
    "check_struct_fields": "missing_struct_fields",
    "check_structs_in_lists": "missing_struct_fields",
    "commit_merge": "merge",
    "encode_keys": "inserted_key_filter",
    "explain_merge_from": "explain",
    "find_matches": "matching",
    "key_column": "merge_request",
    "key_columns": "merge_request",
    "merge_insert": "merge",
    "merge_keys": "merge_request",
    "plan_merge": "merge",
    "prepare_merge": "merge",
    "primary_key": "merge_request",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
