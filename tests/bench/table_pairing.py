"""Measure table cases: this library and pylance in turns, each in a process of its own, on one core."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from tests.bench.pairing import Worker
from tests.bench.results import TABLE, Cell, Sample
from tests.bench.table_cases import TableCase, answer_path

__all__ = ["compare", "measure_tables"]

_SUBJECTS = ("ours", "pylance")
_VERSION = "2.2"
_MIN_ROUNDS, _MAX_ROUNDS = 5, 25


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
            yield _rounds(case, folder, workers, seconds)


def _rounds(case: TableCase, folder: Path, workers: dict[str, Worker], seconds: float) -> Cell:
    samples: dict[str, list[Sample]] = {name: [] for name in workers}
    errors: dict[str, str] = {}
    answered: list[str] = []
    start, number = time.monotonic(), 0
    while number <= _MIN_ROUNDS or (number <= _MAX_ROUNDS and time.monotonic() - start < seconds):
        for name in list(samples):
            files = case.start(folder, name, number)
            answer = workers[name].ask(operation=TABLE, case=case.name, files=files, seed=number, check=not number)
            if "error" in answer:
                errors[name] = answer["error"]
                del samples[name]
            elif number:
                samples[name].append(Sample(**answer))
            else:
                answered.append(files)
        if not number:
            compare(case, folder, answered)
        number += 1
    taken = {name: tuple(found) for name, found in samples.items()}
    return Cell(case.name, _VERSION, TABLE, samples=taken, errors=errors)


def compare(case: TableCase, folder: Path, answered: Sequence[str]) -> None:
    """Raise `AssertionError` unless all contenders wrote the same answer."""
    answers = [pa.ipc.open_file(pa.memory_map(str(answer_path(folder, files)))).read_all() for files in answered]
    if any(not answer.equals(answers[0]) for answer in answers):
        raise AssertionError(f"{case.name}: the contenders do not answer the same")
