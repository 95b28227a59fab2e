"""Describe a merge as text, one node a line: its clauses, the rows it writes, and how it matches rows.

The first line uses the reference's words. The lines below show which columns of written rows come from the source and
which from the table, and either the index that finds the source's keys or the scan that reads the table's keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lance_ops.changing.merge_insert.matching import (
    MatchTask,
    index_on_key,
    most_keys_for_index,
    plan_matching,
    target_columns,
)
from lance_ops.changing.merge_insert.merge_request import BoundMerge, MergeRequest, WhenMatched, bind_merge
from lance_ops.snapshot import Snapshot
from lance_ops.writing import choose_file_version

__all__ = ["explain_merge", "explain_merge_from"]

_MATCHED = {
    WhenMatched.KEEP: "DoNothing",
    WhenMatched.UPDATE: "UpdateAll",
    WhenMatched.DELETE: "Delete",
    WhenMatched.FAIL: "Fail",
}


def explain_merge(snapshot: Snapshot, merge: BoundMerge, tasks: tuple[MatchTask, ...]) -> str:
    """Describe a merge with its source."""
    index_name = tasks[0].index_name if tasks else None
    source = f"source_rows={merge.source.num_rows}"
    matching = _by_index(merge, index_name, source) if index_name else _by_join(snapshot, merge, len(tasks), source)
    return "\n".join(_lines(snapshot, merge, matching))


def explain_merge_from(snapshot: Snapshot, request: MergeRequest, schema: pa.Schema) -> str:
    """Describe a merge from a source of this schema; both ways of matching if the number of keys decides.

    The errors are those of `plan_merge`.
    """
    choose_file_version(snapshot, request.file_version)
    merge = bind_merge(snapshot, request, schema.empty_table())
    num_tasks = len(plan_matching(snapshot, merge))
    index_name = index_on_key(snapshot, merge, merge.source_keys()[0])
    if index_name is None:
        return "\n".join(_lines(snapshot, merge, _by_join(snapshot, merge, num_tasks)))
    most = most_keys_for_index(snapshot, index_name)
    matching = [
        f"Choose: by_index=[1 to {most} distinct keys in the source]",
        *_indented(_by_index(merge, index_name)),
        *_indented(_by_join(snapshot, merge, num_tasks)),
    ]
    return "\n".join(_lines(snapshot, merge, matching))


def _lines(snapshot: Snapshot, merge: BoundMerge, matching: Iterable[str]) -> Iterator[str]:
    request = merge.request
    matched = (
        f"UpdateIf({request.update_condition})"
        if request.update_condition is not None
        else _MATCHED[request.when_matched]
    )
    unmatched = "Keep"
    if request.deletes_unmatched:
        unmatched = "Delete" if merge.delete_condition is None else f"DeleteIf({merge.delete_condition.to_sql()})"
    inserts = "InsertAll" if request.inserts else "DoNothing"
    yield (
        f"MergeInsert: on=[{_keys(merge)}], when_matched={matched}, when_not_matched={inserts}, "
        f"when_not_matched_by_source={unmatched}"
    )
    given = merge.source.schema.names
    missing = ", ".join(name for name in snapshot.schema.names if name not in given)
    source = ", ".join(given)
    if request.in_place:
        keys = {key.path[0] for key in merge.keys}
        yield f"  RewriteColumns: from_source=[{', '.join(name for name in given if name not in keys)}]"
    elif request.when_matched is WhenMatched.UPDATE:
        yield f"  MoveRows: from_source=[{source}], from_target=[{missing}]"
    if request.inserts:
        yield f"  InsertRows: from_source=[{source}], null=[{missing}]"
    yield from _indented(matching)


def _by_index(merge: BoundMerge, index_name: str, *source: str) -> list[str]:
    return [
        ", ".join([f"IndexJoin: on=[{_keys(merge)}]", *source]),
        f"  LanceRead: projection=[{', '.join(target_columns(merge))}]",
        f"    ScalarIndexQuery: query=[{_keys(merge)} IN source keys]@{index_name}",
    ]


def _by_join(snapshot: Snapshot, merge: BoundMerge, num_tasks: int, *source: str) -> list[str]:
    read = f"projection=[{', '.join(target_columns(merge))}], num_fragments={len(snapshot.fragments)}"
    return [", ".join([f"HashJoin: on=[{_keys(merge)}]", *source]), f"  LanceRead: {read}, tasks={num_tasks}"]


def _keys(merge: BoundMerge) -> str:
    return ", ".join(key.name for key in merge.keys)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
