"""Files that Spark tasks write carry checksums, and Spark tasks verify what they read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lance_ops
from lance_ops import LanceDataset
from lance_ops.cli import app
from lance_ops.core.errors import ChecksumMismatch
from lance_ops.maintenance.verification import VerificationOptions, execute, plan_verification
from lance_ops.spark import OnSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def without_checksums(opened: LanceDataset) -> tuple[str, ...]:
    """Return the files of the newest version that no checksum covers, after verifying all of them."""
    report = opened.verify()
    assert report.ok, str(report)
    assert len([path for path in report.files_with_checksums if path.endswith(".lance")]) >= len(opened.get_fragments())
    return tuple(path for path in report.files_without_checksums if "_transactions" not in path)


def flip(opened: LanceDataset, fragment: int) -> str:
    """Flip a bit in the first page of a fragment's file; return the file's name."""
    name = opened.snapshot.fragments[fragment].files[0].path
    path = Path(opened.uri, "data", name)
    data = bytearray(path.read_bytes())
    data[3] ^= 4
    path.write_bytes(data)
    return name


@pytest.fixture
def spread(dataset_uri: str) -> LanceDataset:
    """A table of six fragments, with stable row ids and an index."""
    rows = pa.table({"x": range(600), "text": [f"text {i}" for i in range(600)]})
    made = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=100, enable_stable_row_ids=True)
    made.create_scalar_index("x", "BTREE")
    return lance_ops.dataset(dataset_uri)


def test_a_table_that_spark_wrote_has_checksums(spark: SparkSession, dataset_uri: str) -> None:
    spark.range(1000).repartition(3).write.format("lance").mode("append").save(dataset_uri)
    assert without_checksums(lance_ops.dataset(dataset_uri)) == ()


def test_updates_and_compactions_on_spark_write_checksums(tasks: OnSpark, spread: LanceDataset) -> None:
    spread.update({"text": "'new'"}, "x % 50 = 0", runner=tasks)
    spread.delete("x % 7 = 0", runner=tasks)
    assert without_checksums(spread) == ()
    assert spread.optimize.compact_files(runner=tasks).fragments_removed > 1
    assert without_checksums(spread) == ()


def test_tasks_on_spark_refuse_a_changed_page_and_commit_nothing(tasks: OnSpark, spread: LanceDataset) -> None:
    name = flip(spread, 2)
    damaged = lance_ops.dataset(spread.uri)
    for verb in (
        lambda: damaged.optimize.compact_files(runner=tasks),
        lambda: damaged.update({"text": "'new'"}, "x = 205", runner=tasks),
    ):
        with pytest.raises(ChecksumMismatch, match=name):
            verb()
    assert lance_ops.dataset(spread.uri).version == spread.version


def test_a_verification_on_spark_finds_what_one_in_threads_finds(tasks: OnSpark, spread: LanceDataset) -> None:
    flip(spread, 4)
    small = VerificationOptions(max_fragments_per_task=2, max_row_id_runs_per_task=1)
    planned = plan_verification(spread.snapshot, small).tasks
    assert len(planned) > 6
    assert tasks.map(execute, planned) == [execute(task) for task in planned]
    report = spread.verify(runner=tasks)
    assert (report.damaged_fragments, report) == ((4,), spread.verify())


def test_commands_run_their_tasks_on_spark(
    spark: SparkSession, spread: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    real = OnSpark.map

    def counted(self: OnSpark, function: object, tasks: object, *others: object) -> list[object]:
        sent.append(len(tasks))  # type: ignore[arg-type]
        return real(self, function, tasks, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(OnSpark, "map", counted)

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, [*arguments, "--spark", "local[2]"])
        return result.exit_code, result.output

    assert run("verify", spread.uri)[0] == 0
    assert run("delete", spread.uri, "x < 10")[0] == 0
    assert run("compact", spread.uri)[0] == 0
    assert len(sent) >= 3 and all(sent)
    flip(lance_ops.dataset(spread.uri), 0)
    code, output = run("repair", spread.uri, "--dry-run")
    assert (code, "would restore version" in output) == (0, True), output
    assert len(sent) >= 4
    code, output = run("compact", spread.uri, "--threads", "2")
    assert code == 2 and "not in both" in output
