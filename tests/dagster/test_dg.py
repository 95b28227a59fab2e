"""Dagster's command `dg` in a project that `lance-ops init` wrote, with the commands that its README shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pytest
import yaml
from typer.testing import CliRunner

import lance_ops
from lance_ops.cli import app
from lance_ops.dagster.declaration import COMPONENT_TYPE
from lance_ops.dagster.fleet import FLEET_COMPONENT_TYPE
from lance_ops.dagster.io import RESOURCES_COMPONENT_TYPE

pytestmark = pytest.mark.dagster

RUN_BY_DG = (
    "dg list components",
    "dg check yaml",
    "dg check defs",
    "dg list defs --json",
    "dg launch --job <dataset>_ingest --partition KEY",
)
"""The commands that are run beside those of the README."""

RUN_ALL = """
import json, sys
from dagster_dg_cli.cli import create_dg_cli

command = create_dg_cli()
for arguments in json.loads(sys.argv[1]):
    command(arguments, standalone_mode=False)
"""
"""`dg` takes seconds to start, so one process runs several of its commands."""


def run_dg(project: Path, commands: Sequence[Sequence[str]]) -> str:
    """Run commands of `dg` in a project as its README's reader does; return what they print."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER", "LANCE_OPS"))}
    environment = kept | {"DAGSTER_HOME": str(project), "COLUMNS": "200"}
    arguments = [sys.executable, "-c", RUN_ALL, json.dumps(commands)]
    ended = subprocess.run(arguments, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_dg_scaffolds_what_the_readme_of_a_new_project_shows_and_all_of_it_loads(tmp_path: Path) -> None:
    landing = tmp_path / "landing" / "orders"
    landing.mkdir(parents=True)
    (landing / "2026-01-01.csv").write_text("id,city\n1,Bern\n")
    os.utime(landing / "2026-01-01.csv", (1.7e9,) * 2)
    project = tmp_path / "my-lake"
    made = CliRunner().invoke(app, ["init", str(project), "--landing", str(landing.parent)])
    assert made.exit_code == 0, made.output
    shown = re.findall(r"^ {4}dg (scaffold .*)$", (project / "README.md").read_text(), re.MULTILINE)
    # The folder is named as somebody in the project's folder names it.
    values = {"<dataset>": "returns", "<folder>": "../landing/orders"}
    with (project / "my_lake/defs/orders/defs.yaml").open("a") as declared_file:
        declared_file.write("  health: {versions: \"{{ env('ABSENT', 7) | int }}\"}\n")
    scaffolds = [[values.get(word, word) for word in line.split()] for line in shown]
    assert [words[:2] for words in scaffolds] == [["scaffold", "defs"]] * 3

    with dg.DagsterInstance.from_config(str(project)) as instance:  # the sensor makes a partition of each landed batch
        instance.add_dynamic_partitions("orders_batches", ["2026-01-01"])
    run = [command.replace("<dataset>", "orders").replace("KEY", "2026-01-01") for command in RUN_BY_DG]
    before, *after = (command.split()[1:] for command in run)
    printed = run_dg(project, [before, *scaffolds, *after])

    assert {COMPONENT_TYPE, FLEET_COMPONENT_TYPE, RESOURCES_COMPONENT_TYPE} <= set(printed.split())
    assert "All component YAML validated successfully" in printed
    assert "All definitions loaded successfully" in printed
    for name in ("returns/batches", "orders_maintenance", "returns_maintenance", "lake_maintenance"):
        assert f'"{name}"' in printed
    assert lance_ops.dataset(str(project / "lake/orders.lance")).count_rows() == 1
    declared = yaml.safe_load((project / "my_lake/defs/returns/defs.yaml").read_text())
    assert Path(declared["attributes"]["raw"]["uri"]).samefile(landing), "the daemon runs in another folder"
