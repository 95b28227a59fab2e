"""A server process that runs verbs on a table, each in a forked child.

`python -m tests.crash.verbs` reads requests from its input, one JSON object per line, and prints the child's process
id. At the next input line the child runs the verb and exits with an `ExitStatus`, which the server then prints.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import IntEnum

import pyarrow as pa

import lance_ops
from lance_ops.errors import CommitStateUnknown, LanceOpsError, StoreError
from lance_ops.fragment import write_fragments

__all__ = ["BEFORE", "BRANCH", "MANIFEST_STORES", "VERBS", "ExitStatus", "State", "Workspace", "table"]

BRANCH = "side"
TAG = "kept"
ROWS = ".sqlite"
MANIFEST_STORES = ("", f"rows{ROWS}")


@dataclass(frozen=True)
class Workspace:
    """A folder with a table, another dataset beside it, and perhaps a manifest store of both.

    The manifest store gets a new file name at each restore, because the server may have the old file open.
    """

    folder: str
    manifest_store: str = ""

    @property
    def uri(self) -> str:
        return f"{self.folder}/table"

    @property
    def other(self) -> str:
        return f"{self.folder}/other"

    @property
    def options(self) -> dict[str, str] | None:
        return {"manifest_store": f"sqlite:///{self.folder}/{self.manifest_store}"} if self.manifest_store else None

    def open(self, version: int | None = None) -> lance_ops.LanceDataset:
        return lance_ops.dataset(self.uri, version, storage_options=self.options)

    def write(self, rows: pa.Table, mode: str = "append", uri: str | None = None) -> lance_ops.LanceDataset:
        return lance_ops.write_dataset(rows, uri or self.uri, mode=mode, storage_options=self.options)

    def create(self) -> None:
        """Create the table with three fragments; the first of four versions has other files than the newest."""
        os.mkdir(self.folder)
        self.write(table(50, 54))
        for at in range(3):
            self.write(table(at * 4, at * 4 + 4), "append" if at else "overwrite")

    def restored_from(self, saved: str) -> Workspace:
        """Restore the folder from a copy; return the workspace."""
        shutil.rmtree(self.folder)
        shutil.copytree(saved, self.folder)
        if not self.manifest_store:
            return self
        [rows] = (name for name in os.listdir(saved) if name.endswith(ROWS))
        renamed = f"{uuid.uuid4().hex}{ROWS}"
        os.rename(f"{self.folder}/{rows}", f"{self.folder}/{renamed}")
        return replace(self, manifest_store=renamed)


class ExitStatus(IntEnum):
    """The exit status of a child that was not killed."""

    DONE = 0
    UNKNOWN = 40
    FAILED = 41


@dataclass(frozen=True)
class State:
    """The ids of the rows of the table, the branch and the other dataset (None if absent).

    Also the table's columns, fragments, indices with the fragments that they cover, and tags with their versions.
    """

    ids: tuple[int, ...] = tuple(range(12))
    columns: tuple[str, ...] = ("id", "text")
    num_fragments: int = 3
    indices: tuple[tuple[str, int], ...] = ()
    branch: tuple[int, ...] | None = None
    other: tuple[int, ...] | None = None
    tags: tuple[tuple[str, int], ...] = ()


BEFORE = State()


def table(start: int, stop: int) -> pa.Table:
    """Return rows with the ids from `start` to `stop`."""
    return pa.table({"id": list(range(start, stop)), "text": [f"row {row}" for row in range(start, stop)]})


def _append(workspace: Workspace) -> None:
    workspace.write(table(12, 20))


def _batch(workspace: Workspace) -> None:
    written = []
    for at in (12, 16):
        made = write_fragments(table(at, at + 4), workspace.open(), return_transaction=True)
        assert isinstance(made, lance_ops.Transaction)
        written.append(made)
    lance_ops.LanceDataset.commit_batch(workspace.uri, written, storage_options=workspace.options)


def _delete(workspace: Workspace) -> None:
    workspace.open().delete("id >= 2 AND id < 10")


def _update(workspace: Workspace) -> None:
    workspace.open().update({"id": "id + 20"}, where="id > 5")


def _merge(workspace: Workspace) -> None:
    builder = workspace.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(table(10, 14))


def _restore(workspace: Workspace) -> None:
    workspace.open(3).restore()


def _compact(workspace: Workspace) -> None:
    workspace.open().optimize.compact_files()


def _compact_with_index(workspace: Workspace) -> None:
    workspace.open().create_scalar_index("id", "BTREE")
    workspace.open().optimize.compact_files()


def _clean_up(workspace: Workspace) -> None:
    stats = workspace.open().cleanup_old_versions(timedelta(0), delete_unverified=True)
    if stats.failed_deletes:
        raise StoreError(f"{stats.failed_deletes} files could not be deleted")


def _add_columns(workspace: Workspace) -> None:
    workspace.open().add_columns({"doubled": "id * 2"})


def _index(workspace: Workspace) -> None:
    workspace.open().create_scalar_index("id", "BTREE")


def _branch(workspace: Workspace) -> None:
    workspace.open().create_branch(BRANCH).insert(table(12, 20))


def _drop_branch(workspace: Workspace) -> None:
    workspace.open().create_branch(BRANCH)
    workspace.open().branches.delete(BRANCH)


def _tags(workspace: Workspace) -> None:
    tags = workspace.open().tags
    tags.create(TAG, 1)
    tags.update(TAG, 2)
    tags.delete(TAG)


def _create(workspace: Workspace) -> None:
    workspace.write(table(50, 54), "create", workspace.other)


def _clone(workspace: Workspace) -> None:
    workspace.open().shallow_clone(workspace.other, 3, storage_options=workspace.options)


VERBS: dict[str, tuple[Callable[[Workspace], None], tuple[State, ...]]] = {
    "create": (_create, (State(other=(50, 51, 52, 53)),)),
    "append": (_append, (State(tuple(range(20)), num_fragments=4),)),
    "batch": (_batch, (State(tuple(range(20)), num_fragments=5),)),
    "delete": (_delete, (State((0, 1, 10, 11), num_fragments=2),)),
    "update": (_update, (State((*range(6), *range(26, 32))),)),
    "merge": (_merge, (State(tuple(range(14)), num_fragments=4),)),
    "restore": (_restore, (State(tuple(range(8)), num_fragments=2),)),
    "add columns": (_add_columns, (State(columns=("id", "text", "doubled")),)),
    "index": (_index, (State(indices=(("id_idx", 3),)),)),
    "branch": (_branch, (State(branch=tuple(range(12))), State(branch=tuple(range(20))))),
    "drop branch": (_drop_branch, (State(branch=tuple(range(12))), BEFORE)),
    "tags": (_tags, (State(tags=((TAG, 1),)), State(tags=((TAG, 2),)), BEFORE)),
    "clone": (_clone, (State(other=tuple(range(8))),)),
    "compact": (_compact, (State(num_fragments=1),)),
    "compact with index": (
        _compact_with_index,
        (State(indices=(("id_idx", 3),)), State(num_fragments=1, indices=(("id_idx", 1),))),
    ),
    "clean up": (_clean_up, (BEFORE,)),
}
"""Each verb, and the state after each of its commits if it starts from `BEFORE`."""


def _child(workspace: Workspace, verb: str) -> None:
    try:
        VERBS[verb][0](workspace)
    except CommitStateUnknown:
        os._exit(ExitStatus.UNKNOWN)
    except LanceOpsError:
        os._exit(ExitStatus.FAILED)
    os._exit(ExitStatus.DONE)


def _warm(manifest_store: str) -> None:
    """Run every verb once, so that children do not import modules or compile kernels."""
    with tempfile.TemporaryDirectory() as scratch:
        workspace = Workspace(f"{scratch}/workspace", manifest_store)
        workspace.create()
        shutil.copytree(workspace.folder, f"{scratch}/saved")
        for verb, _ in VERBS.values():
            verb(workspace.restored_from(f"{scratch}/saved"))


def _serve() -> None:
    for manifest_store in MANIFEST_STORES:
        _warm(manifest_store)
    for line in sys.stdin:
        request = json.loads(line)
        waiting, go = os.pipe()
        process = os.fork()
        if not process:
            os.read(waiting, 1)
            _child(Workspace(request["folder"], request["manifest_store"]), request["verb"])
        print(process, flush=True)
        sys.stdin.readline()
        os.write(go, b"!")
        _, status = os.waitpid(process, 0)
        os.close(waiting)
        os.close(go)
        print(status, flush=True)


if __name__ == "__main__":
    _serve()
