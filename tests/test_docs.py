"""What the pages of `docs/` show is run as it stands: Python blocks, and every command in a block of `shell`.

`test_shown_commands.py` and `test_shown_programs.py` have the other commands of the pages.

mkdocs is no part of the tests. They hold what `make docs` would find: pages that the site lacks, links and anchors that
lead nowhere, and names of the reference that do not exist.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from lance_ops.cli import app
from tests.pages import DOCS, PAGES, ROOT

RUN_IN_ORDER = ("quickstart.md", "library.md", *sorted(f"jobs/{page.name}" for page in DOCS.glob("jobs/*.md")))
ON_DAGSTER = "quickstart.md"
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)#?([^)\s]*)\)")
BLOCK = re.compile(r"^```(python|shell)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_commands(block: str) -> int:
    """Run each line as a command of this process; return how many there were."""
    for line in block.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "lance-ops", f"{line!r}: a block of shell holds commands of lance-ops alone"
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception!r}"
    return len(block.splitlines())


@pytest.mark.parametrize(
    "page", [pytest.param(each, marks=[pytest.mark.dagster] if each == ON_DAGSTER else []) for each in RUN_IN_ORDER]
)
def test_a_page_s_blocks_run_in_their_order(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    names: dict[str, Any] = {"__name__": "__main__"}
    num_commands = 0
    for language, block in BLOCK.findall((DOCS / page).read_text()):
        if language == "python":
            exec(compile(block, page, "exec"), names)
        else:
            num_commands += run_commands(block)
    assert num_commands > 0, f"{page} shows no command"


def test_no_other_page_has_commands_to_be_run_in_their_order() -> None:
    assert {DOCS / page for page in RUN_IN_ORDER} == {page for page in PAGES if "```shell\n" in page.read_text()}


def test_the_package_s_description_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / "PACKAGE.md").read_text())
    names: dict[str, Any] = {}
    for language, block in blocks:
        assert language == "python"
        exec(compile(block, "PACKAGE.md", "exec"), names)
    assert names["ds"].to_table()["id"].to_pylist() == [1, 3]


def test_the_site_has_every_page_once_and_no_other() -> None:
    def pages_of(entry: Any) -> list[str]:
        match entry:
            case str():
                return [entry]
            case dict():
                return [page for below in entry.values() for page in pages_of(below)]
        return [page for below in entry for page in pages_of(below)]

    named = pages_of(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert sorted(named) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def anchors(page: str) -> set[str]:
    """Return the anchors that a page has in the site: of its headings, without what is in blocks of code."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.*)$", without_code_blocks(page), re.MULTILINE):
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        found[slug] = found.get(slug, 0) + 1
    return {f"{slug}_{number}" if number else slug for slug, count in found.items() for number in range(count)}


def without_code_blocks(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def test_every_link_leads_to_a_page_of_the_site_and_to_a_heading_of_it() -> None:
    pages = {path.relative_to(ROOT): path.read_text() for path in [ROOT / "README.md", *DOCS.rglob("*.md")]}
    lost, num_links = [], 0
    for page, text in pages.items():
        for target, anchor in LINK.findall(without_code_blocks(text)):
            num_links += 1
            path = (ROOT / page.parent / target).resolve() if target else ROOT / page
            inside = page.parts[0] != "docs" or path.is_relative_to(DOCS)
            known = not anchor or anchor in anchors(pages.get(path.relative_to(ROOT), ""))
            if not (path.exists() and inside and known):
                lost.append(f"{page}: {target}#{anchor}")
    assert not lost
    assert num_links > 50


def test_every_name_of_the_reference_exists() -> None:
    named = [
        name
        for page in DOCS.glob("reference/*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
    ]
    assert len(named) > 5
    for name in named:
        assert resolve_name(name).__doc__, name
