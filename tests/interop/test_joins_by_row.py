"""New columns joined by the id or address of a row, as in the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, RetryableConflict
from lance_ops.writing import commit_operation

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

NEXT_FRAGMENT = 1 << 32
KEYS = [0, 1, 6, NEXT_FRAGMENT, NEXT_FRAGMENT + 1, NEXT_FRAGMENT + 1, 4, 5, 99]


def make(uri: str, *, stable: bool) -> str:
    """Write ten rows in three fragments, and delete one and move one."""
    dataset = lance.write_dataset(pa.table({"id": range(10)}), uri, max_rows_per_file=4, enable_stable_row_ids=stable)
    dataset.delete("id = 5")
    dataset.update({"id": "id + 100"}, "id = 2")
    return uri


def new_values(name: str, keys: list[int] | None = None) -> pa.Table:
    keys = KEYS if keys is None else keys
    return pa.table({name: pa.array(keys, pa.uint64()), "z": [f"{place}: {key}" for place, key in enumerate(keys)]})


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("on", ["_rowid", "_rowaddr"])
@pytest.mark.parametrize("right_on", [None, "k"])
def test_both_libraries_join_by_row_to_the_same_table(
    tmp_path: Path, stable: bool, on: str, right_on: str | None
) -> None:
    found = []
    for library in (lance_ops, lance):
        uri = make(str(tmp_path / library.__name__), stable=stable)
        dataset = library.dataset(uri)
        dataset.merge(new_values(right_on or on), on, right_on)
        reference = lance.dataset(uri)
        reference.validate()
        found.append((reference.schema, reference.to_table().to_pylist(), dataset.version))
    assert found[0] == found[1]
    assert sum(row["z"] is not None for row in found[0][1]) == (4 if stable and on == "_rowid" else 3)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("on", ["_rowid", "_rowaddr"])
def test_a_fragment_s_rows_are_joined_too(tmp_path: Path, stable: bool, on: str) -> None:
    found = []
    for library in (lance_ops, lance):
        uri = make(str(tmp_path / library.__name__), stable=stable)
        dataset = library.dataset(uri)
        merged = [fragment.merge(new_values(on), on) for fragment in dataset.get_fragments()]
        operation = library.LanceOperation.Merge([fragment for fragment, _ in merged], merged[0][1])
        library.LanceDataset.commit(uri, operation, read_version=dataset.version)
        found.append(lance.dataset(uri).to_table().to_pylist())
    assert found[0] == found[1] and any(row["z"] is not None for row in found[0])


def test_signed_keys_are_taken_and_others_refused(tmp_path: Path) -> None:
    dataset = lance_ops.dataset(make(str(tmp_path / "table"), stable=False))
    dataset.merge(pa.table({"_rowid": pa.array([1], pa.int64()), "z": ["a"]}), "_rowid")
    assert dataset.to_table(filter="z = 'a'")["id"].to_pylist() == [1]
    for keys in (["x"], [-1], [1.5]):
        with pytest.raises(InvalidInput, match="_rowid"):
            dataset.merge(pa.table({"_rowid": keys, "y": ["a"]}), "_rowid")
    for name in ("_row_created_at_version", "_rowoffset", "absent"):
        with pytest.raises(InvalidInput, match=name):
            dataset.merge(new_values("k"), name, "k")


def interrupted(dataset: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a handle on which the first commit of a merge meets a compaction of the whole table."""
    handle = lance_ops.dataset(dataset.uri)
    commit = commit_operation

    def compact_first(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        dataset.optimize.compact_files()
        return commit(*arguments, **options)

    monkeypatch.setattr("lance_ops.changing.columns.add.commit_operation", compact_first)
    return handle


@pytest.mark.parametrize(("on", "stable"), [("_rowid", False), ("_rowaddr", False), ("_rowaddr", True)])
def test_keys_that_a_compaction_invalidates_are_not_joined_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: str, stable: bool
) -> None:
    dataset = lance_ops.dataset(make(str(tmp_path / "table"), stable=stable))
    handle = interrupted(dataset, monkeypatch)
    files = {path.name for path in (tmp_path / "table" / "data").iterdir()}
    with pytest.raises(RetryableConflict):
        handle.merge(new_values(on), on)
    newest = lance_ops.dataset(dataset.uri)
    assert newest.schema.names == ["id"]
    compacted = {file.path for fragment in newest.get_fragments() for file in fragment.data_files()}
    assert {path.name for path in (tmp_path / "table" / "data").iterdir()} == files | compacted


def test_stable_row_ids_are_joined_again_after_a_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_ops.dataset(make(str(tmp_path / "table"), stable=True))
    wanted = {row["_rowid"]: row["id"] for row in dataset.to_table(with_row_id=True).to_pylist()}
    interrupted(dataset, monkeypatch).merge(new_values("_rowid", [0, 2, 9]), "_rowid")
    rows = lance.dataset(dataset.uri).to_table(filter="z IS NOT NULL").to_pylist()
    assert {row["id"]: row["z"] for row in rows} == {wanted[0]: "0: 0", wanted[2]: "1: 2", wanted[9]: "2: 9"}
