"""A process that does one verb on one table for everybody who asks, each in a child of its own.

`python -m tests.crash.verbs` reads requests from its input, one JSON object a line, and answers with the child's
process id. At the next line the child does its verb, ends with one of `Ending`, and its status is told.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

import pyarrow as pa

import lance_ops
from lance_ops.errors import CommitStateUnknown, LanceOpsError

__all__ = ["BEFORE", "BRANCH", "VERBS", "Ending", "State", "table"]

BRANCH = "side"


class Ending(IntEnum):
    """What a child says with its exit status; one that was killed says nothing."""

    DONE = 0
    UNKNOWN = 40
    FAILED = 41


@dataclass(frozen=True)
class State:
    """What a dataset holds: the ids of its rows and of its branch's, None without one; its columns; its indices."""

    ids: tuple[int, ...] = tuple(range(12))
    columns: tuple[str, ...] = ("id", "text")
    indices: tuple[str, ...] = ()
    branch: tuple[int, ...] | None = None


BEFORE = State()


def table(start: int, stop: int) -> pa.Table:
    """Return rows with those ids."""
    return pa.table({"id": list(range(start, stop)), "text": [f"row {row}" for row in range(start, stop)]})


def _append(uri: str) -> None:
    lance_ops.write_dataset(table(12, 20), uri, mode="append")


def _delete(uri: str) -> None:
    lance_ops.dataset(uri).delete("id >= 2 AND id < 10")


def _update(uri: str) -> None:
    lance_ops.dataset(uri).update({"id": "id + 20"}, where="id > 5")


def _merge(uri: str) -> None:
    builder = lance_ops.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(table(10, 14))


def _compact(uri: str) -> None:
    lance_ops.dataset(uri).optimize.compact_files()


def _clean_up(uri: str) -> None:
    lance_ops.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)


def _add_columns(uri: str) -> None:
    lance_ops.dataset(uri).add_columns({"doubled": "id * 2"})


def _index(uri: str) -> None:
    lance_ops.dataset(uri).create_scalar_index("id", "BTREE")


def _branch(uri: str) -> None:
    lance_ops.dataset(uri).create_branch(BRANCH).insert(table(12, 20))


VERBS: dict[str, tuple[Callable[[str], None], tuple[State, ...]]] = {
    "append": (_append, (State(tuple(range(20))),)),
    "delete": (_delete, (State((0, 1, 10, 11)),)),
    "update": (_update, (State((*range(6), *range(26, 32))),)),
    "merge": (_merge, (State(tuple(range(14))),)),
    "add columns": (_add_columns, (State(columns=("id", "text", "doubled")),)),
    "index": (_index, (State(indices=("id_idx",)),)),
    "branch": (_branch, (State(branch=tuple(range(12))), State(branch=tuple(range(20))))),
    "compact": (_compact, (BEFORE,)),
    "clean up": (_clean_up, (BEFORE,)),
}
"""Each verb, and what a dataset in the state `BEFORE` is in after each of its commits."""


def _child(uri: str, verb: str) -> None:
    try:
        VERBS[verb][0](uri)
    except CommitStateUnknown:
        os._exit(Ending.UNKNOWN)
    except LanceOpsError:
        os._exit(Ending.FAILED)
    os._exit(Ending.DONE)


def _serve() -> None:
    with tempfile.TemporaryDirectory() as scratch:  # what a first use imports and compiles is no part of a commit
        uri = f"{scratch}/warm"
        for at in range(3):
            lance_ops.write_dataset(table(at * 4, at * 4 + 4), uri, mode="append")
        for verb, _ in VERBS.values():
            verb(uri)
    for line in sys.stdin:
        request = json.loads(line)
        waiting, go = os.pipe()
        process = os.fork()
        if not process:
            os.read(waiting, 1)
            _child(**request)
        print(process, flush=True)
        sys.stdin.readline()
        os.write(go, b"!")
        _, status = os.waitpid(process, 0)
        os.close(waiting)
        os.close(go)
        print(status, flush=True)


if __name__ == "__main__":
    _serve()
