"""Runs that an operator removes, as the handbook says, leave nothing to ingest again and nothing to tell again."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.dagster.alert_receiver import Receiver
from tests.dagster.deployment import LANDED, Deploy, Deployment, check_results
from tests.dagster.test_late_repairs import days_later, land_junk, state

pytestmark = pytest.mark.dagster

HANDBOOK = Path(__file__).parents[2] / "docs" / "operations.md"
SENSORS = ("raw_files", "versions", "freshness", "settled", "backfills", "alerts_webhook")


def remove_old_runs(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the handbook's lines, for runs of any age."""
    section = HANDBOOK.read_text().partition("\n## Old records\n")[2].partition("\n## ")[0]
    (lines,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert "days=90" in lines
    monkeypatch.setenv("DAGSTER_HOME", deployment.instance.root_directory)
    exec(lines.replace("days=90", "days=-1"), {})


def tick_all(deployment: Deployment) -> list[object]:
    """Evaluate each sensor once; return the runs that they asked for, and the events that they recorded."""
    ticked = [deployment.tick(sensor, raise_on_error=False) for sensor in SENSORS]
    return [found for each in ticked for found in (*each.runs, *each.events)]


@pytest.fixture
def watched(deploy: Deploy, receiver: Receiver) -> Deployment:
    """A dataset whose batches were ingested, changed and set aside. Maintenance has run, and all alerts are sent."""
    deployment = deploy(
        raw={"key": r"^(?P<key>[a-z]+)\.parquet$"},
        health={"hours_without_version": 24},
        alerts=[{"webhook": {"url": "${ALERT_URL}"}}],
    )
    tick_all(deployment)
    for key in ("a", "b"):
        deployment.land(key, range(3))
    land_junk(deployment, "bad")
    (deployment.landing / "README.parquet").write_bytes(b"x")
    os.utime(deployment.landing / "README.parquet", (LANDED, LANDED))
    deployment.tick(raise_on_error=False)
    deployment.land("b", range(5))
    tick_all(deployment)
    deployment.run("maintenance")
    tick_all(deployment)
    assert receiver.take()
    return deployment


def test_runs_that_are_removed_change_no_state_and_tell_nothing_again(
    watched: Deployment, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {key: state(watched, key) for key in ("a", "b", "bad")}
    assert [found for found, _ in before.values()] == ["ingested", "changed", "quarantined"]
    rows, version = watched.data.count_rows(), watched.data.version
    remove_old_runs(watched, monkeypatch)
    assert watched.instance.get_runs() == []
    for day in (1, 40):
        days_later(monkeypatch, day)
        assert tick_all(watched) == []
        assert {key: state(watched, key) for key in before} == before
    assert (watched.data.count_rows(), watched.data.version) == (rows, version)
    found = check_results(watched.location.run(watched.names.of("checks"), raise_on_error=False))
    red = {name for name, each in found.items() if not each.passed}
    assert red == {"batches_settled", "landing_readable"}
    tick_all(watched)
    assert receiver.take() == []


def test_the_files_of_removed_runs_go_from_the_disk(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    (run,) = deployment.instance.get_runs()
    home = Path(deployment.instance.root_directory)
    events, logs = home / "history" / "runs" / f"{run.run_id}.db", home / "storage" / run.run_id / "a.err"
    for file in (events, logs):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    remove_old_runs(deployment, monkeypatch)
    assert not events.exists() and not logs.parent.exists() and not deployment.instance.get_runs()
