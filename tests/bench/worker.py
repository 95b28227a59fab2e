"""One contender's process: it does what the bench asks for, and answers with what it measured.

Only the operation is timed. The time includes touching the result page by page, so that a memory-mapped result pays
for its bytes too.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.bench.answers import write_answer
from tests.bench.cases import PROJECTED
from tests.bench.contenders import Contender, Lance, contender, size_bytes, sync_all
from tests.bench.conversation import Answering, serve
from tests.bench.measuring import give_back_memory, measured, touch
from tests.bench.results import TABLE, WRITING
from tests.bench.table_cases import ALL_TABLE_CASES

__all__ = ["NUM_TAKEN"]

NUM_TAKEN = 1000


class Worker:
    """The operations on `root`, where `source.arrow` is and each contender's folders are."""

    def __init__(self, root: Path, name: str, version: str) -> None:
        self._root = root
        self._name = name
        self._scratch = root / f"{name}-scratch"
        self._contender: Contender = contender(name, version)
        self._opened: dict[str, Any] = {}
        self._operation = ""

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Run `operation` on the files that `files` wrote. `check` compares with the source, which also warms up."""
        operation, files, seed = question["operation"], question["files"], question["seed"]
        if operation == TABLE:
            return self._table_case(question["case"], files, seed, check=question["check"])
        if question["check"]:
            self._check(operation, files, seed)
        if operation != self._operation:
            self._operation = operation
            give_back_memory()
        if operation in WRITING:
            source = self._source()
            touch(source)
            shutil.rmtree(self._scratch, ignore_errors=True)
            return measured(lambda: self._write(source, durable=operation == "write_durable"))
        return measured(self._reading(operation, files, seed))

    def _write(self, source: pa.Table, *, durable: bool) -> None:
        self._contender.write(source, self._scratch)
        if durable and not self._contender.syncs:
            sync_all(self._scratch)

    def _table_case(self, name: str, files: str, seed: int, *, check: bool) -> dict[str, Any]:
        """Measure a table case. With `check`, write its answer to a file for comparison instead."""
        case = next(case for case in ALL_TABLE_CASES if case.name == name)
        if not isinstance(self._contender, Lance):
            raise TypeError("only Lance has tables")
        module, uri = self._contender.module, str(self._root / files)
        if not check:
            return measured(lambda: case.run(module, uri, seed))
        answer = case.answer(module, uri, case.run(module, uri, seed))
        write_answer(self._root, self._name, answer)
        del answer
        give_back_memory()
        return {}

    def _reading(self, operation: str, files: str, seed: int) -> Callable[[], pa.Table]:
        if files not in self._opened:
            self._opened[files] = self._contender.open(self._root / files)
        dataset = self._opened[files]
        if operation == "take":
            rows = self._rows(seed)
            return lambda: touch(dataset.take(rows))
        columns = [PROJECTED] if operation == "projection" else None
        return lambda: touch(dataset.to_table(columns=columns))

    def _check(self, operation: str, files: str, seed: int) -> None:
        source = self._source()
        if operation == "write":
            self._contender.write(source, self._root / files)
            return
        expected = {
            "scan": lambda: source,
            "projection": lambda: source.select([PROJECTED]),
            "take": lambda: source.take(self._rows(seed)),
        }[operation]()
        if (
            not self._reading(operation, files, seed)()
            .cast(source.select(expected.column_names).schema)
            .equals(expected)
        ):
            raise AssertionError(f"{operation} of {files} returns other values than were written")

    def _rows(self, seed: int) -> np.ndarray:
        return np.random.default_rng(seed).integers(0, self._source().num_rows, NUM_TAKEN)

    def _source(self) -> pa.Table:
        # The source is mapped again for each use, so its rows do not count as the contender's memory between uses.
        return pa.ipc.open_file(pa.memory_map(str(self._root / "source.arrow"))).read_all()

    def size(self, files: str) -> int:
        """Return the bytes of the data files written."""
        return size_bytes(self._root / files)


def _answering(root: str, name: str, version: str) -> Answering:
    worker = Worker(Path(root), name, version)
    return lambda question: (
        worker.answer(question) if "operation" in question else {"size": worker.size(question["files"])}
    )


if __name__ == "__main__":
    serve(_answering, root=Path(sys.argv[1]))
