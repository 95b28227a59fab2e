"""Secrets planted in a declared dataset come out of no part of Dagster: events, databases, logs, metadata."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.in_process import CodeLocation
from lance_ops.dagster.runners.runner import RUNNER_KEY, ThreadRunner
from tests.dagster.deployment import Deployment
from tests.security.planted import found_in, found_in_error, found_in_files, plain

pytestmark = pytest.mark.dagster


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of an instance with real databases and logs."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def deploy(folder: Path, instance: dg.DagsterInstance, literal: str, **declared: object) -> Deployment:
    """Declare a dataset whose rows stand in a manifest store; `literal` is an option written without a variable."""
    landing = folder / "landing"
    landing.mkdir(exist_ok=True)
    config = DatasetConfig.model_validate(
        {
            "name": "trips",
            "uri": str(folder / "lake" / "trips.lance"),
            "storage_options": {"manifest_store": "${ROWS}", "aws_secret_access_key": literal},
            "raw": {"uri": str(landing), "glob": "*.parquet", "storage_options": {"password": literal}},
            **declared,
        }
    )
    resources = dg.Definitions(resources={RUNNER_KEY: ThreadRunner()})
    definitions = dg.Definitions.merge(build_definitions(config), resources)
    return Deployment(config, CodeLocation(definitions, instance), landing)


def test_runs_leave_no_secret_behind(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROWS", f"sqlite:///{tmp_path}/{plain('rows')}.db")
    with dg.DagsterInstance.local_temp(str(home), overrides={"telemetry": {"enabled": False}}) as instance:
        deployment = deploy(tmp_path, instance, plain("literal"))
        deployment.land("a", range(3))
        ticked = deployment.tick()
        assert [run.success for run in ticked.runs] == [True]
        assert (tmp_path / f"{plain('rows')}.db").exists()  # the run did use the option
        # Runs that fail at once: the URL cannot be read. An unreachable database would be tried again for a minute.
        monkeypatch.setenv("ROWS", f"postgresql://u:p@ss:{plain('url')}@h:5/db")
        for job in ("compact", "cleanup", "checks"):
            result = deployment.location.run(deployment.names.of(job), raise_on_error=False)
            assert not result.success
            assert not found_in("\n".join(map(repr, result.all_events)))
        deployment.land("b", range(3))
        with pytest.raises(Exception, match="manifest_store") as caught:
            deployment.tick()
        assert not found_in_error(caught.value)
        events = [entry for run in instance.get_runs() for entry in instance.all_logs(run.run_id)]
        assert len(events) > 20 and not found_in("\n".join(map(repr, events)))
    assert not found_in_files(home, tmp_path / "lake")
    captured = capfd.readouterr()
    assert not found_in(captured.out + captured.err)
