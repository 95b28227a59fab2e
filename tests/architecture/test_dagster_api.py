"""The code for Dagster uses only Dagster's public names, and as they are typed; one launcher of runs is excepted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("lance_ops/dagster", "assets", "jobs")

PRIVATE_IMPORT = re.compile(r"^\s*(?:from|import) dagster(?:\.\w+)*\._\w+", re.MULTILINE)
LAUNCHER = "lance_ops/dagster/instances/run_launcher.py"
"""What a launcher gets and answers, and the tag in which it names the code server, have no public name."""
UNTYPED = re.compile(r"#\s*type:\s*ignore")


def findings(pattern: re.Pattern[str]) -> list[str]:
    """Return where a pattern occurs, as path and line."""
    return [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for text in [path.read_text(encoding="utf-8")]
        for found in pattern.finditer(text)
    ]


def test_every_folder_of_dagster_code_is_looked_at() -> None:
    assert [folder for folder in FOLDERS if not list((ROOT / folder).rglob("*.py"))] == []


def test_code_for_dagster_ignores_no_type_error() -> None:
    assert findings(UNTYPED) == []


def test_code_for_dagster_imports_no_private_module_of_dagster() -> None:
    assert [place for place in findings(PRIVATE_IMPORT) if not place.startswith(LAUNCHER)] == []


def test_the_launcher_imports_only_the_private_names_that_it_was_excepted_for() -> None:
    imported = re.findall(r"^from (dagster\._.*) import (.*)$", (ROOT / LAUNCHER).read_text(), re.MULTILINE)
    assert imported == [
        ("dagster._core.launcher", "CheckRunHealthResult, LaunchRunContext, WorkerStatus"),
        ("dagster._core.storage.tags", "GRPC_INFO_TAG"),
    ]
    assert len(findings(PRIVATE_IMPORT)) == len(imported)


@pytest.mark.parametrize(
    "line", ["from dagster._core import events", "import dagster._utils", "  from dagster.a._b import c"]
)
def test_an_import_of_a_private_module_is_found(line: str) -> None:
    assert PRIVATE_IMPORT.search(line)
    assert not PRIVATE_IMPORT.search("from dagster.components.testing import create_defs_folder_sandbox")
