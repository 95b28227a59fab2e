"""Branches: allowed names, tags and handles of branches, and concurrent creations and removals."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import CorruptFile, InvalidInput, ReferenceNotFound, VersionNotFound
from lance_ops.core.file_names import branch_directory, check_branch_name
from lance_ops.maintenance.cleanup.cleanup import execute, plan_cleanup
from lance_ops.maintenance.cleanup.cleanup_options import CleanupOptions
from lance_ops.refs import branches as verbs
from lance_ops.refs.branch_file import Branch, create_branch_file, list_branches
from lance_ops.refs.branch_locations import branch_of, tagged_version
from lance_ops.store import LocalStore
from tests.refs.dead_creations import check_a_dead_creation_is_removed

NOW = timedelta(0)


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop)})


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    lance_ops.write_dataset(rows(0, 10), dataset_uri)
    return lance_ops.write_dataset(rows(10, 20), dataset_uri, mode="append")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "main",
        "a..b",
        "../x",
        "a//b",
        "/a",
        "a/",
        "a/.",
        "x.lock",
        "a b",
        "a\0b",
        "a\\b",
        "a%2Fb",
        "a/data",
        "a/tree/b",
    ],
)
def test_names_that_a_store_could_misread_are_refused(dataset: lance_ops.LanceDataset, name: str) -> None:
    with pytest.raises(InvalidInput, match="branch name"):
        dataset.create_branch(name)
    with pytest.raises(InvalidInput, match="branch name"):
        dataset.branches.delete(name)
    assert not (Path(dataset.uri) / "tree").exists()


@pytest.mark.parametrize("name", ["dev", "a/b", "-x", "data", "é", "v1.2_x"])
def test_other_names_are_directories_beneath_tree(name: str) -> None:
    assert check_branch_name(name) == name and branch_directory(name) == f"tree/{name}"


def test_an_unknown_branch_is_named_in_the_error(dataset: lance_ops.LanceDataset) -> None:
    dataset.create_branch("dev")
    with pytest.raises(ReferenceNotFound, match="'gone'"):
        dataset.checkout_version(("gone", None))
    with pytest.raises(ReferenceNotFound, match="'gone'"):
        dataset.branches.delete("gone")
    with pytest.raises(VersionNotFound):
        dataset.checkout_version(("dev", 1))
    with pytest.raises(InvalidInput, match="exists already"):
        dataset.create_branch("dev", 1)


def test_a_handle_on_a_branch_stays_on_it(dataset: lance_ops.LanceDataset) -> None:
    branch = pickle.loads(pickle.dumps(dataset.create_branch("dev")))
    assert branch_of(branch.snapshot) == "dev" and dataset.branches.list() == branch.branches.list()
    branch.delete("id < 5")
    branch.update({"id": "id + 100"}, where="id = 7")
    assert (branch.version, dataset.latest_version) == (4, 2)
    assert branch.checkout_version(3).count_rows() == 15
    assert lance_ops.dataset(dataset.uri, version=("dev", 3)) == branch.checkout_version(3)
    assert branch.checkout_version((None, None)).count_rows() == 20
    assert [version["version"] for version in branch.versions()] == [2, 3, 4]
    branch.checkout_version(2).restore()
    assert branch.checkout_version(("dev", None)).version == 5


def test_branches_in_memory_and_one_beneath_another(dataset: lance_ops.LanceDataset) -> None:
    uri = f"memory://branches-of{dataset.uri}"
    lance_ops.write_dataset(rows(0, 10), uri)
    outer = lance_ops.dataset(uri).create_branch("a")
    inner = lance_ops.dataset(uri).create_branch("a/b")
    inner.delete("id = 1")
    outer.delete("id < 9")
    outer.cleanup_old_versions(NOW, delete_unverified=True)
    lance_ops.dataset(uri).branches.delete("a")
    inner.validate()
    assert inner.count_rows() == 9 and list(inner.branches.list()) == ["a/b"]


def test_a_tag_belongs_to_one_branch(dataset: lance_ops.LanceDataset) -> None:
    branch = dataset.create_branch("dev")
    branch.delete("id = 1")
    branch.tags.create("t")
    assert dataset.tags.list()["t"]["branch"] == "dev"
    assert tagged_version(branch.snapshot, "t") == 3
    with pytest.raises(ReferenceNotFound, match="of branch 'dev'"):
        tagged_version(dataset.snapshot, "t")
    with pytest.raises(InvalidInput, match="tags name its versions"):
        dataset.branches.delete("dev")
    branch.delete("id = 2")
    with pytest.raises(InvalidInput, match=r"t \(version 3\)"):
        branch.cleanup_old_versions(NOW)
    dataset.tags.update("t", 1)
    assert branch.cleanup_old_versions(NOW).old_versions == 2


def test_a_corrupt_branch_file_is_named_in_the_error(dataset: lance_ops.LanceDataset) -> None:
    dataset.create_branch("dev")
    (Path(dataset.uri) / "_refs/branches/dev.json").write_text('{"parentBranch": "../x", "parentVersion": 1}')
    with pytest.raises(CorruptFile, match="dev.json"):
        dataset.cleanup_old_versions(NOW)


def test_delete_removes_the_files_of_an_interrupted_creation(
    dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_a_dead_creation_is_removed(dataset, monkeypatch)


class TestRaces:
    """Another process acts between two steps of a verb."""

    def test_a_branch_begun_while_clean_up_runs_keeps_its_files(self, dataset: lance_ops.LanceDataset) -> None:
        lance_ops.write_dataset(rows(0, 1), dataset.uri, mode="overwrite")
        newest = dataset.snapshot.latest()
        plan = plan_cleanup(newest, CleanupOptions(NOW))
        assert plan.old_versions == (1, 2) and len(plan.data_files) == 2
        branch = dataset.create_branch("dev")
        assert execute(newest, plan).data_files_removed == 0
        branch.validate()
        assert dataset.checkout_version(2).count_rows() == 20

    def test_a_version_that_is_cleaned_up_meanwhile_begins_no_branch(self, dataset: lance_ops.LanceDataset) -> None:
        old = dataset.checkout_version(1)
        dataset.cleanup_old_versions(NOW)
        with pytest.raises(VersionNotFound):
            old.create_branch("dev")
        assert dataset.branches.list() == {}

    @pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)], ids=["lower first", "higher first"])
    def test_two_creations_of_one_name_leave_the_first(
        self, dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch, first: int, second: int
    ) -> None:
        meanwhile(monkeypatch, verbs, "commit_first_version", lambda: dataset.create_branch("dev", first))
        with pytest.raises(InvalidInput, match="dev"):
            dataset.create_branch("dev", second)
        branch = dataset.checkout_version(("dev", None))
        assert [version["version"] for version in branch.versions()] == [first]

    def test_a_creation_that_finds_the_file_of_another_withdraws_its_version(
        self, dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        theirs = Branch(None, ((1, "ab" * 16),), 1, 0, 1)
        act = partial(create_branch_file, dataset.snapshot.store, "dev", theirs)
        meanwhile(monkeypatch, verbs, "create_branch_file", act)
        with pytest.raises(InvalidInput, match="exists already"):
            dataset.create_branch("dev")
        assert not [*Path(dataset.uri).glob("tree/dev/_versions/*.manifest")]
        assert not [*LocalStore(dataset.uri).list("tree/dev/_transactions")]

    def test_a_parent_that_is_removed_meanwhile_has_no_child(
        self, dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        parent = dataset.create_branch("parent")
        meanwhile(monkeypatch, verbs, "create_branch_file", lambda: dataset.branches.delete("parent"))
        with pytest.raises(ReferenceNotFound, match="parent"):
            parent.create_branch("child")
        assert list_branches(dataset.snapshot.store) == {}
        assert not list(LocalStore(dataset.uri).list("tree/child"))

    def test_a_parent_that_gets_a_child_meanwhile_stays(
        self, dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        parent = dataset.create_branch("parent")
        meanwhile(monkeypatch, LocalStore, "delete", lambda: parent.create_branch("child"))
        with pytest.raises(InvalidInput, match="child came from it"):
            dataset.branches.delete("parent")
        assert list(dataset.branches.list()) == ["child", "parent"]
        dataset.checkout_version(("child", None)).validate()


def meanwhile(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, act: Callable[[], object]) -> None:
    """Run an action just before the first call of a function."""
    original = getattr(owner, name)
    done: list[bool] = []

    def called(*arguments: object) -> object:
        if not done:
            done.append(True)
            act()
        return original(*arguments)

    monkeypatch.setattr(owner, name, called)
