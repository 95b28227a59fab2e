"""What the pages of `docs/` show is run as it stands: Python blocks, and every command in a block of `shell`.

The site has every page: mkdocs itself is no part of the tests, and `make docs` checks its links.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from lance_ops.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (
    pytest.param("quickstart.md", marks=pytest.mark.dagster),
    *sorted(f"jobs/{page.name}" for page in DOCS.glob("jobs/*.md")),
)
BLOCK = re.compile(r"^```(python|shell)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_commands(block: str) -> int:
    """Run each line as a command of this process; return how many there were."""
    for line in block.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "lance-ops", f"{line!r}: a block of shell holds commands of lance-ops alone"
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception!r}"
    return len(block.splitlines())


@pytest.mark.parametrize("page", PAGES)
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


def test_commands_and_options_that_a_sentence_names_are_there() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    commands = group.commands
    unknown = []
    num_found = 0
    for page in [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("jobs/*.md")]:
        for words in re.findall(r"(?:`|\n {4})lance-ops ([a-z][^`\n]*)", page.read_text()):
            name, *arguments = words.split()
            num_found += 1
            options = {option for each in getattr(commands.get(name), "params", ()) for option in each.opts}
            named = {word for word in arguments if word.startswith("--")} if options else set()
            if name not in commands or named - options - {"--help"}:
                unknown.append(f"{page.name}: {words}")
    assert not unknown
    assert num_found > 30


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
