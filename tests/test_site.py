"""The documents build as a site, by the tools that `make docs` installs, in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.soak  # it asks the package registry for 30 packages

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent


def run(*command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    tools, site = tmp_path / "tools", tmp_path / "site"
    run(BIN / "uv", "venv", "--quiet", tools)
    run(BIN / "uv", "pip", "install", "--quiet", "--group", "docs", VIRTUAL_ENV=str(tools))
    run(tools / "bin/mkdocs", "build", "--strict", "--site-dir", site, NO_MKDOCS_2_WARNING="1")
    built = {str(page.parent.relative_to(site)) for page in site.rglob("index.html")}
    assert built >= {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in ROOT.glob("docs/*/*.md")}
    assert "lance_ops.spark.table_query.table" in (site / "reference/spark/index.html").read_text()
