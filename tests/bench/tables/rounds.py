"""Measure this library and pylance in turns, on all cores, table by table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.bench.conversation import Worker
from tests.bench.results import Cell
from tests.bench.table_pairing import Asked, measure_in_turns
from tests.bench.tables.cases import Case
from tests.bench.tables.cold_process import ColdProcess
from tests.bench.tables.tables import COLD, Table

__all__ = ["measure"]

_SUBJECTS = ("ours", "pylance")


def measure(cases: Sequence[Case], root: Path, *, scale: float, seconds: float, min_rounds: int = 5) -> Iterator[Cell]:
    """Yield one cell for each case. A table is written once, and both contenders are new processes for each table."""
    for table in dict.fromkeys(case.table for case in cases):
        folder = root / table.name.replace("/", "-")
        with ExitStack() as resources:
            resources.callback(shutil.rmtree, folder, ignore_errors=True)
            table.prepare(folder, scale)
            contenders = _contenders(table, folder, resources)
            for case in (case for case in cases if case.table == table):
                case.prepare(folder)
                yield measure_in_turns(case, folder, contenders, seconds, min_rounds=min_rounds)
                case.clear(folder)


def _contenders(table: Table, folder: Path, resources: ExitStack) -> Mapping[str, Asked]:
    if table.axis == COLD:
        return {name: ColdProcess(folder, name) for name in _SUBJECTS}
    module = "tests.bench.tables.worker"
    return {name: resources.enter_context(Worker(str(folder), name, module=module)) for name in _SUBJECTS}
