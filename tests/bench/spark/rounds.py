"""Measure cases in turns, in one session, with the workers in a known state before each operation of ours."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.bench.spark.cases import COLD, IDLE, WARM, Bench, Case
from tests.spark.python_processes import cpu_seconds, end_workers

__all__ = ["Measured", "measure"]

_SETTLE: Mapping[str, Callable[[Bench], object]] = {
    WARM: lambda bench: None,
    IDLE: lambda bench: end_workers(),
    COLD: Bench.restart,
}


@dataclass
class Measured:
    """What one case cost in one state of the workers: seconds and CPU seconds of each pair of rounds.

    `bound_seconds` are those of what Spark itself takes, once for each pair, if the case says what that is.
    """

    case: str
    against: str
    state: str
    most: float
    seconds: list[tuple[float, float]] = field(default_factory=list)
    cpu_seconds: list[tuple[float, float]] = field(default_factory=list)
    bound_seconds: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The median over the rounds of ours / theirs."""
        return median(ours / theirs for ours, theirs in self.seconds)

    @property
    def cpu_ratio(self) -> float:
        return median(ours / max(theirs, 0.01) for ours, theirs in self.cpu_seconds)

    @property
    def own_ratio(self) -> float | None:
        """The median ratio without what Spark itself takes; None if that is not known."""
        own = zip(self.seconds, self.bound_seconds, strict=False)
        return median((ours - bound) / theirs for (ours, theirs), bound in own) if self.bound_seconds else None

    @property
    def is_missed(self) -> bool:
        return self.ratio > self.most


def measure(bench: Bench, cases: Iterable[Case], *, warm_rounds: int, other_rounds: int) -> Iterator[Measured]:
    """Yield one result for each case and state of the workers.

    The first round of a case is not counted. It raises `AssertionError` if the contenders answer differently.
    """
    for case in cases:
        _compare(bench, case)
        if case.bound is not None:
            case.bound(bench)
        for state, most in case.most.items():
            measured = Measured(case.name, case.against, state, most)
            for number in range(warm_rounds if state == WARM else other_rounds):
                order = (case.ours, case.theirs) if number % 2 else (case.theirs, case.ours)
                found = {run: _timed(bench, case, run, state) for run in order}
                measured.seconds.append((found[case.ours][0], found[case.theirs][0]))
                measured.cpu_seconds.append((found[case.ours][1], found[case.theirs][1]))
                if case.bound is not None:
                    measured.bound_seconds.append(_bound(bench, case.bound, state))
            yield measured


def _compare(bench: Bench, case: Case) -> None:
    answers = []
    for run in (case.ours, case.theirs):
        given = case.prepare(bench)
        answers.append(run(bench, given))
        _remove(given)
    if answers[0] != answers[1]:
        raise AssertionError(f"{case.name}: the contenders do not answer the same: {answers}")


def _timed(bench: Bench, case: Case, run: Callable[[Bench, object], object], state: str) -> tuple[float, float]:
    given = case.prepare(bench)
    _SETTLE[state](bench)
    cpu, begin = cpu_seconds(), time.perf_counter()
    run(bench, given)
    taken = time.perf_counter() - begin, cpu_seconds() - cpu
    _remove(given)
    return taken


def _bound(bench: Bench, run: Callable[[Bench], object], state: str) -> float:
    """Measure what Spark itself takes; with cold workers, those of PySpark alone."""
    if state == COLD:
        bench.restart(plain_workers=True)
    else:
        _SETTLE[state](bench)
    begin = time.perf_counter()
    run(bench)
    taken = time.perf_counter() - begin
    if state == COLD:
        bench.restart()
    return taken


def _remove(given: object) -> None:
    if isinstance(given, str) and Path(given).exists():
        shutil.rmtree(given)
