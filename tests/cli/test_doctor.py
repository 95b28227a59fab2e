"""`lance-ops doctor` finds what is planted: a store that ignores conditions, a wrong clock, a bare instance."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import lance_ops
from lance_ops.cli import app
from lance_ops.cli.doctor.diagnosis import Diagnosis, Verdict
from lance_ops.cli.doctor.spark_runtime import examine_spark
from lance_ops.cli.doctor.table_store import examine_root
from lance_ops.committers import DatasetRoot, PutIfAbsentCommitter
from lance_ops.core.errors import ConfigError
from lance_ops.dagster.instances import instance_file
from lance_ops.store import BytesLike, Fault, FaultyStore, MemoryStore, PutOutcome, Store


class Promising(MemoryStore):
    """A store that takes every conditional create for the first one."""

    @property
    def needs_proof(self) -> bool:
        return True

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        self.put(path, data)
        return PutOutcome.CREATED


class Late(MemoryStore):
    """A store whose clock is behind."""

    behind = timedelta(0)

    def now(self) -> datetime:
        return super().now() - self.behind


def examined(*arguments: str, exit_code: int = 0) -> dict[str, dict[str, Any]]:
    result = CliRunner().invoke(app, ["doctor", *arguments, "--json"])
    assert result.exit_code == exit_code, result.output
    return {finding["subject"]: finding for finding in json.loads(result.stdout)}


def findings_of(store: Store) -> dict[str, Diagnosis]:
    root = DatasetRoot(store, PutIfAbsentCommitter(store), {})
    return {finding.subject: finding for finding in examine_root(root)}


def test_a_place_where_a_dataset_can_begin_is_left_as_it_was(tmp_path: Path) -> None:
    found = examined(str(tmp_path / "new.lance"))
    assert {found[subject]["verdict"] for subject in ("lance-ops", "dataset", "writing", "clock", "commits")} == {"ok"}
    assert found["lance-ops"]["what"].startswith(lance_ops.__version__)
    assert found["dataset"]["what"].endswith("there is no dataset yet")
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_is_found_and_nothing_is_added_to_it(flights: str) -> None:
    before = sorted(Path(flights).rglob("*"))
    assert examined(flights)["dataset"]["what"].endswith("version 1")
    assert sorted(Path(flights).rglob("*")) == before


def test_people_see_each_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    result = CliRunner().invoke(app, ["doctor", str(tmp_path / "t.lance")])
    assert result.exit_code == 0
    assert "dagster: set it before you start Dagster's daemon" in result.stdout


def test_a_store_that_ignores_conditions_fails() -> None:
    found = findings_of(Promising())["commits"]
    assert found.verdict is Verdict.FAIL
    assert "created the same key twice" in found.what and "manifest store" in found.remedy


@pytest.mark.parametrize(
    ("behind", "verdict"),
    [
        (timedelta(seconds=1), Verdict.OK),
        (timedelta(minutes=2), Verdict.WARN),
        (timedelta(minutes=-2), Verdict.WARN),
        (timedelta(hours=1), Verdict.FAIL),
    ],
)
def test_clocks_that_differ_are_named(behind: timedelta, verdict: Verdict) -> None:
    store = Late()
    store.behind = behind
    found = findings_of(store)["clock"]
    assert found.verdict is verdict
    assert bool(found.remedy) is (verdict is not Verdict.OK)


def test_a_store_that_may_only_be_read_fails_and_no_commit_is_tried() -> None:
    store = FaultyStore(MemoryStore(), Fault("put", call=None))
    found = findings_of(store)
    assert found["writing"].verdict is Verdict.FAIL and "--read-only" in found["writing"].remedy
    assert "commits" not in found


def test_readers_do_not_need_to_write(flights: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(flights).rglob("*")}
    found = examined(flights, "--read-only")
    assert found["dataset"]["verdict"] == "ok" and not {"writing", "clock", "commits"} & found.keys()
    assert {path: path.stat().st_mtime_ns for path in Path(flights).rglob("*")} == before


def test_a_newest_version_that_does_not_open_fails_and_the_remedy_mends_it(flights: str) -> None:
    (manifest,) = Path(flights, "_versions").glob("*.manifest")
    manifest.write_bytes(b"garbage")
    found = examined(flights, exit_code=1)
    assert found["dataset"]["verdict"] == "fail" and manifest.name in found["dataset"]["what"]
    assert "lance-ops repair" in found["dataset"]["remedy"]
    assert found["writing"]["verdict"] == "ok", "the store itself is examined all the same"


@pytest.mark.dagster
def test_an_instance_is_told_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert [
        line.partition(":")[2].split()[1] for line in result.stdout.splitlines() if line.startswith("dagster: set")
    ] == [
        "run_monitoring:",
        "run_launcher:",
        "run_retries:",
        "concurrency:",
    ]
    (tmp_path / "dagster.yaml").write_text(instance_file("laptop"))
    found = examined()["dagster"]
    assert (found["verdict"], found["remedy"]) == ("ok", "")


@pytest.mark.dagster
def test_an_instance_that_does_not_open_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dagster.yaml").write_text("run_storage: nowhere\n")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    found = examined(exit_code=1)["dagster"]
    assert found["verdict"] == "fail" and "run_storage" in found["what"]


@pytest.mark.spark
def test_a_machine_without_java_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_java() -> Path:
        raise ConfigError("Spark needs Java 17 or newer and none was found: PATH. Install one")

    monkeypatch.setattr("lance_ops.cli.doctor.spark_runtime.find_java", find_java)
    (found,) = examine_spark()
    assert (found.verdict, found.remedy) == (Verdict.FAIL, "Install one")


@pytest.fixture
def flights(dataset_uri: str) -> str:
    lance_ops.write_dataset({"x": [1, 2]}, dataset_uri)
    return dataset_uri
