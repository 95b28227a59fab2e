from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import dagster as dg
import pytest
import yaml

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
