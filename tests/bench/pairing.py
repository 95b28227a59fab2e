"""Measure contenders in turns: each has a worker process, and they run the same operation one after the other.

All workers of a case are pinned to one core while they are measured, so all have the same single thread and the same
neighbours. They start pinned to the *other* core, where the next case imports, writes and warms up in the meantime.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.bench.cases import Case
from tests.bench.conversation import Worker
from tests.bench.results import READING, WRITING, Cell, Sample

__all__ = ["measure_all"]

_WRITERS = ("ours", "pylance", "parquet")
# Subject -> (who works, on whose files). Each has a process of its own: what one maps is not the other's memory.
_READERS = {
    "ours": ("ours", "ours"),
    "pylance": ("pylance", "pylance"),
    "parquet": ("parquet", "parquet"),
    "ours@pylance": ("ours", "pylance"),
}
_MIN_ROUNDS, _MAX_ROUNDS = 5, 25


@dataclass
class Prepared:
    """A case in one version, which every able contender has written and warmed up on."""

    case: Case
    version: str
    root: Path
    workers: dict[str, Worker]
    resources: ExitStack
    sizes: dict[str, int] = field(default_factory=dict)
    errors: dict[str, dict[str, str]] = field(default_factory=dict)  # operation -> subject -> why not

    def check(self) -> None:
        """Run each operation once in each worker, and compare the rows read with the rows written."""
        for operation in ("write", *READING):
            for subject in _subjects(operation):
                answer = self._ask(operation, subject, seed=0, check=True)
                if "error" in answer:
                    self.errors.setdefault(operation, {})[subject] = answer["error"]
        unwritten = self.errors.get("write", {})
        for operation in READING:  # report why the write failed, not that there is nothing to read
            self.errors.setdefault(operation, {}).update(unwritten)
        self.errors["write_durable"] = unwritten
        for name in _WRITERS:
            if name not in unwritten:
                self.sizes[name] = self.workers[name].ask(files=name)["size"]

    def measure(self, core: int, seconds: float) -> Iterator[Cell]:
        """Yield the cells. Each operation repeats for `seconds`, between its least and greatest number of rounds."""
        for worker in self.workers.values():
            worker.move_to(core)
        for operation in (*READING, *WRITING):
            yield self._rounds(operation, seconds)
        yield Cell(self.case.name, self.version, "size", sizes=self.sizes, errors=self.errors.get("write", {}))

    def _rounds(self, operation: str, seconds: float) -> Cell:
        errors = dict(self.errors.get(operation, {}))
        samples: dict[str, list[Sample]] = {name: [] for name in _subjects(operation) if name not in errors}
        start, rounds = time.monotonic(), 0
        while rounds < _MIN_ROUNDS or (rounds < _MAX_ROUNDS and time.monotonic() - start < seconds):
            rounds += 1
            for subject in list(samples):
                answer = self._ask(operation, subject, seed=rounds, check=False)
                if "error" in answer:
                    errors[subject] = answer["error"]
                    del samples[subject]
                else:
                    samples[subject].append(Sample(**answer))
        taken = {name: tuple(found) for name, found in samples.items()}
        return Cell(self.case.name, self.version, operation, samples=taken, errors=errors)

    def _ask(self, operation: str, subject: str, *, seed: int, check: bool) -> dict[str, Any]:
        _, files = _READERS[subject]
        return self.workers[subject].ask(operation=operation, files=files, seed=seed, check=check)


def measure_all(
    cases: Sequence[Case], versions: Sequence[str], root: Path, *, scale: float, seconds: float
) -> Iterator[Cell]:
    """Yield the cells of all cases in all versions, case by case."""
    cores = sorted(os.sched_getaffinity(0))
    waiting = [(case, version) for case in cases for version in versions]
    if not waiting:
        return
    with ThreadPoolExecutor(1, initializer=os.sched_setaffinity, initargs=(0, {cores[0]})) as ahead:
        following = ahead.submit(_prepare, *waiting[0], root, scale)
        for number in range(len(waiting)):
            prepared = following.result()
            if number + 1 < len(waiting):
                following = ahead.submit(_prepare, *waiting[number + 1], root, scale)
            with prepared.resources:
                yield from prepared.measure(cores[-1], seconds)


def _prepare(case: Case, version: str, root: Path, scale: float) -> Prepared:
    folder = root / f"{case.name}-{version}"
    folder.mkdir()
    with ExitStack() as resources:
        resources.callback(shutil.rmtree, folder, ignore_errors=True)
        table = case.table(scale)
        with pa.ipc.new_file(folder / "source.arrow", table.schema) as sink:
            sink.write_table(table)
        workers = {
            subject: resources.enter_context(Worker(str(folder), name, version))
            for subject, (name, _) in _READERS.items()
        }
        prepared = Prepared(case, version, folder, workers, ExitStack())
        prepared.check()
        prepared.resources = resources.pop_all()
    return prepared


def _subjects(operation: str) -> Iterable[str]:
    return _WRITERS if operation in WRITING else _READERS
