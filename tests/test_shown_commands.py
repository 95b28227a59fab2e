"""Every command of `lance-ops` that the pages and `--help` show is run, each in a folder of its own.

`test_docs.py` runs the blocks of `python` and `shell` in their order. Here is the rest: commands within sentences and
tables, in indented lines, in blocks of other languages, and the example of each command's help.
`test_shown_programs.py` has the commands of other programs.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from lance_ops.api import write_dataset
from lance_ops.cli import app
from lance_ops.cli.examples import EXAMPLES
from tests.pages import BLOCK, PAGES, ROOT

SHOWN = re.compile(r"(?:`|^ {4} *)lance-ops ([a-z][^`\n]*)", re.MULTILINE)

RUN_IN_ORDER = ("python", "shell")
"""The languages of the blocks that `test_docs.py` runs."""

PLACES = {
    "URI": "lake/orders.lance",
    "ROOT": "lake",
    "FOLDER": "landing",
    "BACKUP": "backup/orders.lance",
    "VERSION": "1",
    "COLUMN": "id",
    "COPY": "copies/orders.lance",
    "NAME.yaml": "my-lake/my_lake/defs/orders/defs.yaml",
}
"""What stands for a word that the reader replaces."""

NOT_RUN = {
    "doctor s3://bucket/lake/probe.lance": "needs a store; tests/cli/test_doctor.py examines one",
    "ingest flights.lance in/*.csv": "starts Spark; tests/cli/test_ingest.py runs these options",
}
"""The beginnings of commands that are only looked up, with the reasons."""

MAY_FAIL = ("doctor",)
"""Commands whose exit code depends on the machine: 1 if something is missing."""


def commands() -> Iterator[tuple[str, TyperGroup | Any]]:
    """Yield every command with its full name, those of groups too."""
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from ((f"{name} {below}", each) for below, each in command.commands.items())
        else:
            yield name, command


def shown_commands() -> dict[str, list[str]]:
    """Return the command lines of each page, without the program's name, in their order, and those of `--help`."""
    shown = {"--help": [example.removeprefix("lance-ops ") for example in EXAMPLES.values()]}
    for page in PAGES:
        text = BLOCK.sub(lambda block: "" if block[1] in RUN_IN_ORDER else indented(block[2]), page.read_text())
        shown[str(page.relative_to(ROOT))] = [words.strip() for words in SHOWN.findall(text)]
    return shown


def indented(block: str) -> str:
    return "".join(f"    {line}\n" for line in block.splitlines())


def filled_in(words: str) -> list[str]:
    """Return the arguments of a shown command: optional ones are given, and names of places are those of the folder."""
    return [PLACES.get(each, each) for each in shlex.split(re.sub(r"\[([^\]]*)\]", r"\1", words))]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder in which the shown commands work."""
    folder = tmp_path_factory.mktemp("shown")
    orders = pa.table({"id": range(1, 101), "city": ["Oslo", "Rome"] * 50, "amount": range(100)})
    made = write_dataset(orders, str(folder / "lake/orders.lance"), max_rows_per_file=50)
    made.delete("id = 50")
    made.tags.create("release", 1)
    made.create_branch("old")
    for place in ("lake/trips.lance", "backup/orders.lance"):
        shutil.copytree(folder / "lake/orders.lance", folder / place)
    pq.write_table(orders.slice(95), folder / "late.parquet")
    rows = pa.table({"_rowaddr": pa.array([0, 1], pa.uint64()), "score": [0.5, 1.5]})
    pq.write_table(rows, folder / "values.parquet")
    (folder / "landing/orders").mkdir(parents=True)
    for day in (1, 2, 3):
        (folder / f"landing/orders/2024-01-{day:02}.csv").write_text(f"id,city,amount\n{day + 200},Lima,1\n")
    return folder


def why_it_fails(arguments: list[str]) -> str:
    """Run a command in this folder; return its output and error if it fails, or nothing."""
    done = CliRunner().invoke(app, arguments)
    is_fine = done.exit_code in ((0, 1) if arguments[0] in MAY_FAIL else (0,))
    return "" if is_fine else f"{done.output}\n{done.exception!r}"


@pytest.mark.dagster
def test_every_shown_command_runs(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    names = dict(commands()).keys()
    assert names <= EXAMPLES.keys()  # a sentence may name a command alone: then its example is run
    excused: set[str] = set()
    failed, num_run = [], 0
    for page, shown in shown_commands().items():
        if not shown:
            continue
        folder = tmp_path / page
        shutil.copytree(prepared, folder)
        monkeypatch.chdir(folder)
        monkeypatch.setenv("LANCE_OPS_LAKE", str(folder / "lake"))
        monkeypatch.setenv("LANCE_OPS_LANDING", str(folder / "landing"))
        for words in dict.fromkeys(shown):
            if reasons := [start for start in NOT_RUN if words.startswith(start)]:
                excused.update(reasons)
            elif words not in names:
                num_run += 1
                if why := why_it_fails(filled_in(words)):
                    failed.append(f"{page}: lance-ops {words}\n{why}")
    assert not failed, "\n".join(failed)
    assert excused == NOT_RUN.keys(), "a reason excuses no command"
    assert num_run > 60


def test_every_command_has_help_with_one_example_and_takes_json() -> None:
    found = dict(commands())
    assert found.keys() == EXAMPLES.keys()
    for name, command in found.items():
        shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
        assert shown.exit_code == 0 and command.help, name
        assert shown.stdout.count(f"Example: {EXAMPLES[name]}") == 1, shown.stdout
        options = {option for each in command.params for option in each.opts}
        assert "--json" in options or name == "schema", f"{name} prints for people only"  # schema prints JSON alone
