"""Every command of another program that the pages show is run, or looked up in what it names.

`test_shown_commands.py` runs those of `lance-ops`. A command whose program is named nowhere here fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._cli import cli as dagster_program
from dagster._daemon.cli import cli as daemon_program
from dagster.components.core.package_entry import discover_package_objects
from packaging.requirements import Requirement
from typer.main import get_command
from typer.testing import CliRunner

from lance_ops.api import write_dataset
from lance_ops.cli import app
from lance_ops.dagster.project import DatasetScaffolder, FleetScaffolder, ResourcesScaffolder
from tests.dagster.test_dg import RUN_BY_DG
from tests.dagster.test_stranger import commands as commands_of_a_stranger
from tests.pages import BLOCK, OF_COMMANDS, PAGES, ROOT, shown_commands, words_of

pytestmark = pytest.mark.dagster

RUN_IN_A_SHELL = ("python -c ", "python -m assets.documents.generated ")
"""The beginnings of commands that are run as they stand. Other modules are only looked up: they run for minutes."""

NOT_RUN = {
    "dagster dev -m jobs.documents": "a server; tests/jobs/test_documents.py runs its definitions",
    "dagster code-server start -m my_lake.definitions": "a server; tests/dagster/test_daemon.py starts others",
    "dagster-daemon run": "a server; tests/dagster/test_stranger.py starts it",
    "dagster-cloud deployment settings set-from-file settings.yaml": "talks to Dagster+",
}
"""Commands of Dagster whose words are parsed by the program itself, with the reasons why they are not run."""

TRUSTED = {
    "cd": "tests/dagster/test_stranger.py enters the folder",
    "cp": "a record of decisions speaks of it",
    "install": "a step of an image, which no test builds",
    "mkdir": "a step of an image, which no test builds",
    "pre-commit": "writes into .git",
    "ruff": "a check of `make test`",
    "useradd": "a step of an image, which no test builds",
}
"""Programs whose commands are not looked at, with the reasons."""

NO_COMMANDS = {"import": "a statement of Python", "interval": "a type of Spark"}
"""The first words of spans that only look like commands."""

PROJECT = "my_lake"
"""The package of the project that `lance-ops init my-lake` writes."""


def check_make(words: list[str]) -> None:
    """Find the targets in the Makefile, and the variables in its recipes."""
    makefile = (ROOT / "Makefile").read_text()
    for word in words[1:]:
        variable, is_given, _ = word.partition("=")
        found = f"$({variable})" in makefile if is_given else re.search(f"^{re.escape(word)}:", makefile, re.MULTILINE)
        assert found, f"the Makefile has no {word}"


def check_pip(words: list[str]) -> None:
    """Parse the requirements, and find the extras of this package."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert words[1] == "install"
    for word in words[2:]:
        if word != "." and not word.startswith("-"):
            required = Requirement(word)
            assert required.name != "lance-ops" or required.extras <= declared.keys(), word


def check_python(words: list[str]) -> None:
    """Find the module or the script, and the tests that pytest is given."""
    match words[1:]:
        case ["-m", "pytest", *arguments]:
            places = [each.partition("::")[0] for each in arguments if each.startswith("tests")]
            assert all((ROOT / place).exists() for place in places)
        case ["-m", module, *_]:
            found = find_spec(module)
            assert found is not None, f"there is no module {module}"
            assert not found.submodule_search_locations or find_spec(f"{module}.__main__"), f"{module} does not run"
        case [script, *_]:
            assert (ROOT / script).exists(), f"there is no {script}"


def check_dg(words: list[str]) -> None:
    """Fail if no test runs the command; of a scaffold, look up the component and the options of its scaffolder."""
    match words[1:]:
        case ["scaffold", "defs", component, _, *arguments]:
            found = {f"{key.namespace}.{key.name}" for key in discover_package_objects(["lance_ops.dagster"])}
            assert component in found
            scaffolder = SCAFFOLDERS[component.rpartition(".")[2]]
            options = {each.removeprefix("--").replace("-", "_") for each in arguments[::2]}
            assert options <= scaffolder.get_scaffold_params().model_fields.keys()
        case _:
            assert words in commands_of_a_stranger() or " ".join(words) in RUN_BY_DG, "no test runs it"


def check_dagster(words: list[str]) -> None:
    """Have the program itself parse the words; say which test runs them, or why none does."""
    assert words in commands_of_a_stranger() or " ".join(words) in NOT_RUN, "no test runs it: say in NOT_RUN why"
    parse(PROGRAMS_OF_DAGSTER[words[0]](), words)
    if "-m" in words:
        module = words[words.index("-m") + 1]
        assert module == f"{PROJECT}.definitions" or find_spec(module), f"there is no module {module}"


