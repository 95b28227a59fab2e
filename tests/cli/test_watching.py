"""`top` shows the worst table first, and what is watched is measured anew until the user interrupts."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lance_ops.api import write_dataset
from lance_ops.cli import app
from lance_ops.cli.output import watch


def text(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three tables: one of twenty small fragments, one of one fragment, and one whose manifest is damaged."""
    rows = pa.table({"x": range(100)})
    write_dataset(rows, str(tmp_path / "many.lance"), max_rows_per_file=5)
    write_dataset(rows, str(tmp_path / "one.lance"))
    write_dataset(rows, str(tmp_path / "damaged.lance"))
    [manifest] = tmp_path.glob("damaged.lance/_versions/*.manifest")
    manifest.write_bytes(b"junk")
    return tmp_path


def test_top_names_what_cannot_be_measured_and_then_the_worst_debt(lake: Path) -> None:
    told = json.loads(text("top", str(lake), "--json"))
    assert [each["table"] for each in told] == ["damaged.lance", "many.lance", "one.lance"]
    damaged, many, one = told
    assert damaged["debt"] is None and "damaged.lance" in damaged["reason"]
    assert [due["step"] for due in many["debt"]["dues"] if due["is_owed"]] == ["compact"]
    assert many["debt"]["score"] > one["debt"]["score"] == 0
    shown = text("top", str(lake), "--limit", "2")  # a pipe, so once
    assert "3 tables beneath" in shown and "1 owing, 1 not measured" in shown
    assert "compact" in shown and "1 more table" in shown and "one.lance" not in shown


@pytest.mark.parametrize("command", ["top", "fleet", "report", "health", "debt"])
def test_a_place_that_is_not_there_is_named_with_a_remedy(command: str, lake: Path) -> None:
    done = CliRunner().invoke(app, [command, str(lake / "nowhere")])
    assert done.exit_code == 1 and not done.stdout
    assert f"{lake}/nowhere" in done.stderr
    assert ("give one that has Lance tables" if command in ("top", "fleet") else "check the URI") in done.stderr


def test_health_is_watched_once_without_a_screen(lake: Path) -> None:
    assert "20 of them small" in text("health", str(lake / "many.lance"), "--watch", "10s")


def test_on_a_screen_each_round_measures_anew_until_the_user_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter(range(1, 10))
    shown: list[int] = []
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    watch(lambda: next(rounds), shown.append, timedelta(seconds=10), pause)
    assert shown == [1, 2, 3]
    assert waited == [10.0] * 3
