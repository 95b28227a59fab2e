"""One contender's process: it reads names of operations and writes seconds, one JSON object per line."""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from typing import Any

import pyarrow as pa

from tests.bench.s3.operations import ALL_OPERATIONS, Table


class Worker:
    """Runs the operations on one table after the other."""

    def __init__(self, module: str, options: dict[str, str], num_rows: int) -> None:
        self._module = importlib.import_module(module)
        self._options = options
        self._num_rows = num_rows
        self._prepared: object = None

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Prepare an operation, run it and measure it, or say what the table holds now."""
        table = Table(self._module, question["uri"], self._options, self._num_rows)
        if question["step"] == "look":
            rows = table.open().to_table(columns=["id", "value"])
            return {"rows": rows.num_rows, "sum": round(sum(rows["value"].to_pylist()), 6)}
        operation = next(each for each in ALL_OPERATIONS if each.name == question["operation"])
        if question["step"] == "prepare":
            self._prepared = operation.prepare(table)
            gc.collect()
            return {}
        cpu, start = time.process_time(), time.perf_counter()
        result = operation.run(table, self._prepared)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        self._prepared = None
        return {"seconds": seconds, "cpu_seconds": cpu_seconds, "result": _summary(result)}


def _summary(result: object) -> object:
    """Return what contenders must agree on: the ids of rows, or a number."""
    if isinstance(result, pa.Table):
        return [result.num_rows, sum(result["id"].to_pylist())]
    return result if isinstance(result, int) else None


def _serve(module: str, options: str, num_rows: str) -> None:
    # Output that libraries print goes to stderr, so the pipe carries answers only.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    worker = Worker(module, json.loads(options), int(num_rows))
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - a contender that fails is a cell of the table
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
