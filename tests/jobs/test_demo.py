from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

from jobs import demo
from jobs.flights import read_flights
from jobs.instance import DemoPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.dagster, pytest.mark.spark]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the demo, a fortnight of flights, and an environment that is restored after the test."""
    for name, value in DemoPlace(tmp_path).environment.items():
        monkeypatch.setenv(name, value)
    flights = read_flights()
    fortnight = (pc.field("year") == 2013) & (pc.field("month") == 1) & (pc.field("day") <= 14)
    monkeypatch.setattr(demo, "read_flights", lambda: flights.filter(fortnight))
    return tmp_path


def test_the_main_job_proves_itself_and_does_not_run_over_its_own_dataset(
    root: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(["--root", str(root), "--fresh"]) == 0
    shown = capsys.readouterr().out
    assert "Every proof held" in shown and "FAIL" not in shown
    assert "12 new partitions, 1 run" in shown
    assert demo.main(["--root", str(root)]) == 2
    assert "--fresh starts over" in capsys.readouterr().out


def test_a_proof_that_fails_and_a_step_that_fails_end_the_job_with_different_errors(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo.Demo, "run", lambda self: False)
    assert demo.main(["--root", str(root), "--fresh"]) == 1

    def stumble(self: demo.Demo) -> bool:
        raise demo.DemoFailed("two runs where one was due")

    monkeypatch.setattr(demo.Demo, "run", stumble)
    assert demo.main(["--root", str(root), "--fresh"]) == 2
    assert "DemoFailed: two runs where one was due" in capsys.readouterr().out
