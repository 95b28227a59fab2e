"""Measure table cases: this library and pylance in turns, each in a process of its own, on one core."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from tests.bench.answers import compare
from tests.bench.conversation import Worker
from tests.bench.results import TABLE, Cell, Sample
from tests.bench.table_cases import TableCase

__all__ = ["Asked", "InTurns", "measure_in_turns", "measure_tables"]

_SUBJECTS = ("ours", "pylance")
_VERSION = "2.2"
_MIN_ROUNDS, _MAX_ROUNDS = 5, 25


class InTurns(Protocol):
    """A case that contenders run in turns: its name, and the files that a contender's round works on."""

    @property
    def name(self) -> str: ...

    def start(self, root: Path, name: str, number: int) -> str: ...


class Asked(Protocol):
    """A process that runs a contender's operation, such as a `Worker`."""

    def ask(self, **question: Any) -> dict[str, Any]: ...


def measure_tables(cases: Sequence[TableCase], root: Path, *, scale: float, seconds: float) -> Iterator[Cell]:
    """Yield one cell for each case. The first round warms up and is not counted."""
    core = max(os.sched_getaffinity(0))
    for case in cases:
        folder = root / case.name
        folder.mkdir()
        with ExitStack() as resources:
            resources.callback(shutil.rmtree, folder, ignore_errors=True)
            case.prepare(folder / "source", scale)
            workers = {name: resources.enter_context(Worker(str(folder), name, _VERSION)) for name in _SUBJECTS}
            for worker in workers.values():
                worker.move_to(core)
            yield measure_in_turns(case, folder, workers, seconds)


def measure_in_turns(
    case: InTurns, folder: Path, workers: Mapping[str, Asked], seconds: float, *, min_rounds: int = _MIN_ROUNDS
) -> Cell:
    """Measure one case for `seconds`, between its least and greatest number of rounds, after one that warms up.

    The first round raises `AssertionError` if the contenders answer differently.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in workers}
    errors: dict[str, str] = {}
    answered: list[str] = []
    start, number = time.monotonic(), 0
    while number <= min_rounds or (number <= _MAX_ROUNDS and time.monotonic() - start < seconds):
        for name in list(samples):
            files = case.start(folder, name, number)
            answer = workers[name].ask(operation=TABLE, case=case.name, files=files, seed=number, check=not number)
            if "error" in answer:
                errors[name] = answer["error"]
                del samples[name]
            elif number:
                samples[name].append(Sample(**answer))
            else:
                answered.append(name)
        if not number:
            compare(case.name, folder, answered)
        number += 1
    taken = {name: tuple(found) for name, found in samples.items()}
    return Cell(case.name, _VERSION, TABLE, samples=taken, errors=errors)
