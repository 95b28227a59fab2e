"""A code location as a deployment has it, whose runs die or wait in mid-work where a test's files say so.

A test gives it a folder. What the test writes there, another process reads:

    launch/<name>.json    {"job": …, "ops": …}: the sensor `launchpad` launches the job once, as a person does
    doom/<job>            the next run of the job kills its process at this request to the store, or `AFTER_COMMIT`
    hold/<verb>           tasks of the verb wait where the first of them is done, until their run is interrupted
    at_once/<job>         a run of the job waits before its tasks begin, until every job that has a file here does

Each file of the last three is renamed, to `<name>.met`, when a run comes to it.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import dagster as dg
from pydantic import PrivateAttr

from lance_ops.dagster import definitions as declared
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.landing import batches
from lance_ops.dagster.runners import RUNNER_KEY, ThreadRunner
from lance_ops.runners import InThreads, JobProgress, ReportProgress, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store.local import LocalStore
from lance_ops.store.remote import FsspecStore

__all__ = ["AFTER_COMMIT", "Orders", "mortal_definitions", "write_location"]

AFTER_COMMIT = "after commit"
"""The moment when a run that ingests has committed, and has not recorded its version."""
_GRACE = timedelta(seconds=5)
"""The watcher leaves a version to its run for so long."""


class Orders:
    """What a test asks of the runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def launch(self, name: str, job: str, ops: Mapping[str, Any] | None = None) -> None:
        """Launch a job once under this name."""
        self._write("launch", f"{name}.json", json.dumps({"job": job, "ops": dict(ops or {})}))

    def doom(self, job: str, moment: int | str) -> None:
        """Kill the next run of a job."""
        self._write("doom", job, str(moment))

    def hold(self, verb: str) -> None:
        """Let tasks of a verb wait in mid-work."""
        self._write("hold", verb, "")

    def meet(self, *jobs: str) -> None:
        """Let the runs of these jobs begin their tasks when all of them are there."""
        for job in jobs:
            self._write("at_once", job, "")

    def are_met(self, *places: str) -> bool:
        """Return whether runs have come to these files, such as `doom/trips_ingest`."""
        return all(_met(self.folder / place).exists() for place in places)

    def forget(self, place: str) -> None:
        """Forget that a run came to a file, so that it can be written again."""
        _met(self.folder / place).unlink()

    def _write(self, what: str, name: str, text: str) -> None:
        path = self.folder / what / name
        path.parent.mkdir(exist_ok=True, parents=True)
        waiting = path.with_name(f".{name}")
        waiting.write_text(text)
        waiting.rename(path)


def write_location(path: Path, orders: Orders, *configs: DatasetConfig, interval_seconds: int = 2) -> Path:
    """Write the file of a code location with `mortal_definitions`; return its path."""
    path.write_text(
        "from pathlib import Path\n"
        "from lance_ops.dagster.declaration import DatasetConfig\n"
        "from tests.dagster.mortal_location import Orders, mortal_definitions\n"
        f"texts = {[config.model_dump_json() for config in configs]!r}\n"
        "configs = [DatasetConfig.model_validate_json(text) for text in texts]\n"
        f"defs = mortal_definitions(configs, Orders(Path({str(orders.folder)!r})), {interval_seconds})\n"
    )
    return path


def mortal_definitions(configs: Sequence[DatasetConfig], orders: Orders, interval_seconds: int) -> dg.Definitions:
    """Return what `build_definitions` returns, with sensors that tick often, mortal runs, and a launchpad."""
    with _sensors_every(interval_seconds):
        built = dg.Definitions.merge(*map(declared.build_definitions, configs))
        own = dg.Definitions(
            sensors=[_launchpad(orders, list(built.jobs or ()))],
            resources={RUNNER_KEY: MortalRunner(folder=str(orders.folder))},
            executor=dg.in_process_executor,
        )
    return dg.Definitions.merge(built, own)


class MortalRunner(ThreadRunner):
    """Runs tasks in two threads, as the test's files say."""

    folder: str
    _job: str = PrivateAttr("")

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Read what is to become of this run."""
        assert context.run is not None
        self._job = context.run.job_name
        doom = Path(self.folder) / "doom" / self._job
        if doom.exists():
            _die_at(doom.read_text(), lambda: _die(doom))

    def runner(self, on_progress: ReportProgress | None = None) -> Runner:
        """Return the runner, when the jobs that this one waits for are there."""
        _meet(Path(self.folder) / "at_once", self._job)
        return InThreads(2, partial(_hold, Path(self.folder) / "hold"))


def _die(doom: Path) -> None:
    """Kill this process, unless another run of the job has died of the same order: both may have read it."""
    with suppress(FileNotFoundError):
        doom.rename(_met(doom))
        os.kill(os.getpid(), signal.SIGKILL)


def _die_at(moment: str, die: Callable[[], None]) -> None:
    """Let this process die at a request to an object store, at a write of a local one, or after its commit."""
    if moment == AFTER_COMMIT:
        report: Callable[..., tuple[int, ...]] = vars(batches)["report_versions"]

        def mortal_report(
            context: dg.AssetExecutionContext, config: DatasetConfig, newest: Snapshot, before: int, started: datetime
        ) -> tuple[int, ...]:
            if newest.version > before:
                die()
            return report(context, config, newest, before, started)

        mock.patch.object(batches, "report_versions", mortal_report).start()
        return
    requests = itertools.count(1)

    def count() -> None:
        if next(requests) == int(moment):
            die()

    for store, method in (
        (FsspecStore, "_connected"),
        (LocalStore, "open_writer"),
        (LocalStore, "put_if_absent_with_callbacks"),
    ):
        setattr(store, method, _calling_first(count, getattr(store, method)))


def _calling_first(first: Callable[[], None], method: Callable[..., Any]) -> Callable[..., Any]:
    def called(*given: Any, **named: Any) -> Any:
        first()
        return method(*given, **named)

    return called


def _hold(folder: Path, progress: JobProgress) -> None:
    place = folder / (progress.job.verb if progress.job is not None else "")
    if place.is_file():
        place.rename(_met(place))
        threading.Event().wait()  # the thread that waits is the one that is interrupted


def _meet(folder: Path, job: str) -> None:
    place = folder / job
    if place.exists():
        place.rename(_met(place))
    while any(each.suffix != ".met" for each in folder.glob("*")):
        time.sleep(0.1)


def _met(place: Path) -> Path:
    return place.with_name(f"{place.name}.met")


def _launchpad(orders: Orders, jobs: list[Any]) -> dg.SensorDefinition:
    @dg.sensor(name="launchpad", jobs=jobs, default_status=dg.DefaultSensorStatus.RUNNING)
    def launchpad() -> Iterator[dg.RunRequest]:
        for path in sorted((orders.folder / "launch").glob("*.json")):
            asked = json.loads(path.read_text())
            yield dg.RunRequest(run_key=path.stem, job_name=asked["job"], run_config={"ops": asked["ops"]})

    return launchpad


@contextmanager
def _sensors_every(seconds: int) -> Iterator[None]:
    def often(declare: Any) -> Any:
        return lambda **given: declare(**{**given, "minimum_interval_seconds": seconds})

    version_sensor = partial(vars(declared)["build_version_sensor"], grace=_GRACE)
    with (
        mock.patch.object(dg, "sensor", often(dg.sensor)),
        mock.patch.object(dg, "run_status_sensor", often(dg.run_status_sensor)),
        mock.patch.object(declared, "build_version_sensor", version_sensor),
    ):
        yield
