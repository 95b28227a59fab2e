"""Commands ask before rows or versions go for good, unless a retention has said beforehand what may go."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner, Result

from lance_ops.api import dataset, write_dataset
from lance_ops.cli import app, questions
from tests.cli.calls import answer, run


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands take the streams of `CliRunner` for a terminal."""
    person = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(questions, "sys", SimpleNamespace(stdin=person, stdout=person))


def at_terminal(*arguments: str, reply: str = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=reply)


def test_an_erasure_without_a_terminal_is_refused_unless_it_is_agreed_beforehand(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": range(4)}), dataset_uri)
    for asked in (("erase", dataset_uri, "x = 1", "--reason", "r"), ("erase", "absent.lance", "x = 1", "--json")):
        refused = run(*asked)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr.count("\n") == 1 and "--dry-run" in refused.stderr and "add --yes" in refused.stderr
    assert dataset(dataset_uri).count_rows() == 4
    assert answer("erase", dataset_uri, "x = 1", "--reason", "r", "--yes")["erased_rows"] == 1


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("reply", "num_left"), [("y\n", 3), ("n\n", 4), ("\n", 4), ("", 4)])
def test_an_erasure_at_a_terminal_shows_its_preview_and_waits_for_a_yes(
    dataset_uri: str, reply: str, num_left: int
) -> None:
    write_dataset(pa.table({"x": range(4)}), dataset_uri)
    asked = at_terminal("erase", dataset_uri, "x = 1", "--reason", "r", reply=reply)
    assert 0 <= asked.stdout.index("erase 1 rows, and what holds them") < asked.stdout.index("for good? [y/N]")
    is_done = num_left == 3
    assert (asked.exit_code, "proven: no remaining file" in asked.stdout) == (0 if is_done else 1, is_done)
    assert dataset(dataset_uri).count_rows() == num_left


@pytest.mark.usefixtures("terminal")
def test_an_erasure_is_refused_if_more_rows_match_than_when_it_asked(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_dataset(pa.table({"x": range(4)}), dataset_uri)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: data.insert(pa.table({"x": [1]})))
    assert at_terminal("erase", dataset_uri, "x = 1", "--reason", "r").exit_code == 1
    assert dataset(dataset_uri).count_rows("x = 1") == 2


@pytest.mark.usefixtures("terminal")
def test_json_is_for_machines_which_nobody_asks(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": range(4)}), dataset_uri)
    refused = at_terminal("erase", dataset_uri, "x = 1", "--reason", "r", "--json", reply="y\n")
    assert refused.exit_code == 1 and dataset(dataset_uri).count_rows() == 4


LOSSES = {
    "branch": (("branches", "delete", "{uri}", "dev"), "its newest has 10 rows", "Remove branch dev for good? [y/N]"),
    "version": (("cleanup", "{uri}", "--remove-version", "1"), "1 version", "Remove these versions for good? [y/N]"),
}
"""Commands that lose something for good, what their preview says of it, and their question."""


def lossy(kind: str, uri: str) -> tuple[str, ...]:
    """Return a command of `LOSSES`, of a table with the branch that it may remove."""
    dataset(uri).create_branch("dev")
    return tuple(each.format(uri=uri) for each in LOSSES[kind][0])


def what_is_left(uri: str) -> tuple[list[int], list[str]]:
    opened = dataset(uri)
    return [each["version"] for each in opened.versions()], list(opened.branches.list())


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_without_a_terminal_is_refused_unless_it_is_agreed_beforehand(flights: str, kind: str) -> None:
    command = lossy(kind, flights)
    before = what_is_left(flights)
    for asked in (command, (*command, "--json")):
        refused = run(*asked)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr.count("\n") == 1 and "--dry-run" in refused.stderr and "add --yes" in refused.stderr
    assert run(*command, "--dry-run").exit_code == 0 and what_is_left(flights) == before
    assert run(*command, "--yes", "--json").exit_code == 0 and what_is_left(flights) != before


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("reply", ["y\n", "n\n", ""])
@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_at_a_terminal_shows_its_preview_and_waits_for_a_yes(flights: str, kind: str, reply: str) -> None:
    command, (_, shown, question) = lossy(kind, flights), LOSSES[kind]
    before = what_is_left(flights)
    asked = at_terminal(*command, reply=reply)
    assert 0 <= asked.stdout.index(shown) < asked.stdout.index(question)
    assert (asked.exit_code == 0, what_is_left(flights) != before) == (
        (True, True) if reply == "y\n" else (False, False)
    )


@pytest.mark.usefixtures("terminal")
def test_what_restore_undoes_is_not_asked_for(flights: str) -> None:
    number = dataset(flights).version
    for command in (("delete", flights, "x = 2"), ("reindex", flights, "--drop", "x_idx"), ("restore", flights, "1")):
        done = at_terminal(*command)
        assert done.exit_code == 0 and "[y/N]" not in done.stdout
    assert answer("restore", flights, str(number))["restored"] == number
    assert dataset(flights).count_rows("x = 2") == 1


def test_a_cleanup_without_a_terminal_removes_what_its_retention_says(flights: str) -> None:
    dataset(flights).tags.delete("v1")
    assert answer("cleanup", flights, "--older-than", "0s", "--retain-versions", "1")["old_versions"] == 2
