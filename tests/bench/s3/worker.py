"""One contender's process: it is asked for an operation by name, and answers with its seconds."""

from __future__ import annotations

import gc
import importlib
import json
import time
from typing import Any

import pyarrow as pa

from tests.bench.conversation import Answering, serve
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
            gc.collect(1)  # what the last operation left; a whole collection takes longer than most operations
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


def _answering(module: str, options: str, num_rows: str) -> Answering:
    return Worker(module, json.loads(options), int(num_rows)).answer


if __name__ == "__main__":
    serve(_answering)
