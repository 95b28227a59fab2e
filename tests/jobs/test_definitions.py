from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster_cloud_cli.config.models import load_dagster_cloud_yaml

from assets.definitions import declared_datasets
from jobs.definitions import definitions

pytestmark = pytest.mark.dagster

REPOSITORY = Path(__file__).parents[2]


def test_the_code_location_loads() -> None:
    loaded = definitions()
    dg.Definitions.validate_loadable(loaded)
    repository = loaded.get_repository_def()
    assert {job for job in repository.job_names if job.startswith("flights_")} == {
        "flights_add_columns",
        "flights_branch",
        "flights_checks",
        "flights_cleanup",
        "flights_clone",
        "flights_compact",
        "flights_count",
        "flights_delete_duplicates",
        "flights_delete_rows",
        "flights_drop_index",
        "flights_duplicates",
        "flights_erase",
        "flights_ingest",
        "flights_ingest_files",
        "flights_maintenance",
        "flights_migrate",
        "flights_reindex",
        "flights_repair",
        "flights_restore",
        "flights_statistics",
        "flights_tag",
        "flights_update",
        "flights_upkeep",
        "flights_upsert",
        "flights_verify",
    }
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "flights_backfills",
        "flights_freshness",
        "flights_raw_files",
        "flights_settled",
        "flights_versions",
    }
    assert [schedule.name for schedule in repository.schedule_defs] == ["flights_maintenance_schedule"]


def test_the_declared_flights_are_keyed_by_day() -> None:
    (flights,) = declared_datasets()
    assert flights.name == "flights"
    assert flights.table({"LANCE_OPS_LAKE": "s3://lake"}).uri == "s3://lake/flights.lance"


def test_dagsters_own_tool_accepts_the_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-m", "jobs.definitions"]
    environment = {"DAGSTER_HOME": str(tmp_path), "DAGSTER_DISABLE_TELEMETRY": "1", "PATH": "/usr/bin:/bin"}
    checked = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "Validation successful" in checked.stdout + checked.stderr


def test_dagster_cloud_accepts_its_file_and_the_module_it_names_is_there() -> None:
    configured = load_dagster_cloud_yaml((REPOSITORY / "dagster_cloud.yaml").read_text())
    (location,) = configured.locations
    assert location.code_source is not None
    assert location.code_source.module_name == definitions.load_fn.__module__  # type: ignore[attr-defined]  # a function
