"""`erase` asks before rows go for good. `cleanup` asks nothing, because its retention says beforehand what may go."""

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


def test_a_cleanup_without_a_terminal_removes_what_its_retention_says(flights: str) -> None:
    dataset(flights).tags.delete("v1")
    assert answer("cleanup", flights, "--older-than", "0s", "--retain-versions", "1")["old_versions"] == 2
