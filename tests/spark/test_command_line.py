"""Every command that has the option `--spark` runs tasks on Spark's workers, and does what it does in threads."""

from __future__ import annotations

import json
import logging
import shlex
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import typer
from py4j.clientserver import ClientServerConnection
from typer.testing import CliRunner

from lance_ops.api import LanceDataset, dataset
from lance_ops.cli import app, extras
from lance_ops.cli.extras import spark_master
from lance_ops.spark import OnSpark
from tests.spark.recorded_jobs import RecordedJobs
from tests.verbs.examples import EXAMPLES, Example
from tests.verbs.living import expected_after, found_after

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Line:
    """A line in which `{uri}` stands for a table, and `{folder}` for the folder with it and with files.

    Descriptions of Spark's jobs that begin with each of `begun` must be among those of the command.
    """

    words: str
    begun: tuple[str, ...] = ()
    prepare: Callable[[LanceDataset], object] = lambda _: None


def owe_a_compaction(data: LanceDataset) -> None:
    for row in range(40):
        data.insert(pa.table({"x": [100 + row], "s": ["new"]}))


OTHERS = {
    "count": [Line("count {uri} 'x > 2'", ("count rows of",))],
    "statistics": [Line("statistics {uri}")],
    "duplicates": [Line("duplicates {uri} --on s")],
    "fleet": [Line("fleet {folder} --verify-after 1d")],
    "upkeep": [Line("upkeep {uri}", ("compact",), owe_a_compaction)],
    "plan": [Line("plan {uri} delete_rows predicate='x < 3' reason=r", ("count rows of",))],
    "execute": [Line("execute {uri} {folder}/plan.json", ("delete",))],
    "delete": [Line("delete {uri} --keys {folder}/keys.lance --on x --dry-run", ("count matches (join) in",))],
    "erase": [Line("erase {uri} --keys {folder}/keys.parquet --on x --reason r --dry-run", ("read keys for",))],
    "merge": [Line("merge {uri} {folder}/more.parquet --on x --dry-run", ("ingest into", "count matches (keys) in"))],
}
"""By command, lines besides those of the examples of the verbs."""

WITHOUT_TASKS = {"drop an index", "restore", "restore a tag"}
"""Examples of commands with the option that need no task."""


def commands_on_spark() -> dict[str, Any]:
    """Return the commands that have the option, by their words."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name, each in getattr(command, "commands", {}).items():
            yield from walk(each, (*words, name))
        if any("--spark" in parameter.opts for parameter in command.params):
            yield " ".join(words), command

    return dict(walk(typer.main.get_command(app), ()))


def command_of(line: str) -> str:
    words = shlex.split(line)
    return words[0] if words[0] not in ("tags", "branches") else " ".join(words[:2])


ON_SPARK = commands_on_spark()
OF_EXAMPLES = [each for each in EXAMPLES if command_of(each.command) in ON_SPARK and each.title not in WITHOUT_TASKS]


@pytest.fixture
def seen(jobs: RecordedJobs, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> RecordedJobs:
    """Let commands give small work to the shared session, too, and record the jobs that ran there."""
    monkeypatch.setattr(spark_master, "OnSpark", partial(OnSpark, least_bytes=0))
    return jobs


def done(words: list[str]) -> Any:
    result = CliRunner().invoke(app, [*words, "--spark", "local[2]", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_command_with_the_option_is_tried_here() -> None:
    tried = {command_of(each.command) for each in OF_EXAMPLES} | OTHERS.keys()
    assert tried == ON_SPARK.keys()


@pytest.mark.parametrize("example", OF_EXAMPLES, ids=lambda example: example.title)
def test_a_command_that_changes_rows_runs_its_tasks_on_the_workers(
    example: Example, dataset_uri: str, tmp_path: Path, seen: RecordedJobs
) -> None:
    version = example.begin(dataset_uri, tmp_path).version
    done(example.words(dataset_uri, str(tmp_path)))
    assert seen.descriptions, "no task ran on Spark"
    newest = dataset(dataset_uri)
    assert (newest.version, newest.count_rows()) == (version + example.num_commits, example.num_rows)
    assert found_after(dataset_uri, tmp_path) == expected_after(example)


@pytest.mark.parametrize("line", [line for lines in OTHERS.values() for line in lines], ids=lambda line: line.words)
def test_other_commands_run_their_tasks_on_the_workers(
    line: Line, dataset_uri: str, tmp_path: Path, seen: RecordedJobs
) -> None:
    line.prepare(EXAMPLES[0].begin(dataset_uri, tmp_path))
    planned = ("plan", dataset_uri, "delete_rows", "predicate=x < 3", "reason=r", "--save", str(tmp_path / "plan.json"))
    assert CliRunner().invoke(app, planned).exit_code == 0
    assert done([word.format(uri=dataset_uri, folder=tmp_path) for word in shlex.split(line.words)])
    assert seen.descriptions, "no task ran on Spark"
    for begun in line.begun:
        assert any(each.startswith(begun) for each in seen.descriptions), seen.descriptions


def test_an_interrupted_command_says_so_in_one_line_without_what_py4j_logs(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, dataset_uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    send, caller = ClientServerConnection.send_command, threading.current_thread()

    def interrupted(self: ClientServerConnection, command: str) -> Any:
        if threading.current_thread() is caller:  # other threads of PySpark go on
            raise KeyboardInterrupt
        return send(self, command)

    EXAMPLES[0].begin(dataset_uri, Path(dataset_uri).parent)
    start = spark_master.start_spark

    def start_and_interrupt(master: str, on_progress: Any) -> OnSpark:
        runner = start(master, on_progress)
        monkeypatch.setattr(ClientServerConnection, "send_command", interrupted)
        assert isinstance(runner, OnSpark)
        return runner

    monkeypatch.setattr(extras, "start_spark", start_and_interrupt)
    monkeypatch.setattr(spark_master, "OnSpark", partial(OnSpark, least_bytes=0))
    result = CliRunner().invoke(app, ["count", dataset_uri, "x > 2", "--spark", "local[2]"])
    monkeypatch.undo()
    assert (result.exit_code, result.stderr) == (130, "interrupted: versions that were committed before stay\n")
    logging.getLogger().warning("another's")
    assert [record.getMessage() for record in caplog.records if record.name == "root"] == ["another's"]


def test_a_command_starts_spark_without_its_warning_of_pandas_and_with_all_others(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    told = ["PySpark does not yet fully support pandas >= 3.0.0. Some features may not work correctly."]

    def start(name: str, *, master: str) -> SparkSession:
        for text in told:
            warnings.warn(text, FutureWarning, stacklevel=2)
        return spark

    monkeypatch.setattr(spark_master, "get_or_create", start)
    assert isinstance(spark_master.start_spark("local[1]", None), OnSpark)
    told.append("Java 17 is deprecated.")
    with pytest.raises(FutureWarning, match="Java 17"):
        spark_master.start_spark("local[1]", None)
