"""The commands that look at a table: its properties, versions, health, debts and damages."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from typer.core import TyperGroup
from typer.main import get_command

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.cli import app, arguments
from lance_ops.cli.changing import fleet_command
from lance_ops.cli.looking import top_command
from lance_ops.cli.output import print_json
from lance_ops.errors import StoreUnreachable
from lance_ops.store import with_short_timeouts
from tests.cli.calls import answer, run, text


def test_inspect_shows_the_dataset_s_properties(flights: str) -> None:
    shown = text("inspect", flights)
    assert "version    3 of 3" in shown
    assert "10 live, 2 deleted" in shown
    assert "v1 (version 2)" in shown
    for line in ("0 x int64 allowed", "1 carrier string allowed", "x_idx BTree x 100%"):
        assert line in " ".join(shown.split())


def test_inspect_as_json_has_every_fact(flights: str) -> None:
    facts = answer("inspect", flights)
    assert (facts["version"], facts["num_rows"], facts["num_deleted_rows"], facts["num_fragments"]) == (3, 10, 2, 3)
    assert facts["tags"] == {"v1": 2}
    assert [index["name"] for index in facts["indices"]] == ["x_idx"]
    assert facts["schema"][0] == {"id": 0, "name": "x", "type": "int64", "nullable": True}


def test_inspect_accepts_a_version_or_a_tag(flights: str) -> None:
    assert answer("inspect", flights, "--version", "1")["num_deleted_rows"] == 0
    assert answer("inspect", flights, "--version", "v1")["version"] == 2


def test_versions_lists_the_datasets_history(flights: str) -> None:
    lines = [line.split() for line in text("versions", flights).splitlines()]
    rows = {line[0]: line for line in lines if line[0].isdecimal()}
    assert list(rows) == ["1", "2", "3"]
    assert "v1" in rows["2"]
    assert "100%" in rows["3"]
    summaries = answer("versions", flights)
    assert [summary["num_rows"] for summary in summaries] == [12, 10, 10]
    assert [summary["batches"] for summary in summaries] == [["day"], [], []]
    assert [summary["version"] for summary in answer("versions", flights, "--limit", "1")] == [3]


def test_health_names_findings_and_fails_where_asked_to(flights: str) -> None:
    shown = text("health", flights)
    assert "16.7% of the stored rows are deleted" in " ".join(shown.split())
    assert "compact" in shown
    assert run("health", flights, "--fail-on", "warning").exit_code == 1
    assert run("health", flights, "--fail-on", "error").exit_code == 0
    report = answer("health", flights)
    assert report["findings"][0]["severity"] == "warning"
    assert report["deleted_ratio"] == pytest.approx(2 / 12)


def test_a_dataset_without_findings_is_healthy(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1]}), dataset_uri)
    assert "healthy" in text("health", dataset_uri, "--fail-on", "warning")


def test_verify_reports_a_complete_version(flights: str) -> None:
    assert "version 3 is whole" in text("verify", flights)
    assert answer("verify", flights, "--version", "1")["ok"] is True
    assert answer("verify", flights, "--version", "v1", "--quick", "--all-versions")["versions"] == [1, 2, 3]


def test_verify_goes_on_part_by_part(flights: str) -> None:
    numbers = np.random.default_rng(1).integers(0, 1 << 62, 200_000)
    dataset(flights).insert(pa.table({"x": numbers, "carrier": ["DL"] * len(numbers)}))
    part = answer("verify", flights, "--max-megabytes", "1")["next_part"]
    assert part is not None
    shown = text("verify", flights, "--max-megabytes", "1")
    assert "version 4 is whole" in shown and f"other files are left: go on with --first-part {part}" in shown
    assert answer("verify", flights, "--max-megabytes", "1", "--first-part", str(part))["ok"] is True
    assert "first_part belongs to max_megabytes" in run("verify", flights, "--first-part", "1").stderr


def test_debt_prices_what_is_owed_and_can_fail_a_script(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": range(3)}), dataset_uri)
    assert "compact" not in text("debt", dataset_uri, "--fail-if-owed")
    for number in range(12):
        write_dataset(pa.table({"x": [number]}), dataset_uri, mode="append")
    result = run("debt", dataset_uri, "--fail-if-owed", "--orphans")
    assert result.exit_code == 1 and "13 of 13 fragments are small" in result.stdout
    found = answer("debt", dataset_uri, "--target-rows", "5")
    # Rows are merged to three fragments of five rows.
    assert found["dues"][0]["step"] == "compact" and found["dues"][0]["gain_bytes"] == 10 * 4 * 1024**2
    assert found["read_amplification"] == pytest.approx(13 / 3, rel=0.01)


@pytest.mark.parametrize("command", ["health", "versions", "inspect", "debt"])
def test_a_newest_version_that_does_not_open_is_told_with_the_commands_that_mend_it(
    tmp_path: Path, command: str
) -> None:
    write_dataset(pa.table({"x": [1]}), str(tmp_path / "of lance-ops"))
    (manifest,) = (tmp_path / "of lance-ops" / "_versions").glob("*.manifest")
    manifest.write_bytes(b"junk")
    result = run(command, str(tmp_path / "of lance-ops"))
    assert result.exit_code == 1 and manifest.name in result.stderr
    assert result.stderr.count("`lance-ops verify`") == result.stderr.count("`lance-ops repair`") == 1


_LOOKS = (
    "inspect URI",
    "versions URI",
    "diff URI 1",
    "query URI",
    "count URI",
    "statistics URI",
    "health URI",
    "debt URI",
    "report URI",
    "top URI --once",
    "tags list URI",
    "branches list URI",
    "plan URI delete_rows predicate=true reason=r",
    "duplicates URI --on x",
    "duplicates URI --on x --keep first --dry-run",
    "delete URI true --dry-run",
    "update URI x=1 --dry-run",
    "add-columns URI y=1 --dry-run",
    "merge URI rows.parquet --on x --dry-run",
    "compact URI --dry-run",
    "reindex URI --dry-run",
    "cleanup URI --dry-run",
    "restore URI 1 --dry-run",
    "migrate URI --data-storage-version 2.2 --dry-run",
    "erase URI x=1 --dry-run",
    "ingest URI rows.parquet --dry-run",
    "clone URI copy.lance --dry-run",
    "upkeep URI --dry-run",
    "fleet URI --dry-run",
    "tags create URI a --dry-run",
    "tags update URI a --dry-run",
    "tags delete URI a --dry-run",
    "branches create URI a --dry-run",
    "branches delete URI a --dry-run",
    "verify URI --dry-run",
    "repair URI --dry-run",
)
"""Every command that changes nothing, but `verify`, which reads all files."""


def test_every_command_with_a_dry_run_is_held_to_the_time_of_a_look() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    named = {
        f"{name} {below}".strip()
        for name, command in group.commands.items()
        for below, each in getattr(command, "commands", {"": command}).items()
        if any("--dry-run" in param.opts for param in each.params)
    }
    assert named == {line.partition(" URI")[0] for line in _LOOKS if line.endswith("--dry-run")}


@pytest.mark.parametrize("line", _LOOKS)
def test_a_command_that_only_looks_waits_for_its_store_no_longer_than_a_minute(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, str]] = []

    def unreachable(*arguments: object, storage_options: dict[str, str], **_: object) -> LanceDataset:
        given.append(storage_options)
        raise StoreUnreachable("s3://bucket/t: the store does not answer")

    monkeypatch.setattr(arguments, "dataset", unreachable)
    monkeypatch.setattr(arguments, "AbsentTable", SimpleNamespace(at=unreachable))
    monkeypatch.setattr(top_command, "measure_fleet", unreachable)
    monkeypatch.setattr(fleet_command, "maintain", unreachable)
    uri = "s3://bucket/t"
    words = [uri if word == "URI" else word for word in line.split()]
    for told in ({}, {"request_timeout": "90s"}):
        found = run(*words, *(part for name, limit in told.items() for part in ("--storage-option", f"{name}={limit}")))
        assert (found.exit_code, found.stderr) == (1, "error: s3://bucket/t: the store does not answer\n")
        assert given.pop() == with_short_timeouts(uri, told) != told


def test_json_has_texts_for_numbers_that_json_lacks(dataset_uri: str) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    values = [float("nan"), float("inf"), float("-inf"), 1.5, None]
    write_dataset(pa.table({"v": values, "s": [{"l": [value]} for value in values]}), dataset_uri)
    lines = text("query", dataset_uri, "--json").splitlines()
    rows = [json.loads(line, parse_constant=refuse) for line in lines]
    shown = ["NaN", "Infinity", "-Infinity", 1.5, None]
    assert [row["v"] for row in rows] == shown and [row["s"]["l"] for row in rows] == [[each] for each in shown]
    found = json.loads(text("statistics", dataset_uri, "--json", "--column", "v"), parse_constant=refuse)
    assert found["v"]["num_nulls"] == 1


def test_print_json_writes_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"ratio": float("nan"), "all": (1.0, float("inf"))})
    assert json.loads(capsys.readouterr().out) == {"ratio": "NaN", "all": [1.0, "Infinity"]}
