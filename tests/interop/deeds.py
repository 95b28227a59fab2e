"""One deed (a change of a small table) for each operation and library, with its effect on the rows.

The table has the columns `k`, `a` and `b`; `b` is in separate files. It has two fragments of four rows. The first row
of each is deleted, so the keys are 1 to 3 and 5 to 7. A deed happens at one of three places: `same` is the place of the
deeds it is compared with, `near` is in the same fragment or column, `far` is in another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import lance
import lance.file
import pyarrow as pa

import lance_ops
from lance_ops.core.file_names import data_file_name
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.compaction.rewriting import commit_rewrites, execute_rewrite
from lance_ops.table import DataFile
from lance_ops.transactions import DataReplacement, DataReplacementGroup, PendingFiles, ReserveFragments, Restore
from lance_ops.writing import create_append_overwrite as write
from lance_ops.writing.commit import commit_operation
from lance_ops.writing.fragment_limits import FragmentLimits
from tests.interop import table_changes as changes
from tests.interop.table_model import KEY, Change, Column, Condition, Nothing, Record, State, Value

__all__ = ["CONTENT", "DEEDS", "Deed", "Place", "make_table", "overlay_values"]

Place = Literal["same", "near", "far"]
Act = Callable[[Any, Place], object]

COLUMNS = (Column(0, KEY, pa.int64()), Column(1, "a", pa.int64()), Column(2, "b", pa.int64()))
ROWS: dict[Place, int] = {"same": 1, "near": 2, "far": 5}
FRAGMENT: dict[Place, int] = {"same": 0, "near": 0, "far": 1}
INDEX: dict[Place, tuple[str, str]] = {"same": ("b", "i"), "near": ("b", "j"), "far": ("a", "j")}
NEW: dict[Place, int] = {"same": 20, "near": 30, "far": 40}


def make_table(uri: str) -> None:
    """Write the table in three versions; the second has all rows."""
    keys = pa.array(range(8), pa.int64())
    lance_ops.write_dataset(pa.table({KEY: keys, "a": keys}), uri, max_rows_per_file=4)
    lance_ops.dataset(uri).add_columns({"b": f"{KEY} * 10"})
    lance_ops.dataset(uri).delete(f"{KEY} IN (0, 4)")


def _content(keys: list[int]) -> State:
    state = State(COLUMNS)
    return replace(state, rows={key: state.row_of({KEY: key, "a": key, "b": key * 10}, 1) for key in keys})


ALL, CONTENT = _content([*range(8)]), _content([1, 2, 3, 5, 6, 7])


def _new_values(place: Place) -> dict[int, int]:
    first = FRAGMENT[place] * 4
    return {key: 1000 + key for key in range(first, first + 4)}


@dataclass(frozen=True)
class Deed:
    """`ours` and `theirs` (if the reference can do it) make the change once with a handle, without retries."""

    ours: Act
    theirs: Act | None
    change: Callable[[Place], Change]


def _is_ours(handle: Any) -> bool:
    return isinstance(handle, lance_ops.LanceDataset)


def _new(place: Place) -> tuple[Record, ...]:
    return ({KEY: NEW[place], "a": 0, "b": 0}, {KEY: NEW[place] + 1, "a": 1, "b": 1})


def _append(handle: Any, place: Place) -> None:
    rows = pa.Table.from_pylist(list(_new(place)), schema=CONTENT.schema)
    if _is_ours(handle):
        write.append(handle.snapshot, rows.to_batches(), FragmentLimits(), {})
    else:
        handle.insert(rows)


def _overwrite(handle: Any, place: Place) -> None:
    rows = pa.Table.from_pylist(list(_new(place)), schema=CONTENT.schema)
    if _is_ours(handle):
        snapshot = handle.snapshot
        write.overwrite(snapshot, rows.to_batches(), snapshot.schema, snapshot.file_version, FragmentLimits(), {})
    else:
        handle.insert(rows, mode="overwrite")


def _delete(handle: Any, place: Place) -> None:
    handle.delete(f"{KEY} = {ROWS[place]}", conflict_retries=0)


def _update(handle: Any, place: Place) -> None:
    handle.update({"a": "a + 100"}, where=f"{KEY} = {ROWS[place]}", conflict_retries=0)


def _merged(place: Place) -> tuple[Record, ...]:
    return ({KEY: ROWS[place], "a": 7, "b": 8}, {KEY: 50 + ROWS[place], "a": 9, "b": 9})


def _merge_insert(handle: Any, place: Place) -> None:
    builder = handle.merge_insert(KEY).when_matched_update_all().when_not_matched_insert_all().conflict_retries(0)
    builder.execute(pa.Table.from_pylist(list(_merged(place)), schema=CONTENT.schema))


def _merge_change(place: Place) -> Change:
    return changes.MergeInsert(COLUMNS, _merged(place), changes.Matched(lambda source, target: True), True, False)


def _rewrite(handle: Any, place: Place) -> None:
    others = [1 - FRAGMENT[place]]
    if _is_ours(handle):
        options = CompactionOptions(4, materialize_deletions_threshold=0, excluded_fragment_ids=tuple(others))
        done = [execute_rewrite(task) for task in plan_compaction(handle.snapshot, options).tasks]
        assert done
        commit_rewrites(handle.snapshot, done)
    else:
        handle.optimize.compact_files(
            target_rows_per_fragment=4, materialize_deletions_threshold=0.0, excluded_fragment_ids=others
        )


def _create_index(handle: Any, place: Place) -> None:
    column, name = INDEX[place]
    handle.create_scalar_index(column, "BTREE", name=name)


def _written(handle: Any, values: list[int]) -> tuple[str, int]:
    """Write values of `b` to a separate data file; return its name and size."""
    name = data_file_name()
    path = Path(handle.uri, "data", name)
    table = pa.table({"b": pa.array(values, pa.int64())})
    with lance.file.LanceFileWriter(str(path), table.schema, version="2.2") as writer:
        writer.write_batch(table)
    return name, path.stat().st_size


def _replace_values(handle: Any, place: Place) -> None:
    fragment = FRAGMENT[place]
    name, size = _written(handle, [*_new_values(place).values()])
    if _is_ours(handle):
        file = DataFile(name, (2,), (0,), 2, 2, size)
        operation = DataReplacement((DataReplacementGroup(fragment, file),))
        commit_operation(handle.snapshot, operation, pending=PendingFiles.at(handle.snapshot.store, [f"data/{name}"]))
    else:
        theirs = lance.fragment.DataFile(name, [2], [0], 2, 2, size)
        group = lance.LanceOperation.DataReplacementGroup(fragment, theirs)
        lance.LanceDataset.commit(handle, lance.LanceOperation.DataReplacement([group]), read_version=handle.version)


def overlay_values(handle: Any) -> Any:
    """Give key 1 another value of `b` in an overlay, which only the reference can write; return the dataset."""
    name, size = _written(handle, [1001])
    file = lance.fragment.DataFile(name, [2], [0], 2, 2, size)
    group = lance.LanceOperation.DataOverlayGroup(0, [lance.LanceOperation.DataOverlayFile(file, [1])])
    return lance.LanceDataset.commit(handle, lance.LanceOperation.DataOverlay([group]), read_version=handle.version)


def _restore(handle: Any, place: Place) -> None:
    if _is_ours(handle):
        commit_operation(handle.snapshot, Restore(2))
    else:
        lance.LanceDataset.commit(handle, lance.LanceOperation.Restore(2), read_version=handle.version)


def _add_base(handle: Any, place: Place) -> None:
    name = "one" if place == "same" else "two"  # to the reference, two that have none have the same
    kind: Any = lance_ops.DatasetBasePath if _is_ours(handle) else lance.DatasetBasePath
    handle.add_bases([kind(path=f"/{name}", name=name, is_dataset_root=True)])


def _nothing(place: Place) -> Change:
    return Nothing("")


def _key_of(place: Place) -> str:
    return "x" if place == "same" else "y"


DEEDS: dict[str, Deed] = {
    "Append": Deed(_append, _append, lambda place: changes.Append(_new(place))),
    "Delete": Deed(
        _delete, _delete, lambda place: changes.Delete(Condition("", lambda record: record[KEY] == ROWS[place]))
    ),
    "Update": Deed(
        _update,
        _update,
        lambda place: changes.Update("a", _plus_100, Condition("", lambda record: record[KEY] == ROWS[place])),
    ),
    "MergeInsert": Deed(_merge_insert, _merge_insert, _merge_change),
    "Rewrite": Deed(_rewrite, _rewrite, _nothing),
    "Overwrite": Deed(_overwrite, _overwrite, lambda place: changes.Overwrite(COLUMNS, _new(place))),
    "CreateIndex": Deed(_create_index, _create_index, _nothing),
    "Merge": Deed(
        lambda handle, place: handle.add_columns({"c": f"{KEY} * 2"}),
        lambda handle, place: handle.add_columns({"c": f"{KEY} * 2"}),
        lambda place: changes.AddColumn(Column(3, "c", pa.int64()), _doubled_key),
    ),
    "Project": Deed(
        lambda handle, place: handle.drop_columns(["a"]),
        lambda handle, place: handle.drop_columns(["a"]),
        lambda place: changes.DropColumn("a"),
    ),
    "Restore": Deed(_restore, _restore, lambda place: changes.Restore(ALL)),
    "UpdateConfig": Deed(
        lambda handle, place: handle.update_config({_key_of(place): "1"}),
        lambda handle, place: handle.update_config({_key_of(place): "1"}),
        lambda place: changes.Configure({_key_of(place): "1"}),
    ),
    "DataReplacement": Deed(
        _replace_values, _replace_values, lambda place: changes.ReplaceValues("b", _new_values(place))
    ),
    "ReserveFragments": Deed(
        lambda handle, place: commit_operation(handle.snapshot, ReserveFragments(2)), None, _nothing
    ),
    "UpdateBases": Deed(_add_base, _add_base, _nothing),
}


def _plus_100(value: Value) -> Value:
    assert isinstance(value, int)
    return value + 100


def _doubled_key(record: Record) -> Value:
    key = record[KEY]
    assert isinstance(key, int)
    return key * 2
