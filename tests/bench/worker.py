"""One contender's process: it reads requests and writes answers, one JSON object per line.

Only the operation is timed. The time includes touching the result page by page, so that a memory-mapped result pays
for its bytes too.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.bench.cases import PROJECTED
from tests.bench.contenders import Contender, Lance, contender, size_bytes, sync_all
from tests.bench.results import TABLE, WRITING
from tests.bench.table_cases import ALL_TABLE_CASES, answer_path

__all__ = ["NUM_TAKEN"]

NUM_TAKEN = 1000
_PAGE_BYTES = 4096


class Worker:
    """The operations on `root`, where `source.arrow` is and each contender's folders are."""

    def __init__(self, root: Path, name: str, version: str) -> None:
        self._root = root
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
            _give_back_memory()
        if operation in WRITING:
            source = self._source()
            _touch(source)
            shutil.rmtree(self._scratch, ignore_errors=True)
            return _measured(lambda: self._write(source, durable=operation == "write_durable"))
        return _measured(self._reading(operation, files, seed))

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
            return _measured(lambda: case.run(module, uri, seed))
        answer = case.answer(module, uri, case.run(module, uri, seed))
        with pa.ipc.new_file(answer_path(self._root, files), answer.schema) as sink:
            sink.write_table(answer)
        del answer
        _give_back_memory()
        return {}

    def _reading(self, operation: str, files: str, seed: int) -> Callable[[], pa.Table]:
        if files not in self._opened:
            self._opened[files] = self._contender.open(self._root / files)
        dataset = self._opened[files]
        if operation == "take":
            rows = self._rows(seed)
            return lambda: _touch(dataset.take(rows))
        columns = [PROJECTED] if operation == "projection" else None
        return lambda: _touch(dataset.to_table(columns=columns))

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


def _measured(operation: Callable[[], object]) -> dict[str, Any]:
    gc.collect()
    _forget_peak()
    cpu, start = time.process_time(), time.perf_counter()
    result = operation()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    peak_bytes = _peak_bytes()
    del result
    return {"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_bytes": peak_bytes}


def _touch(table: pa.Table) -> pa.Table:
    seen: set[int] = set()
    for column in table.columns:
        for chunk in column.chunks:
            for buffer in chunk.buffers():
                if buffer is not None and buffer.size and buffer.address not in seen:
                    seen.add(buffer.address)
                    np.frombuffer(buffer, dtype=np.uint8)[::_PAGE_BYTES].max()
    return table


def _give_back_memory() -> None:
    # Memory that an allocator keeps after one operation must not count for the next one. Between rounds of one
    # operation the allocator keeps what it likes, as it does in a long-lived process.
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _forget_peak() -> None:
    # Linux's way to start the high-water mark of resident memory anew; `ru_maxrss` would keep the warm-up's, and
    # the parent's from before the exec.
    Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def _serve(root: Path, name: str, version: str) -> None:
    # Output that libraries print goes to stderr, so the pipe carries answers only.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(root, name, version)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = (
                {"size": worker.size(question["files"])} if "operation" not in question else worker.answer(question)
            )
        except Exception as error:  # noqa: BLE001 - a contender that fails is a cell of the table
            answer = {"error": f"{type(error).__name__}: {error}".replace(f"{root}/", "").replace(f"{Path.cwd()}/", "")}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
