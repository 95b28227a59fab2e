from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.dagster.__main__ import page
from tests.bench.dagster.cases import CASES, Measured

pytestmark = pytest.mark.dagster


def test_the_page_shows_each_number_with_its_bound() -> None:
    shown = page({"date": "some day"}, {"sqlite": [Measured("beyond the work", 41.25, "s", 60)]})
    assert "date: some day" in shown and "## A backfill, records in SQLite: 2,000" in shown
    assert "| beyond the work | 41.2 s | < 60 s |" in shown


def test_ticks_over_files_are_measured_when_they_are_new_when_known_and_when_in_the_table(tmp_path: Path) -> None:
    found = {each.what: each for each in CASES["local"].run(tmp_path, 1500)}
    assert len(found) == 9 and all(each.value >= 0 for each in found.values())
    assert sum(each.bound is not None for each in found.values()) == 6
    assert found["Dagster's records on disk"].value > 0
