"""Run one function in many threads or processes at once, for the conformance suites of stores and committers."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar

T = TypeVar("T")

NUM_RACERS = 16

PRELOADED = [
    *("tests.conformance.test_committers", "tests.conformance.test_manifest_stores"),
    "tests.conformance.stores.test_creates_and_writers",
    *(f"lance_ops.committers.manifest_stores.{kind}" for kind in ("dynamodb", "etcd", "redis", "sql")),
]
"""What racers use. The server that forks them imports it once; else each of them would, before the race."""


def race_in_threads(attempt: Callable[[int], T], num_racers: int = NUM_RACERS) -> list[T]:
    """Run `attempt(i)` in many threads that start together; return their answers in order."""
    barrier = threading.Barrier(num_racers)
    answers: dict[int, T] = {}

    def run(racer: int) -> None:
        barrier.wait()
        answers[racer] = attempt(racer)

    threads = [threading.Thread(target=run, args=(racer,)) for racer in range(num_racers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[racer] for racer in range(num_racers)]


def race_in_processes(
    attempt: Callable[[int, int], T], num_rounds: int, num_racers: int = NUM_RACERS
) -> list[Sequence[T]]:
    """Run `attempt(round, i)` in many processes, all of them starting each round together; answers round by round.

    `attempt` must pickle.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    barrier = context.Barrier(num_racers)
    queue: Any = context.Queue()
    processes = [
        context.Process(target=_run_rounds, args=(attempt, racer, num_rounds, barrier, queue))
        for racer in range(num_racers)
    ]
    for process in processes:
        process.start()
    answers = dict(queue.get(timeout=120) for _ in range(num_racers * num_rounds))
    for process in processes:
        process.join()
    queue.close()
    queue.join_thread()
    return [[answers[a_round, racer] for racer in range(num_racers)] for a_round in range(num_rounds)]


def _run_rounds(
    attempt: Callable[[int, int], object], racer: int, num_rounds: int, barrier: Barrier, queue: Any
) -> None:
    for a_round in range(num_rounds):
        barrier.wait()
        queue.put(((a_round, racer), attempt(a_round, racer)))
