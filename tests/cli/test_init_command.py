from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner

from lance_ops.cli import app

pytestmark = [pytest.mark.dagster, pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20")]


def test_init_says_what_it_wrote_and_what_is_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["init", "lake"])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    written = [line.removeprefix("wrote ") for line in lines if line.startswith("wrote ")]
    assert written and all((tmp_path / "lake" / name).is_file() for name in written)
    assert lines[-2:] == ["0 datasets declared: none", "next: cd lake && dg dev"]

    refused = CliRunner().invoke(app, ["init", "lake"])
    assert (refused.exit_code, refused.output.count("--add")) == (1, 1)
    again = CliRunner().invoke(app, ["init", "lake", "--add", "--json"])
    assert sorted(json.loads(again.output)["kept"]) == sorted(written)


def test_the_next_command_quotes_a_folder_that_a_shell_would_split(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["init", str(tmp_path / "my lake")]).stdout
    assert shown.splitlines()[-1].endswith("/my lake' && dg dev")


def test_a_project_without_datasets_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "bare-lake-of-init"
    assert CliRunner().invoke(app, ["init", str(home)]).exit_code == 0
    monkeypatch.syspath_prepend(home)
    loaded = dg.load_from_defs_folder(path_within_project=home / "bare_lake_of_init")
    dg.Definitions.validate_loadable(loaded)
    assert loaded.resolve_all_asset_keys() == []


def test_schema_is_the_one_that_a_project_gets() -> None:
    result = CliRunner().invoke(app, ["schema"])
    assert json.loads(result.output)["properties"]["type"]["enum"] == [
        "lance_ops.dagster.LanceDatasetComponent",
        "lance_ops.dagster.LanceFleetComponent",
        "lance_ops.dagster.LanceResourcesComponent",
    ]
