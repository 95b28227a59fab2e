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
from datetime import timedelta
from enum import IntEnum

import pyarrow as pa

import lance_ops
from lance_ops.errors import CommitStateUnknown, LanceOpsError

__all__ = ["VERBS", "Ending", "table"]


class Ending(IntEnum):
    """What a child says with its exit status; one that was killed says nothing."""

    DONE = 0
    UNKNOWN = 40
    FAILED = 41


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


VERBS: dict[str, tuple[Callable[[str], None], list[int]]] = {
    "append": (_append, list(range(20))),
    "delete": (_delete, [0, 1, 10, 11]),
    "update": (_update, [*range(6), *range(26, 32)]),
    "merge": (_merge, list(range(14))),
    "compact": (_compact, list(range(12))),
    "clean up": (_clean_up, list(range(12))),
}
"""Each verb, and the ids of a table of 12 rows after it."""


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
