"""The commands that maintain a table, step by step and by what is owed, and those beneath a root."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.cli import extras
from lance_ops.cli.changing import change_commands
from lance_ops.core.errors import StoreError
from lance_ops.maintenance.cleanup import CleanupStats
from lance_ops.maintenance.debt import payment
from lance_ops.maintenance.indexing import TaskSizes
from lance_ops.maintenance.indexing.segment_builder import SegmentBuilder
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from tests.cli.calls import answer, outcome, run, said, text
from tests.pickling_runner import PicklingRunner


def test_cleanup_removes_named_versions_and_compact_leaves_fragments_alone(flights: str) -> None:
    assert answer("cleanup", flights, "--remove-version", "1", "--dry-run")["old_versions"] == [1]
    assert answer("cleanup", flights, "--remove-version", "1", "--yes")["old_versions"] == 1
    assert [each["version"] for each in dataset(flights).versions()] == [2, 3]
    left = ("compact", flights, "--exclude-fragment", "2", "--max-bytes-per-file", "1000000")
    assert outcome(*left, "--data-storage-version", "2.1")["metrics"]["fragments_removed"] == 2
    assert 2 in dataset(flights).snapshot.fragments_by_id


@pytest.mark.parametrize("how", ["--yes", "--dry-run"])
def test_cleanup_of_a_version_that_does_not_exist_fails(flights: str, how: str) -> None:
    refused = run("cleanup", flights, "--remove-version", "999", "--remove-version", "1", how)
    assert refused.exit_code == 1
    assert "has no version 999 to remove: it has 1 to 3" in refused.stderr
    assert [each["version"] for each in dataset(flights).versions()] == [1, 2, 3]


def test_compact_plans_and_then_merges(flights: str) -> None:
    planned = answer("compact", flights, "--dry-run")
    assert planned["dry_run"] and planned["preview"]["after"]["fragments"] == 1
    assert planned["preview"]["sections"][0]["lines"] == [["3", "0 … 2", "10", "2"]]
    assert "rewrite 3 fragments" in text("compact", flights, "--dry-run")
    assert len(dataset(flights).get_fragments()) == 3
    two = answer("compact", flights, "--dry-run", "--max-source-fragments", "2")["preview"]["sections"][0]["lines"]
    assert [line[:2] for line in two] == [["2", "0 … 1"]]
    bounds = ("--max-source-fragments", "3", "--worst-first", "--max-commits", "3", "--max-seconds", "60")
    assert len(answer("compact", flights, "--dry-run", *bounds)["preview"]["sections"][0]["lines"]) == 1
    metrics = answer("compact", flights, *bounds)["metrics"]
    assert (metrics["fragments_removed"], metrics["fragments_added"]) == (3, 1)
    assert dataset(flights).to_table(filter="x = 7").num_rows == 1
    assert "nothing to compact" in text("compact", flights)


def test_compact_sorts_rows_by_columns(flights: str) -> None:
    assert "rewrite 3 fragments, sorted by x" in text("compact", flights, "--cluster-by", "x", "--dry-run")
    column = dataset(flights).schema.names[0]
    assert answer("compact", flights, "--cluster-by", column, "--z-order")["metrics"]["fragments_added"] == 1
    found = dataset(flights).to_table()[column].to_pylist()
    assert found == sorted(found)


def test_reindex_covers_new_rows_and_builds_requested_indices(flights: str) -> None:
    write_dataset(pa.table({"x": [100], "carrier": ["UA"]}), flights, mode="append")
    assert answer("inspect", flights)["indices"][0]["num_unindexed_rows"] == 1
    assert "x_idx (11 rows)" in text("reindex", flights)
    assert "every row is covered" in text("reindex", flights)
    built = answer("reindex", flights, "--create", "carrier", "--type", "BTREE", "--index", "by_carrier")
    assert [index["name"] for index in built["indices"]] == ["by_carrier", "x_idx"]


def test_reindex_gives_its_work_to_the_runner(flights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    masters: list[str | None] = []
    runners: list[object] = []
    chosen, begin = InThreads(1), SegmentBuilder.__init__

    def runner(master: str | None) -> InThreads:
        masters.append(master)
        return chosen

    def recorded(builder: SegmentBuilder, snapshot: Snapshot, given: Runner | None, sizes: TaskSizes) -> None:
        runners.append(given)
        begin(builder, snapshot, given, sizes)

    monkeypatch.setattr(change_commands, "runner", runner)
    monkeypatch.setattr(SegmentBuilder, "__init__", recorded)
    text("reindex", flights, "--create", "carrier", "--spark", "local[2]")
    text("reindex", flights, "--index", "x_idx")
    assert masters == ["local[2]", None]
    assert runners == [chosen, chosen]


def test_reindex_without_an_index_says_how_to_build_one(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1]}), dataset_uri)
    assert "--create" in text("reindex", dataset_uri)


def test_cleanup_shows_and_then_removes_old_versions_but_keeps_tags(flights: str) -> None:
    options = ("cleanup", flights, "--older-than", "0s", "--keep-tagged")
    shown = text(*options, "--dry-run", "--files")
    assert "would remove" in shown and "1 version," in shown
    assert "version 2 is old but tagged: kept" in shown
    assert "_versions/" in shown
    assert answer(*options, "--dry-run")["stats"]["old_versions"] == 1
    assert len(dataset(flights).versions()) == 3
    assert answer(*options)["old_versions"] == 1
    assert [version["version"] for version in dataset(flights).versions()] == [2, 3]


def test_cleanup_stops_at_a_tag_unless_told_otherwise(flights: str) -> None:
    result = run("cleanup", flights, "--older-than", "0s")
    assert result.exit_code == 1
    assert "v1 (version 2)" in result.stderr
    assert len(dataset(flights).versions()) == 3


@pytest.fixture
def owing(dataset_uri: str) -> str:
    """Thirteen fragments of one row each."""
    write_dataset(pa.table({"x": range(13)}), dataset_uri, max_rows_per_file=1)
    return dataset_uri


def test_upkeep_shows_and_then_takes_the_steps_that_a_dataset_owes(owing: str) -> None:
    planned = text("upkeep", owing, "--dry-run")
    assert "would be done" in planned and "13 of 13 fragments are small" in planned
    steps = answer("upkeep", owing, "--dry-run")["steps"]
    assert [each["step"] for each in steps] == ["compact"] and dataset(owing).version == 1
    done = answer("upkeep", owing)
    assert (done["status"], done["spent_bytes"]) == ("done", steps[0]["cost_bytes"])
    (step,) = done["steps"]
    assert step["step"] == "compact" and step["cost_bytes"] == done["spent_bytes"]
    assert 0 < step["moved_bytes"] == done["moved_bytes"]
    assert step["gain_bytes"] == steps[0]["gain_bytes"] and step["saved_read_bytes"] == done["saved_read_bytes"]
    assert done["after"]["read_amplification"] == 1
    assert len(dataset(owing).get_fragments()) == 1
    assert said("upkeep", owing) == said("upkeep", owing, "--dry-run") == "nothing is owed at version 3"


def test_upkeep_stays_within_its_budget(owing: str) -> None:
    for given in ((), ("--dry-run",)):
        assert said("upkeep", owing, "--budget", "10B", *given) == "the budget does not reach for compact"
    assert answer("upkeep", owing, "--budget", "10B")["status"] == "waiting" and dataset(owing).version == 1
    assert "version 1 to 3: rewrote" in text("upkeep", owing, "--budget", "1GiB")


def test_the_tasks_of_upkeep_may_run_elsewhere(owing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = PicklingRunner()
    monkeypatch.setattr(extras, "start_spark", lambda *_: elsewhere, raising=False)
    assert answer("upkeep", owing, "--spark", "local[2]")["status"] == "done" and elsewhere.jobs


def test_a_step_of_upkeep_that_fails_ends_with_its_error(owing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the store is away")

    monkeypatch.setattr(payment, "compact_files", fail)
    result = run("upkeep", owing, "--json")
    assert (result.exit_code, result.stderr) == (1, "error: the store is away\n")
    assert json.loads(result.stdout)["reason"] == "compact: the store is away"
    assert run("upkeep", owing).exit_code == 1


def test_fleet_maintains_the_tables_beneath_a_root_and_fails_beyond_its_threshold(tmp_path: Path) -> None:
    for name, num_rows in (("a", 30), ("b/c", 1)):
        write_dataset(pa.table({"x": range(num_rows)}), str(tmp_path / name), max_rows_per_file=1)
    planned = text("fleet", str(tmp_path), "--dry-run", "--budget", "1GiB")
    assert "planned" in planned and "2 tables" in planned and "b/c" not in planned
    assert "waiting" in text("fleet", str(tmp_path), "--budget", "10B")
    done = answer("fleet", str(tmp_path), "--all")
    assert [(each["table"], each["status"]) for each in done["outcomes"]] == [("a", "done"), ("b/c", "nothing owed")]
    assert len(dataset(str(tmp_path / "a")).get_fragments()) == 1
    left_out = answer("fleet", str(tmp_path), "--exclude", "b/*", "--exclude", "x")
    assert [(each["status"], each["reason"]) for each in left_out["outcomes"]] == [
        ("nothing owed", None),
        ("left out", "excluded by b/*"),
    ]
    for manifest in (tmp_path / "a" / "_versions").glob("*.manifest"):
        manifest.write_bytes(b"junk")
    result = run("fleet", str(tmp_path))
    assert result.exit_code == 1 and "50% of the tables failed, more than 10%" in result.stdout


def test_a_clean_up_that_failed_to_delete_answers_in_json_alone(flights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = LanceDataset.cleanup_old_versions

    def failing(self: LanceDataset, **options: Any) -> CleanupStats:
        return replace(clean(self, **options), failed_deletes=2)

    monkeypatch.setattr(LanceDataset, "cleanup_old_versions", failing)
    result = run("cleanup", flights, "--older-than", "0s", "--keep-tagged", "--yes", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["failed_deletes"] == 2
