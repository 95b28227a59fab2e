"""Give an empty demo a few days of history, so that `make ui` has something to look at and to click.

    python -m jobs.history [--root FOLDER]

The steps are runs of the deployment's own sensor and jobs, with tasks in threads, because Spark takes longer to start
than these few rows take to ingest. Nothing happens if the demo's lake holds a dataset already.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa

from assets.definitions import declared_datasets
from jobs.definitions import definitions_on
from jobs.flights import flights_of, land_days, read_flights
from jobs.instance import DEFAULT_ROOT, DemoPlace
from lance_ops.api import write_dataset
from lance_ops.dagster import CodeLocation
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.head import build_version_sensor
from lance_ops.dagster.ops import launch
from lance_ops.dagster.runners import ThreadRunner
from lance_ops.verbs import Compact, DeleteRows, Erase, Reindex, Verb

__all__ = ["main", "seed"]

_DATASET = "flights"
_DAYS = [date(2013, 1, 1) + timedelta(days=number) for number in range(9)]
_LATE, _FOREIGN = _DAYS[2], _DAYS[8]
_ERASED = "N725MQ"
_UNFINISHED = "seeding"
"""A file in DAGSTER_HOME while the history is made. The folders of a seeding that died are made anew."""


def seed(place: DemoPlace, flights: pa.Table) -> bool:
    """Make the history in a prepared demo's folders; return False if there is a dataset already.

    The process holds the environment of `place`. Raises the error of a run that fails.
    """
    unfinished = place.dagster_home / _UNFINISHED
    if unfinished.exists():
        place.clear()
        place.prepare()
    if any(place.lake.iterdir()):
        return False
    place.hold()
    unfinished.touch()
    (config,) = (each for each in declared_datasets() if each.name == _DATASET)
    with dg.DagsterInstance.get() as instance:
        _History(place, config, CodeLocation(definitions_on(ThreadRunner()), instance), flights).make()
    unfinished.unlink()
    return True


@dataclass(frozen=True)
class _History:
    """What happens to the dataset, in order."""

    place: DemoPlace
    config: DatasetConfig
    location: CodeLocation
    flights: pa.Table

    def make(self) -> None:
        on_time = [day for day in _DAYS if day not in (_LATE, _FOREIGN)]
        backlog, daily = on_time[:4], on_time[4:]
        for landed in (backlog, *([day] for day in daily)):
            self._land(landed)
        self._land([_LATE], days_late=len(_DAYS))
        self._append_as_another_writer()
        self._run(Reindex())
        cancelled = DeleteRows(predicate="dep_time IS NULL", reason="cancelled flights are not kept")
        self._run(cancelled, dry_run=True)
        self._run(cancelled)
        self._run(Compact())
        self._run(Erase(predicate=f"tailnum = '{_ERASED}'", reason="erasure request 17"))
        self.location.run(self._names.of("checks"))

    @property
    def _names(self) -> DatasetNames:
        return DatasetNames(_DATASET)

    def _land(self, days: Sequence[date], days_late: int = 0) -> None:
        land_days(self.flights, days, self.place.landing / _DATASET, days_late)
        self.location.tick(self._names.of("raw_files"))

    def _append_as_another_writer(self) -> None:
        """Commit past Dagster, and let the version sensor record it without its usual wait for the run of a commit."""
        rows = flights_of(self.flights, _FOREIGN)
        write_dataset(rows, str(self.place.lake / f"{_DATASET}.lance"), mode="append")
        sensor = build_version_sensor(self.config, grace=timedelta(0))
        CodeLocation(dg.Definitions(sensors=[sensor]), self.location.instance).tick(sensor.name)

    def _run(self, verb: Verb, *, dry_run: bool = False) -> None:
        self.location.run(self._names.of(verb.name), {verb.name: launch(verb, dry_run=dry_run)})


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the history if there is none, and say so."""
    parser = argparse.ArgumentParser(prog="python -m jobs.history", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=DEFAULT_ROOT, help="the demo's folder (default: %(default)s)")
    place = DemoPlace(parser.parse_args(arguments).root.resolve())
    place.prepare()
    if seed(place, read_flights()):
        print(f"{place.root} has a few days of flights to look at; `make run` replaces them by a year.")


if __name__ == "__main__":
    main()
