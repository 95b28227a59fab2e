from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import TickStatus

from jobs.instance import DemoPlace
from lance_ops.dagster.instances import instance_file
from lance_ops.errors import ConfigError

pytestmark = pytest.mark.dagster

REPOSITORY = Path(__file__).parents[2]


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jobs.instance", "--root", str(root), *command],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_command_runs_in_the_demos_environment(tmp_path: Path) -> None:
    show = "import os; print(os.environ['DAGSTER_HOME'], os.environ['LANCE_OPS_LAKE'])"
    shown = run(tmp_path, sys.executable, "-c", show)
    assert shown.stdout.split() == [str(tmp_path / "dagster"), str(tmp_path / "lake")]


def test_two_processes_that_prepare_at_once_make_one_instance(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: run(tmp_path), range(2)))
    with dg.DagsterInstance.from_config(str(tmp_path / "dagster")) as instance:
        assert instance.get_run_records() == []
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled


@pytest.mark.parametrize("which", ["laptop", "team"])
def test_the_instances_pools_are_by_op_and_limited(which: Literal["laptop", "team"]) -> None:
    settings = yaml.safe_load(instance_file(which))
    assert settings["concurrency"]["pools"] == {"granularity": "op", "default_limit": 1}


@pytest.mark.parametrize("which", ["laptop", "team"])
def test_the_instances_keep_no_tick_of_a_sensor_for_good(which: Literal["laptop", "team"], tmp_path: Path) -> None:
    settings = {name: found for name, found in yaml.safe_load(instance_file(which)).items() if name != "storage"}
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(settings))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        kept = instance.get_tick_retention_settings(InstigatorType.SENSOR)
    assert set(kept) == set(TickStatus) and all(0 < days <= 30 for days in kept.values())


def shown_settings(section: str) -> Any:
    """Return the block of YAML in a section of the handbook."""
    page = (REPOSITORY / "docs/operations.md").read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", page.partition(f"\n## {section}\n")[2].partition("\n## ")[0], re.DOTALL)
    return yaml.safe_load(block)


def test_the_handbook_s_image_has_a_folder_that_its_user_may_write() -> None:
    before, user, after = (REPOSITORY / "docs/operations.md").read_text().partition("\nUSER lake\n")
    (folder,) = re.findall(r"^WORKDIR (.*)$", after, re.MULTILINE)
    assert user and before.endswith(f"install --directory --owner=lake {folder}")


def in_snake_case(values: Any) -> Any:
    """Return Helm's values with the names of the instance's settings, by the convention of the chart.

    The chart itself is not here. So a value under a wrong name is found only by the setting that is then missing, and
    one in a wrong place or in the block of deployments is not found.
    """
    if not isinstance(values, dict):
        return values
    return {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", k): in_snake_case(v) for k, v in values.items()}


def test_the_handbook_s_values_for_helm_are_the_settings_of_a_team(tmp_path: Path) -> None:
    team, values = yaml.safe_load(instance_file("team")), shown_settings("Kubernetes")
    daemon = in_snake_case(values["dagsterDaemon"])
    queue = daemon["run_coordinator"]["config"]["queued_run_coordinator"]
    retention = in_snake_case(values["retention"])
    settings = {
        **{name: daemon[name] for name in ("run_monitoring", "run_retries", "sensors", "schedules")},
        "telemetry": values["telemetry"],
        "retention": {"sensor": retention["sensor"]},
        **values["additionalInstanceConfig"],
    }
    assert settings == {
        # Values of the chart name the database, and let each run have a pod.
        **{name: found for name, found in team.items() if name not in ("storage", "run_launcher")},
        "run_monitoring": {**team["run_monitoring"], "max_resume_run_attempts": 0},
    }
    given = {name: found for name, found in queue.items() if found is not None}  # Helm drops a value that is null
    coordinator = {"module": "dagster._core.run_coordinator", "class": "QueuedRunCoordinator", "config": given}
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump({**settings, "run_coordinator": coordinator}))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.run_retries_enabled and instance.run_monitoring_enabled
        assert instance.global_op_concurrency_default_limit == 1


def test_the_handbook_s_settings_of_a_deployment_are_those_of_a_team() -> None:
    """Dagster+ has no parser of these settings here; of the team's, it does not take the ones that are left out."""
    team, shown = yaml.safe_load(instance_file("team")), shown_settings("Dagster+")
    left_out = {"enabled", "poll_interval_seconds", "free_slots_after_run_end_seconds", "max_resume_run_attempts"}
    wanted = ("concurrency", "run_monitoring", "run_retries")
    assert shown == {
        section: {name: value for name, value in team[section].items() if name not in left_out} for section in wanted
    }


def test_clearing_removes_only_what_the_demo_made(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    place = DemoPlace(tmp_path)
    place.lake.mkdir()
    place.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in-use", "mine.txt"]


def test_a_folder_that_a_command_works_on_is_not_cleared(tmp_path: Path) -> None:
    wait = "import sys; print('up', flush=True); sys.stdin.read()"
    command = [sys.executable, "-m", "jobs.instance", "--root", str(tmp_path), sys.executable, "-c", wait]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as working:
        assert working.stdin and working.stdout
        assert working.stdout.readline() == "up\n"
        with pytest.raises(ConfigError, match="in use"):
            DemoPlace(tmp_path).clear()
        working.stdin.close()
    DemoPlace(tmp_path).clear()
    assert not (tmp_path / "dagster").exists()
