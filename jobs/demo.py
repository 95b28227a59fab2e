"""Run the demo: take raw files to a maintained Lance dataset, by the definitions that a deployment runs.

    python -m jobs.demo [--root FOLDER] [--fresh]

The demo lands real data, evaluates the raw-file sensor, launches the requested runs on Spark in local mode, and runs
the dataset's jobs. Then it proves the result, and ends with an error if a proof fails.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from jobs.definitions import definitions
from jobs.flights import days_of, land_days, read_flights
from jobs.instance import DEFAULT_ROOT, DemoPlace
from jobs.proofs import Expected, Proof, prove
from lance_ops.core.errors import LanceOpsError
from lance_ops.dagster import CodeLocation, Ticked, size_text
from lance_ops.dagster.declaration import DatasetNames
from lance_ops.dagster.ops import launch
from lance_ops.verbs import Cleanup, Compact, DeleteRows, Reindex, Tag

__all__ = ["Demo", "main"]

_NAMES = DatasetNames("flights")
_SENSOR = _NAMES.of("raw_files")
_ERASED = "N725MQ"
_ASKED = "N14228"
_TAG = "before-erasure"


class DemoFailed(Exception):
    """A step cannot be taken, or had another outcome than expected."""


@dataclass
class Demo:
    """The main job on one folder."""

    place: DemoPlace
    location: CodeLocation
    console: Console
    flights: pa.Table
    started: float = field(default_factory=time.monotonic)

    @property
    def landing(self) -> Path:
        """Where the flights' raw files land."""
        return self.place.landing / "flights"

    @property
    def uri(self) -> str:
        """Where the dataset is."""
        return str(self.place.lake / "flights.lance")

    def run(self) -> bool:
        """Take the six steps; return whether every proof holds."""
        *backlog, late, later = days_of(self.flights)
        with self._step(f"1  {len(backlog)} days land; the sensor asks for them as one run"):
            size = land_days(self.flights, backlog, self.landing)
            self._say(f"{len(backlog)} raw files, {size_text(size)}")
            self._ingest(num_partitions=len(backlog))
        with self._step("2  a later day arrives, and is delivered twice"):
            land_days(self.flights, [late], self.landing)
            self._ingest(num_partitions=1)
            self._replay(str(late))
        with self._step(f"3  the flights of aircraft {_ERASED} are erased"):
            self._job("tag", launch(Tag(tag=_TAG), dry_run=False))
            self._job(
                "delete_rows",
                launch(DeleteRows(predicate=f"tailnum = '{_ERASED}'", reason="erasure request"), dry_run=False),
            )
        with self._step("4  an index is built; compaction remaps it; new rows are indexed"):
            self._job("reindex", launch(Reindex(), dry_run=False))
            self._job("compact", launch(Compact(), dry_run=False))
            land_days(self.flights, [later], self.landing)
            self._ingest(num_partitions=1)
            self._job("reindex", launch(Reindex(), dry_run=False))
        with self._step("5  old versions are cleaned up, first as a dry run"):
            self._job("cleanup", launch(Cleanup(older_than_days=0)))
            self._job("cleanup", launch(Cleanup(older_than_days=0), dry_run=False))
        with self._step("6  what came out"):
            self._check()
        versions = self._recorded_versions()
        self.console.print(_table(versions))
        expected = Expected(
            landing=self.landing,
            arrived_since=f"{later}.parquet",
            erased_tailnum=_ERASED,
            asked_tailnum=_ASKED,
            tag=_TAG,
            index="tailnum_idx",
            recorded_versions=tuple(version["lance/version"] for version in versions),
        )
        proofs = list(prove(self.uri, expected))
        for proof in proofs:
            self._show(proof)
        held = all(proof.held for proof in proofs)
        seconds = time.monotonic() - self.started
        self.console.print(f"{'Every proof held' if held else 'A proof FAILED'}, after {seconds:.0f} s.")
        return held

    def _ingest(self, num_partitions: int) -> None:
        ticked = self.location.tick(_SENSOR)
        if len(ticked.new_partitions) != num_partitions or len(ticked.runs) != 1:
            raise DemoFailed(f"one run over {num_partitions} partitions was due, not {_describe(ticked)}")
        metadata = _output_metadata(ticked.runs[0])
        self._say(
            f"{_describe(ticked)}: {metadata['lance/ingested_rows']:,} rows as version {metadata['lance/version']}"
        )

    def _replay(self, day: str) -> None:
        """Request a day again, once by hand and once as a sensor without a cursor would."""
        result = self.location.run(_NAMES.of("ingest"), tags={"dagster/partition": day})
        if "lance/version" in _output_metadata(result):
            raise DemoFailed(f"replaying {day} made a version")
        self.location.cursors.clear()
        ticked = self.location.tick(_SENSOR)
        if ticked.runs:
            raise DemoFailed(f"the sensor asked again for {_describe(ticked)}")
        self._say(f"{day} again: no version, for its token is in the history; nor does a sensor without cursor ask")

    def _job(self, verb: str, config: dg.Config | None = None) -> None:
        result = self.location.run(_NAMES.of(verb), {verb: config} if config else None)
        done = _output_metadata(result)
        versions = done.pop("lance/new_versions")
        numbers = {name.removeprefix("lance/"): value for name, value in done.items() if type(value) is int and value}
        parts = ["as a dry run"] if done.get("lance/dry_run") else []
        parts += [f"{name.replace('_', ' ')} {value:,}" for name, value in numbers.items()]
        parts += [f"committed as {versions}"] if versions != "none" else []
        self._say(f"{verb}: {', '.join(parts)}")

    def _check(self) -> None:
        result = self.location.run(_NAMES.of("checks"))
        evaluations = result.get_asset_check_evaluations()
        failed = [evaluation.check_name for evaluation in evaluations if not evaluation.passed]
        if failed:
            raise DemoFailed(f"asset checks failed: {', '.join(failed)}")
        self._say(f"{len(evaluations)} asset checks passed")

    def _recorded_versions(self) -> list[dict[str, Any]]:
        """Return every version that Dagster recorded on the head, oldest first. Clean-up has removed most of them."""
        found = self.location.instance.fetch_materializations(dg.AssetRecordsFilter(_NAMES.head), limit=1000)
        events = [record.asset_materialization for record in reversed(found.records) if record.asset_materialization]
        return [_plain(event.metadata) for event in events]

    @contextmanager
    def _step(self, title: str) -> Iterator[None]:
        self.console.print(f"[bold]{title}[/bold]")
        started = time.monotonic()
        yield
        self._say(f"{time.monotonic() - started:.1f} s")

    def _say(self, text: str) -> None:
        self.console.print(f"   {text}", highlight=False, markup=False, soft_wrap=True)

    def _show(self, proof: Proof) -> None:
        mark = "[green]ok[/green]  " if proof.held else "[red]FAIL[/red]"
        self.console.print(f"{mark} ", end="")
        self.console.print(f"{proof.claim}: {proof.found}", highlight=False, markup=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit status: 1 if a proof failed, 2 if it did not get that far."""
    parser = argparse.ArgumentParser(prog="python -m jobs.demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=DEFAULT_ROOT, help="where everything goes (default: %(default)s)")
    parser.add_argument("--fresh", action="store_true", help="remove what an earlier run left there")
    parsed = parser.parse_args(arguments)
    # Spark warns about pandas at start; the demo passes no row through pandas.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    console = Console(width=None if sys.stdout.isatty() else 120)
    place = DemoPlace(parsed.root.resolve())
    try:
        if parsed.fresh:
            place.clear()
        if place.lake.exists() and any(place.lake.iterdir()):
            raise DemoFailed(f"{place.lake} holds the dataset of an earlier run; --fresh starts over")
        place.prepare()
        with dg.DagsterInstance.get() as instance:
            demo = Demo(place, CodeLocation(definitions(), instance), console, read_flights())
            return 0 if demo.run() else 1
    except (DemoFailed, LanceOpsError, dg.DagsterError, dg.Failure) as error:
        console.print(f"{type(error).__name__}: {error}", markup=False, soft_wrap=True)
        return 2


def _table(versions: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(title="flights, version by version", title_justify="left")
    for name in ("version", "operation", "rows", "fragments", "deleted rows", "bytes", "indexed", "seconds"):
        table.add_column(name, justify="left" if name == "operation" else "right")
    for version in versions:
        ratio, seconds = version.get("lance/indexed_ratio"), version.get("lance/seconds")
        table.add_row(
            str(version["lance/version"]),
            version["lance/operation"],
            f"{version['dagster/row_count']:,}",
            str(version["lance/num_fragments"]),
            f"{version['lance/num_deleted_rows']:,}",
            f"{version['lance/size_bytes']:,}",
            "" if ratio is None else f"{ratio:.1%}",
            "" if seconds is None else f"{seconds:.2f}",
        )
    return table


def _describe(ticked: Ticked) -> str:
    return f"{len(ticked.new_partitions)} new partitions, {len(ticked.runs)} run"


def _output_metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """Return the metadata of a run's first materialization of a partition, or of its op's output."""
    for event in result.get_asset_materialization_events():
        if event.asset_key == _NAMES.batches:
            return _plain(event.step_materialization_data.materialization.metadata)
    outputs = [event.step_output_data for event in result.all_events if event.is_successful_output]
    return _plain(outputs[-1].metadata) if outputs else {}


def _plain(metadata: Mapping[str, dg.MetadataValue[Any]]) -> dict[str, Any]:
    return {name: value.value for name, value in metadata.items()}


if __name__ == "__main__":
    sys.exit(main())
