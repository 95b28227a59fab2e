"""Two versions differ by exactly what was done between them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lance_ops
from lance_ops.cli import app
from lance_ops.maintenance.health import Change, VersionDifference, compare_versions


@pytest.fixture
def changed(dataset_uri: str) -> lance_ops.LanceDataset:
    """Version 1 has rows 0 to 7 in two fragments; each later version is made by one kind of change."""
    struct = pa.array([{"a": 1, "b": 2}] * 8)
    made = lance_ops.write_dataset(pa.table({"x": range(8), "s": struct}), dataset_uri, max_rows_per_file=4)
    made.create_scalar_index("x", "BTREE")  # 2
    made.delete("x = 1")  # 3
    made.insert(pa.table({"x": [8], "s": struct[:1]}))  # 4
    made.alter_columns({"path": "x", "name": "key"})  # 5
    made.drop_columns(["s.b"])  # 6
    made.add_columns({"doubled": "key * 2"})  # 7
    made.tags.create("wide", 7)
    made.optimize.compact_files(materialize_deletions_threshold=0.0)
    return made


def between(dataset: lance_ops.LanceDataset, before: int, after: int) -> VersionDifference:
    return compare_versions(dataset.checkout_version(before).snapshot, dataset.checkout_version(after).snapshot)


def test_rows_and_fragments(changed: lance_ops.LanceDataset) -> None:
    found = between(changed, 2, 4)
    assert (found.rows_before, found.rows_after) == (8, 8)
    assert (found.fragments_added, found.fragments_removed, found.fragments_changed) == ((2,), (), (0,))
    assert [past.operation for past in found.versions] == ["Delete", "Append"]
    assert found.size_after > found.size_before
    (index,) = found.indices
    assert (index.change, index.before, index.after) == (Change.CHANGED, 1.0, 7 / 8)


def test_columns(changed: lance_ops.LanceDataset) -> None:
    found = between(changed, 4, 7)
    assert [(each.path, each.change, each.before, each.after) for each in found.columns] == [
        ("s.b", Change.REMOVED, "int64", None),
        ("key", Change.RENAMED, "x", "key"),
        ("doubled", Change.ADDED, None, "int64"),
    ]
    assert (found.fragments_added, found.fragments_removed) == ((), ())
    assert found.fragments_changed == (0, 1, 2)


def test_a_whole_struct_is_one_change(changed: lance_ops.LanceDataset) -> None:
    changed.drop_columns(["s"])
    found = between(changed, 1, changed.version)
    assert [(each.path, each.before) for each in found.columns if each.change is Change.REMOVED] == [("s", "struct")]
    back = between(changed, changed.version, 1)
    assert [(each.path, each.after) for each in back.columns if each.change is Change.ADDED] == [("s", "struct")]
    assert back.versions == found.versions


def test_indices_come_and_go(changed: lance_ops.LanceDataset) -> None:
    assert [(i.name, i.change, i.before) for i in between(changed, 1, 2).indices] == [("x_idx", Change.ADDED, None)]
    changed.drop_index("x_idx")
    assert [(i.change, i.after) for i in between(changed, 2, changed.version).indices] == [(Change.REMOVED, None)]


def test_the_command_takes_tags_and_compares_with_the_newest(changed: lance_ops.LanceDataset) -> None:
    found = _run("diff", changed.uri, "wide", "--json")
    assert (found["before"], found["after"]) == (7, changed.version)
    assert found["fragments_removed"] == [0, 1] and len(found["fragments_added"]) == 1
    shown = CliRunner().invoke(app, ["diff", changed.uri, "4", "7"]).stdout
    assert "key renamed x key" in " ".join(shown.split())


def _run(*arguments: str) -> Any:
    return json.loads(CliRunner().invoke(app, list(arguments)).stdout)
