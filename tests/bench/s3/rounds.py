"""Measure the contenders in turns, each in a process of its own, through one proxy that counts their requests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from tests.bench.conversation import Worker
from tests.bench.s3.operations import ALL_OPERATIONS, NUM_ROWS, Operation
from tests.lossy_proxy import LossyProxy, lossy_proxy, request_name
from tests.s3_server import S3Server, moto_server

__all__ = ["CONTENDERS", "LATENCY_SECONDS", "WITH_FSSPEC", "Measured", "measure"]

WITH_FSSPEC = "ours with fsspec"
CONTENDERS = {"pylance": ("lance", None), "ours": ("lance_ops", None), WITH_FSSPEC: ("lance_ops", "fsspec")}
"""The module of each contender, and the client that its stores use; None for the default one, which is obstore."""
LATENCY_SECONDS = 0.03


@dataclass
class Measured:
    """What one operation cost one contender, round by round."""

    requests: list[Counter[str]] = field(default_factory=list)
    sizes_bytes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    @property
    def typical_requests(self) -> Counter[str]:
        """The requests of the round with the median number of them."""
        return sorted(self.requests, key=Counter.total)[len(self.requests) // 2]

    @property
    def typical_bytes(self) -> float:
        """The median of the bytes sent and received."""
        return median(self.sizes_bytes)


def measure(
    rounds: int,
    operations: Sequence[Operation] = ALL_OPERATIONS,
    *,
    num_rows: int = NUM_ROWS,
    latency_seconds: float = LATENCY_SECONDS,
) -> dict[str, dict[str, Measured]]:
    """Return what each of these operations cost each contender.

    The operations before them run too, because they make the table. A round before the first one compares the
    contenders' answers and warms up.
    """
    results = {each.name: {name: Measured() for name in CONTENDERS} for each in operations}
    needed = ALL_OPERATIONS[: 1 + max(ALL_OPERATIONS.index(each) for each in operations)]
    with ExitStack() as resources:
        server = resources.enter_context(moto_server())
        proxy = resources.enter_context(lossy_proxy(server.endpoint, latency_seconds=latency_seconds))
        workers = {}
        for name, (module, client) in CONTENDERS.items():
            options = json.dumps(replace(server, endpoint=proxy.endpoint, client=client).storage_options)
            worker = Worker(module, options, str(num_rows), module="tests.bench.s3.worker")
            workers[name] = resources.enter_context(worker)
        for number in range(rounds + 1):
            _round(server, proxy, workers, needed, results if number else None)
    return results


def _round(
    server: S3Server,
    proxy: LossyProxy,
    workers: dict[str, Worker],
    operations: Sequence[Operation],
    results: dict[str, dict[str, Measured]] | None,
) -> None:
    """Run the operations on a new table of each contender. Without `results`, compare the tables instead."""
    uris = {name: server.new_uri("table.lance") for name in workers}
    for operation in operations:
        answers = []
        for name, worker in workers.items():
            _ask(worker, step="prepare", operation=operation.name, uri=uris[name])
            first = len(proxy.seen), len(proxy.sizes_bytes)
            answer = _ask(worker, step="run", operation=operation.name, uri=uris[name])
            if results is None:
                answers.append((answer["result"], operation.writes and _ask(worker, step="look", uri=uris[name])))
                continue
            if operation.name not in results:
                continue
            measured = results[operation.name][name]
            measured.requests.append(Counter(request_name(*seen) for seen in proxy.seen[first[0] :]))
            measured.sizes_bytes.append(sum(proxy.sizes_bytes[first[1] :]))
            measured.seconds.append(answer["seconds"])
            measured.cpu_seconds.append(answer["cpu_seconds"])
        if any(answer != answers[0] for answer in answers):
            raise AssertionError(f"{operation.name}: the contenders do not answer the same: {answers}")


def _ask(worker: Worker, **question: Any) -> dict[str, Any]:
    answer = worker.ask(**question)
    if "error" in answer:
        raise RuntimeError(f"{question}: {answer['error']}")
    return answer