def parse(command: Any, words: list[str]) -> None:
    """Parse the words of a command; raise the usage error of an option or argument that it does not take."""
    while hasattr(command, "commands"):
        words = words[1:]
        assert words and words[0] in command.commands, f"{words[:1]} is none of {sorted(command.commands)}"
        command = command.commands[words[0]]
    command.make_context(words[0], words[1:])


def cloud_program() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # typer speaks to the authors of the program
        from dagster_cloud_cli.entrypoint import app as cloud_app
    return get_command(cloud_app)


SCAFFOLDERS: Mapping[str, type[dg.Scaffolder[Any]]] = {
    "LanceDatasetComponent": DatasetScaffolder,
    "LanceFleetComponent": FleetScaffolder,
    "LanceResourcesComponent": ResourcesScaffolder,
}

PROGRAMS_OF_DAGSTER: Mapping[str, Callable[[], Any]] = {
    "dagster": lambda: dagster_program,
    "dagster-cloud": cloud_program,
    "dagster-daemon": lambda: daemon_program,
}
"""Return a program as a command of click, or of the copy of click that typer has."""

CHECKS: Mapping[str, Callable[[list[str]], None]] = {
    **dict.fromkeys(PROGRAMS_OF_DAGSTER, check_dagster),
    "dg": check_dg,
    "make": check_make,
    "pip": check_pip,
    "python": check_python,
}

SHOWN = {
    command: page.relative_to(ROOT)
    for page in PAGES
    for command in shown_commands(page.read_text(), CHECKS.keys() | TRUSTED.keys())
    if words_of(command)[0] not in {"lance-ops", *NO_COMMANDS}
}
"""The commands of other programs than `lance-ops`, each with a page that shows it."""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make a folder with what commands name, and return what runs a line there in a shell."""
    written = write_dataset(pa.table({"id": [1]}), str(tmp_path / "orders.lance"))
    assert written.version == 1
    (manifest,) = (tmp_path / "orders.lance/_versions").glob("*.manifest")
    (tmp_path / "settings.yaml").touch()
    monkeypatch.chdir(tmp_path)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(tmp_path),
        "LANCE_OPS_LANDING": str(tmp_path / "landing"),
    }

    def run(line: str) -> None:
        filled_in = re.sub(r" PATH$", f" {manifest}", line)
        ended = subprocess.run(
            ["bash", "-c", filled_in], env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout or any(tmp_path.glob("dagster.yaml")) or any(tmp_path.glob("landing/*/*"))

    return run


def check(command: str, run: Callable[[str], None]) -> None:
    words = words_of(command)
    if command.startswith(RUN_IN_A_SHELL):
        run(command)
    elif words[0] not in TRUSTED:
        assert words[0] in CHECKS, f"say here how a command of {words[0]} is checked, or why it is trusted"
        CHECKS[words[0]](words)


@pytest.mark.parametrize("command", SHOWN)
def test_a_shown_command_is_run_or_names_what_there_is(command: str, shell: Callable[[str], None]) -> None:
    check(command, shell)


def test_a_project_s_own_page_shows_such_commands_too(shell: Callable[[str], None]) -> None:
    Path("landing/orders").mkdir(parents=True)
    Path("landing/orders/2024-01-01.csv").write_text("id\n1\n")
    assert CliRunner().invoke(app, ["init", "my-lake", "--landing", "landing"]).exit_code == 0
    commands = list(shown_commands(Path("my-lake/README.md").read_text(), CHECKS.keys()))
    assert len(commands) == 6
    for command in commands:
        check(command, shell)


def test_every_reason_is_of_a_command_that_a_page_shows() -> None:
    assert {words_of(command)[0] for command in SHOWN} == CHECKS.keys() | TRUSTED.keys()
    assert NOT_RUN.keys() <= SHOWN.keys()
    named = [place for reason in (NOT_RUN | TRUSTED).values() for place in re.findall(r"tests/\S+\.py", reason)]
    assert named and all((ROOT / place).exists() for place in named)
    assert len(SHOWN) > 50


def test_no_page_hides_a_command_among_other_text() -> None:
    programs = CHECKS.keys() | {"lance-ops"}
    for page in PAGES:
        for language, block in BLOCK.findall(page.read_text()):
            if language == "text":
                first = {line.split()[0] for line in block.splitlines() if line.strip()}
                assert not first & programs, f"{page}: commands stand in blocks of {' or '.join(OF_COMMANDS)}"
