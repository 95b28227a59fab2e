"""Sensors of a damaged table skip their ticks in words, and go on when the table opens again."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from lance_ops.dagster.head import checks
from lance_ops.dagster.landing import batch_report
from lance_ops.errors import CorruptFile
from tests.dagster.deployment import Deploy, Deployment

pytestmark = pytest.mark.dagster

_SENSORS = ("raw_files", "debt", "freshness", "settled", "versions")


def sound(deploy: Deploy) -> Deployment:
    """Make a dataset with a batch, whose sensors have not ticked since."""
    deployment = deploy(health={"hours_without_version": 24}, maintenance={"upkeep": {"interval_seconds": 1}})
    deployment.land("a", range(3))
    deployment.tick()
    deployment.location.cursors.clear()
    return deployment


@pytest.fixture
def damaged(deploy: Deploy) -> Deployment:
    """A dataset with a batch, whose newest manifest is damaged."""
    deployment = sound(deploy)
    manifest_of(deployment).write_bytes(b"garbage")
    return deployment


def manifest_of(deployment: Deployment) -> Path:
    return max(Path(deployment.config.uri, "_versions").glob("*.manifest"))


@pytest.mark.parametrize("sensor", _SENSORS)
def test_a_sensor_of_a_damaged_table_skips_and_names_the_table_and_the_remedy(damaged: Deployment, sensor: str) -> None:
    message = damaged.tick(sensor).skip_message or ""
    assert damaged.config.name in message
    assert manifest_of(damaged).name in message
    assert "run trips_verify, which names every damage, then trips_repair" in message
    assert "\n" not in message


@pytest.mark.parametrize("sensor", _SENSORS)
def test_a_sensor_goes_on_when_the_table_opens_again(deploy: Deploy, sensor: str) -> None:
    deployment = sound(deploy)
    intact = manifest_of(deployment).read_bytes()
    manifest_of(deployment).write_bytes(b"garbage")
    assert "trips_repair" in (deployment.tick(sensor).skip_message or "")
    manifest_of(deployment).write_bytes(intact)
    assert "trips_repair" not in (deployment.tick(sensor, raise_on_error=False).skip_message or "")


def test_a_damaged_table_does_not_hide_what_the_landing_folder_sets_aside(damaged: Deployment) -> None:
    (damaged.landing / "link.parquet").symlink_to("nowhere")
    ticked = damaged.tick("settled")
    (told,) = (event for event in ticked.events if isinstance(event, dg.AssetCheckEvaluation))
    assert told.check_name == "landing_readable" and "link.parquet" in (told.description or "")
    again = damaged.tick("settled")
    assert again.events == () and "trips_repair" in (again.skip_message or "")


def test_the_checks_of_batches_and_of_freshness_warn_for_a_damaged_table(damaged: Deployment) -> None:
    found = damaged.check()
    for name in ("batches_settled", "fresh"):
        assert not found[name].passed and found[name].severity is dg.AssetCheckSeverity.WARN
        assert manifest_of(damaged).name in (found[name].description or "")


def test_a_damage_that_the_newest_version_does_not_show_fails_the_tick_and_turns_a_check_red(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise CorruptFile("ledger.json", "batches", "are no batch events")

    deployment = sound(deploy)
    deployment.land("b", range(3))
    monkeypatch.setattr(batch_report, "batch_history", fail)
    monkeypatch.setattr(checks, "ingested_batches", fail)
    with pytest.raises((CorruptFile, dg.DagsterError)):
        deployment.tick("raw_files")
    red = deployment.check()["batches_exactly_once"]
    assert not red.passed and red.severity is dg.AssetCheckSeverity.ERROR
    assert "ledger.json" in (red.description or "") and "trips_repair" in (red.description or "")


def test_a_tick_that_reports_a_check_says_what_it_reported(deploy: Deploy) -> None:
    deployment = deploy(health={"hours_without_version": 24})
    deployment.land("a", range(3))
    told = deployment.tick("settled")
    assert len(told.events) == 2 and told.skip_message == "reported: no batch needs somebody; no file is set aside"
    assert (deployment.tick("settled").skip_message or "").startswith("as before: ")
    told = deployment.tick("freshness")
    assert len(told.events) == 1 and (told.skip_message or "").startswith("reported as green: there is no version yet")
    assert (deployment.tick("freshness").skip_message or "").startswith("still green: ")
