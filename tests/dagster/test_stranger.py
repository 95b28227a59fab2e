"""As a stranger: the wheel alone, an empty folder, and the commands of the README's section, in its order."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import dagster as dg
import pytest
import yaml

from lance_ops.api import dataset
from tests.groups import DAEMONS
from tests.processes import free_port

pytestmark = [pytest.mark.dagster, pytest.mark.server, pytest.mark.timeout(1200), DAEMONS]

REPOSITORY = Path(__file__).parents[2]
MOST_COMMANDS = 6
MOST_SECONDS = 300
"""What the commands may take of a machine with two cores: it bounds their processor time, as other tests run beside."""


def section() -> str:
    """Return the README's section on a dataset of one's own."""
    _, _, rest = (REPOSITORY / "README.md").read_text().partition("## A dataset of your own files\n")
    return rest.partition("\n## ")[0]


def commands() -> list[list[str]]:
    """Return the section's commands, which stand before what they write."""
    before = section().partition("```")[0]
    return [shlex.split(line, comments=True) for line in re.findall(r"^ {4}(\S.*)$", before, re.MULTILINE)]


def seconds_of_children() -> float:
    """Return the processor time of the processes that this one started and that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Shell:
    """A shell of somebody who has nothing but the wheel and its dependencies."""

    def __init__(self, folder: Path, site: Path, programs: Sequence[Path], **variables: str) -> None:
        self.folder, self.site = folder, site
        unwanted = ("DAGSTER", "LANCE_OPS", "PYTHON", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
        self.environment = {**kept, "PATH": path, **variables}

    def run(self, command: list[str]) -> str:
        if command[0] == "cd":
            self.folder /= command[1]
            return ""
        ended = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    @contextmanager
    def running(self, command: list[str]) -> Iterator[None]:
        """Keep a command running, and end it with all that it started."""
        with (self.folder / "running.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=60)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(params=["beside the tests' environment", pytest.param("resolved anew", marks=pytest.mark.soak)])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """Install the wheel: with the dependencies that the tests have, or with those that pip finds."""
    python, folder = [sys.executable, "-m"], tmp_path / "stranger"
    build = [*python, "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(REPOSITORY)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    if request.param == "resolved anew":
        subprocess.run([*python, "venv", str(tmp_path / "venv")], check=True, capture_output=True)
        made = Shell(tmp_path, tmp_path / "venv", [tmp_path / "venv" / "bin"])
        made.run(["pip", "install", f"{wheel}[all]"])
        made.folder = folder
        return made
    site = tmp_path / "site"
    install = ["uv", "pip", "install", "--offline", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run([*python, *install], check=True, capture_output=True)
    return Shell(folder, site, [site / "bin", Path(sys.executable).parent], PYTHONPATH=str(site))


def test_the_readmes_commands_lead_from_raw_files_to_a_maintained_dataset(shell: Shell) -> None:
    install, init, enter, validate, develop, maintain = commands()
    assert install == ["pip", "install", "lance-ops[all]"]  # which is what the fixture did
    assert len(commands()) <= MOST_COMMANDS
    orders = shell.folder / "landing" / "orders"
    orders.mkdir(parents=True)
    for day in range(1, 4):
        path = orders / f"2026-01-{day:02}.csv"
        path.write_text(f"id,city,amount\n{day},Bern,{day}.5\n{day + 10},Basel,7.25\n")
        os.utime(path, (1_770_000_000 + day,) * 2)
    before = seconds_of_children()
    assert f"{shell.site}/" in shell.run(["python", "-c", "import lance_ops; print(lance_ops.__file__)"])

    shell.run(init)
    shell.run(enter)
    (shown,) = re.findall(r"```yaml\n(.*?)```", section(), re.DOTALL)
    written = (shell.folder / "my_lake/defs/orders/defs.yaml").read_text()
    assert yaml.safe_load(written) == yaml.safe_load(shown)

    assert develop == ["dg", "dev"]
    port = free_port()
    with dg.DagsterInstance.from_config(str(shell.folder)) as instance:
        with shell.running([*develop, "--port", str(port)]):
            assert "All definitions loaded successfully" in shell.run(validate)
            deadline = time.monotonic() + 600
            while not instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS])):
                assert time.monotonic() < deadline, (shell.folder / "running.log").read_text()
                time.sleep(0.2)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info") as answer:
                assert json.load(answer)["dagster_version"] == dg.__version__
        shell.run(maintain)
        newest, first = instance.get_run_records()
        assert [record.dagster_run.job_name for record in (first, newest)] == ["orders_ingest", "orders_maintenance"]
        assert newest.dagster_run.status is dg.DagsterRunStatus.SUCCESS
        batches = instance.get_materialized_partitions(dg.AssetKey(["orders", "batches"]))
        assert batches == {f"2026-01-{day:02}" for day in range(1, 4)}
    assert seconds_of_children() - before < MOST_SECONDS
    rows = dataset(str(shell.folder / "lake/orders.lance")).to_table().sort_by("id")
    assert rows["id"].to_pylist() == [1, 2, 3, 11, 12, 13]
    assert rows["amount"].to_pylist() == [1.5, 2.5, 3.5, 7.25, 7.25, 7.25]
