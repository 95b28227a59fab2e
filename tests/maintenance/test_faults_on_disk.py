"""Fail every verb at every store call on a disk: the folder then holds what it held before, empty folders included."""

from __future__ import annotations

import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import CommitStateUnknown, LanceOpsError
from lance_ops.fragment import write_fragments
from lance_ops.runners import InThreads
from lance_ops.store import LocalStore, Store
from lance_ops.store.faulty import Fault, FaultyStore, When
from lance_ops.store.local.made_directories import MADE_DIRECTORIES
from tests.maintenance.conftest import rows


@dataclass(frozen=True)
class Workspace:
    """A folder with a table of three fragments, and the places of others that do not exist yet."""

    folder: str

    @property
    def table(self) -> str:
        return f"{self.folder}/table"

    @property
    def other(self) -> str:
        return f"{self.folder}/new/other"

    def open(self, version: int | None = None) -> lance_ops.LanceDataset:
        return lance_ops.dataset(self.table, version)

    def listing(self) -> set[str]:
        """Every folder and file, by its path beneath the workspace."""
        found = (Path(folder, name) for folder, *names in os.walk(self.folder) for name in (*names[0], *names[1]))
        return {str(path.relative_to(self.folder)) for path in found}


Verb = Callable[[Workspace], object]

ONE_BY_ONE = InThreads(1)

COMMITTED = ("table/_versions/", "table/_transactions/")
"""Where a verb of two commits leaves files of the first one: a compaction first reserves ids of fragments."""


def merge(workspace: Workspace) -> None:
    builder = workspace.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.conflict_retries(0).execute(rows(10, 14), runner=ONE_BY_ONE)


def cast(workspace: Workspace) -> None:
    workspace.open().alter_columns({"path": "key", "data_type": pa.int64()}, runner=ONE_BY_ONE)


def merge_columns(workspace: Workspace) -> None:
    fragment = workspace.open().get_fragments()[0]
    fragment.merge_columns({"doubled": "id * 2"})


VERBS: dict[str, Verb] = {
    "create": lambda workspace: lance_ops.write_dataset(rows(0, 9), workspace.other, max_rows_per_file=5),
    "write fragments": lambda workspace: write_fragments(rows(0, 9), workspace.other, max_rows_per_file=5),
    "append": lambda workspace: lance_ops.write_dataset(rows(12, 20), workspace.table, mode="append"),
    "overwrite": lambda workspace: lance_ops.write_dataset(rows(12, 20), workspace.table, mode="overwrite"),
    "delete": lambda workspace: workspace.open().delete("id > 2 AND id < 10", runner=ONE_BY_ONE, conflict_retries=0),
    "update": lambda workspace: workspace.open().update({"id": "id + 9"}, "id > 5", conflict_retries=0),
    "merge": merge,
    "merge columns": merge_columns,
    "add columns": lambda workspace: workspace.open().add_columns({"doubled": "id * 2"}, runner=ONE_BY_ONE),
    "cast": cast,
    "drop columns": lambda workspace: workspace.open().drop_columns(["text"]),
    "update config": lambda workspace: workspace.open().update_config({"a": "b"}),
    "compact": lambda workspace: workspace.open().optimize.compact_files(num_threads=1),
    "index": lambda workspace: workspace.open().create_scalar_index("id", "BTREE"),
    "reindex": lambda workspace: workspace.open().optimize.optimize_indices(),
    "restore": lambda workspace: workspace.open(2).restore(),
    "create tag": lambda workspace: workspace.open().tags.create("new", 2),
    "move tag": lambda workspace: workspace.open().tags.update("kept", 2),
    "delete tag": lambda workspace: workspace.open().tags.delete("kept"),
    "create branch": lambda workspace: workspace.open().create_branch("deep/side"),
    "shallow clone": lambda workspace: workspace.open().shallow_clone(workspace.other, 2),
    "deep clone": lambda workspace: workspace.open().deep_clone(workspace.other, 2),
}


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(str(tmp_path_factory.mktemp("template") / "workspace"))
    for at in range(3):
        lance_ops.write_dataset(rows(at * 4, at * 4 + 4), workspace.table, mode="append")
    workspace.open().create_scalar_index("key", "BTREE")
    workspace.open().tags.create("kept", 1)
    lance_ops.write_dataset(rows(90, 93), workspace.table, mode="append")
    return workspace


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_fails_at_any_step_leaves_the_folder_as_it_was(
    template: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    verb, failures = VERBS[name], 0
    workspace = copied(template, tmp_path / "watched")
    watched = run(workspace, verb, monkeypatch)
    assert watched.error is None
    workspace = copied(template, tmp_path / "workspace")
    before = workspace.listing()
    for step, call in enumerate(watched.calls, 1):
        attempt = run(workspace, verb, monkeypatch, Fault(call=step, when=When.BEFORE))
        if attempt.error is None or isinstance(attempt.error, CommitStateUnknown):
            shutil.rmtree(workspace.folder)
            workspace = copied(template, tmp_path / "workspace")
            continue
        failures += 1
        changed = workspace.listing() ^ before
        if any(path.endswith(".manifest") for path in changed):  # an earlier commit of the verb
            changed = {path for path in changed if not path.startswith(COMMITTED)}
            shutil.rmtree(workspace.folder)
            workspace = copied(template, tmp_path / "workspace")
        assert not changed, f"{call}: {attempt.error!r}"
    assert failures


@pytest.mark.parametrize("name", ["create tag", "create branch"])
def test_a_reference_whose_answer_was_lost_is_created(
    template: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    workspace = copied(template, tmp_path / "workspace")
    lost = Fault("put_if_absent", "table/_refs/*", when=When.AFTER)
    assert run(workspace, VERBS[name], monkeypatch, lost).error is None
    dataset = workspace.open()
    assert "new" in dataset.tags.list() or dataset.checkout_version(("deep/side", None)).count_rows() == 15


@dataclass(frozen=True)
class Attempt:
    """The store calls of a verb, and how it failed."""

    calls: tuple[object, ...]
    error: Exception | None


def run(workspace: Workspace, verb: Verb, monkeypatch: pytest.MonkeyPatch, *faults: Fault) -> Attempt:
    """Run a verb over a store that fails; it does not know of the directories that other runs made."""
    root = FaultyStore(LocalStore(workspace.folder), *faults)

    def open_beneath(uri: str, options: object) -> Store:
        return root.child(os.path.relpath(uri, workspace.folder))

    error: Exception | None = None
    with monkeypatch.context() as patch:
        patch.setattr(MADE_DIRECTORIES, "_made", OrderedDict())
        patch.setattr("lance_ops.committers.opening.open_store", open_beneath)
        try:
            verb(workspace)
        except LanceOpsError as raised:
            error = raised
    return Attempt(root.calls, error)


def copied(template: Workspace, folder: Path) -> Workspace:
    shutil.copytree(template.folder, folder)
    return Workspace(str(folder))
