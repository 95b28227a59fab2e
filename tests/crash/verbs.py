"""A process that does one verb on one table for everybody who asks, each in a child of its own.

`python -m tests.crash.verbs` reads requests from its input, one JSON object a line, and answers with the child's
process id. At the next line the child does its verb, ends with one of `Ending`, and its status is told.
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
from lance_ops.errors import CommitStateUnknown, LanceOpsError
from lance_ops.fragment import write_fragments

__all__ = ["BEFORE", "BRANCH", "ROWS_OR_NONE", "VERBS", "Ending", "State", "World", "table"]

BRANCH = "side"
TAG = "kept"
ROWS = ".sqlite"
ROWS_OR_NONE = ("", f"rows{ROWS}")


@dataclass(frozen=True)
class World:
    """A folder with the table that verbs are about, another place beside it, and perhaps a manifest store of both.

    That is a file of a new name whenever it is put back to an earlier content: who has it open has the old one.
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

    def begin(self) -> None:
        """Make the table: three fragments, three versions."""
        os.mkdir(self.folder)
        for at in range(3):
            self.write(table(at * 4, at * 4 + 4))

    def put_back(self, saved: str) -> World:
        """Return the world as it was when its folder was copied."""
        shutil.rmtree(self.folder)
        shutil.copytree(saved, self.folder)
        if not self.manifest_store:
            return self
        [rows] = (name for name in os.listdir(saved) if name.endswith(ROWS))
        renamed = f"{uuid.uuid4().hex}{ROWS}"
        os.rename(f"{self.folder}/{rows}", f"{self.folder}/{renamed}")
        return replace(self, manifest_store=renamed)


class Ending(IntEnum):
    """What a child says with its exit status; one that was killed says nothing."""

    DONE = 0
    UNKNOWN = 40
    FAILED = 41


@dataclass(frozen=True)
class State:
    """What there is: the ids of the table's rows, of its branch's and of the other dataset's, None without one.

    And the table's columns, indices and tags, each tag with its version.
    """

    ids: tuple[int, ...] = tuple(range(12))
    columns: tuple[str, ...] = ("id", "text")
    indices: tuple[str, ...] = ()
    branch: tuple[int, ...] | None = None
    other: tuple[int, ...] | None = None
    tags: tuple[tuple[str, int], ...] = ()


BEFORE = State()


def table(start: int, stop: int) -> pa.Table:
    """Return rows with those ids."""
    return pa.table({"id": list(range(start, stop)), "text": [f"row {row}" for row in range(start, stop)]})


def _append(world: World) -> None:
    world.write(table(12, 20))


def _batch(world: World) -> None:
    written = []
    for at in (12, 16):
        made = write_fragments(table(at, at + 4), world.open(), return_transaction=True)
        assert isinstance(made, lance_ops.Transaction)
        written.append(made)
    lance_ops.LanceDataset.commit_batch(world.uri, written, storage_options=world.options)


def _delete(world: World) -> None:
    world.open().delete("id >= 2 AND id < 10")


def _update(world: World) -> None:
    world.open().update({"id": "id + 20"}, where="id > 5")


def _merge(world: World) -> None:
    builder = world.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(table(10, 14))


def _restore(world: World) -> None:
    world.open(2).restore()


def _compact(world: World) -> None:
    world.open().optimize.compact_files()


def _compact_with_index(world: World) -> None:
    world.open().create_scalar_index("id", "BTREE")
    world.open().optimize.compact_files()


def _clean_up(world: World) -> None:
    world.open().cleanup_old_versions(timedelta(0), delete_unverified=True)


def _add_columns(world: World) -> None:
    world.open().add_columns({"doubled": "id * 2"})


def _index(world: World) -> None:
    world.open().create_scalar_index("id", "BTREE")


def _branch(world: World) -> None:
    world.open().create_branch(BRANCH).insert(table(12, 20))


def _drop_branch(world: World) -> None:
    world.open().create_branch(BRANCH)
    world.open().branches.delete(BRANCH)


def _tags(world: World) -> None:
    tags = world.open().tags
    tags.create(TAG, 1)
    tags.update(TAG, 2)
    tags.delete(TAG)


def _create(world: World) -> None:
    world.write(table(50, 54), "create", world.other)


def _clone(world: World) -> None:
    world.open().shallow_clone(world.other, 2, storage_options=world.options)


VERBS: dict[str, tuple[Callable[[World], None], tuple[State, ...]]] = {
    "create": (_create, (State(other=(50, 51, 52, 53)),)),
    "append": (_append, (State(tuple(range(20))),)),
    "batch": (_batch, (State(tuple(range(20))),)),
    "delete": (_delete, (State((0, 1, 10, 11)),)),
    "update": (_update, (State((*range(6), *range(26, 32))),)),
    "merge": (_merge, (State(tuple(range(14))),)),
    "restore": (_restore, (State(tuple(range(8))),)),
    "add columns": (_add_columns, (State(columns=("id", "text", "doubled")),)),
    "index": (_index, (State(indices=("id_idx",)),)),
    "branch": (_branch, (State(branch=tuple(range(12))), State(branch=tuple(range(20))))),
    "drop branch": (_drop_branch, (State(branch=tuple(range(12))), BEFORE)),
    "tags": (_tags, (State(tags=((TAG, 1),)), State(tags=((TAG, 2),)), BEFORE)),
    "clone": (_clone, (State(other=tuple(range(8))),)),
    "compact": (_compact, (BEFORE,)),
    "compact with index": (_compact_with_index, (State(indices=("id_idx",)), State(indices=("id_idx",)))),
    "clean up": (_clean_up, (BEFORE,)),
}
"""Each verb, and what there is, `BEFORE` having been, after each of its commits."""


def _child(world: World, verb: str) -> None:
    try:
        VERBS[verb][0](world)
    except CommitStateUnknown:
        os._exit(Ending.UNKNOWN)
    except LanceOpsError:
        os._exit(Ending.FAILED)
    os._exit(Ending.DONE)


def _warm(manifest_store: str) -> None:
    """Do every verb once: what a first use imports and compiles is no part of a commit."""
    with tempfile.TemporaryDirectory() as scratch:
        world = World(f"{scratch}/world", manifest_store)
        world.begin()
        shutil.copytree(world.folder, f"{scratch}/saved")
        for verb, _ in VERBS.values():
            verb(world.put_back(f"{scratch}/saved"))


def _serve() -> None:
    for manifest_store in ROWS_OR_NONE:
        _warm(manifest_store)
    for line in sys.stdin:
        request = json.loads(line)
        waiting, go = os.pipe()
        process = os.fork()
        if not process:
            os.read(waiting, 1)
            _child(World(request["folder"], request["manifest_store"]), request["verb"])
        print(process, flush=True)
        sys.stdin.readline()
        os.write(go, b"!")
        _, status = os.waitpid(process, 0)
        os.close(waiting)
        os.close(go)
        print(status, flush=True)


if __name__ == "__main__":
    _serve()
