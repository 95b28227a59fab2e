"""`plan` and `execute` on the command line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from lance_ops.api import dataset, write_dataset
from tests.cli.test_cli import answer, run, text


def test_a_plan_is_shown_stored_and_executed(dataset_uri: str, tmp_path: Path) -> None:
    write_dataset(pa.table({"x": range(12)}), dataset_uri, max_rows_per_file=4)
    file = str(tmp_path / "plan.json")
    shown = text("plan", dataset_uri, "delete_rows", "predicate=x < 2", "reason=r", "--save", file)
    assert "delete 2 of 12 rows" in shown
    assert f"stored: lance-ops execute {dataset_uri} {file}" in shown
    assert dataset(dataset_uri).version == 1
    assert answer("execute", dataset_uri, file)["facts"] == {"matching_rows": 2}
    assert dataset(dataset_uri).count_rows() == 10
    refused = run("execute", dataset_uri, file)
    assert refused.exit_code == 1
    assert "planned on version 1" in refused.stderr


def test_a_verb_and_its_options_are_checked(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1]}), dataset_uri)
    assert "there is no verb 'nothing': use one of delete_rows" in run("plan", dataset_uri, "nothing").stderr
    assert run("plan", dataset_uri, "compact", "word").exit_code == 2
