"""Merge a source into a table by key: update, insert and delete in one commit."""

from lance_ops.changing.merge_insert.explain import explain_merge_from
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
from lance_ops.changing.merge_insert.merge_request import MergeRequest, WhenMatched

__all__ = [
    "MergeCounts",
    "MergePlan",
    "MergeRequest",
    "PreparedMerge",
    "WhenMatched",
    "commit_merge",
    "explain_merge_from",
    "find_matches",
    "merge_insert",
    "plan_merge",
    "prepare_merge",
]
