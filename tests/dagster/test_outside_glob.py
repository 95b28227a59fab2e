"""Files that `raw.glob` leaves out are counted and named; those that look like batches make the check warn."""

from __future__ import annotations

import json
import os
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner

from lance_ops.cli import app
from lance_ops.dagster import batch_states
from lance_ops.dagster.declaration import RawFiles
from lance_ops.dagster.landing.landing import group_files
from lance_ops.dagster.landing.outside_glob import OutsideGlob, outside_glob
from tests.dagster.deployment import LANDED, Deployment, values
from tests.dagster.test_landing import NOW, landed

pytestmark = pytest.mark.dagster


def outside(glob: str, *paths: str, **declared: str) -> tuple[str, ...]:
    raw = RawFiles.model_validate({"uri": "/in", "glob": glob, **declared})
    return group_files(raw, [landed(path) for path in paths], NOW).outside.files


def land(deployment: Deployment, name: str) -> None:
    path = deployment.landing / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"id\n1\n")
    os.utime(path, (LANDED,) * 2)


def reported(deployment: Deployment) -> list[dg.AssetCheckEvaluation]:
    events = deployment.tick("settled").events
    found = [event for event in events if isinstance(event, dg.AssetCheckEvaluation)]
    return [each for each in found if each.check_name == "landing_readable"]


def test_files_that_the_glob_leaves_out_are_named_and_hidden_ones_and_markers_are_not() -> None:
    paths = ("a.csv", "b.CSV", "c.csv.tmp", "old/d.csv", "_SUCCESS", ".e.csv.gz", "_old/f.csv", "DONE", "x/DONE")
    assert outside("*.csv", *paths, marker="DONE") == ("b.CSV", "c.csv.tmp", "old/d.csv")


def test_a_file_that_may_still_be_written_is_not_counted() -> None:
    files = [landed("young.tmp", 59), landed("empty.tmp", size_bytes=0), landed("old.tmp", 60)]
    found = group_files(RawFiles(uri="/in", glob="*.csv"), files, NOW).outside
    assert (found.num_files, found.files) == (1, ("old.tmp",))


def test_nothing_is_outside_a_glob_that_matches_all() -> None:
    assert outside("**", "a.csv", "b.CSV", "c/d") == ()


@pytest.mark.parametrize(
    ("glob", "path", "is_near_miss"),
    [
        ("*.csv", "day.csv.gz", True),
        ("*.csv", "day.CSV", True),
        ("*.csv", "DAY.CSV.ZST", True),
        ("*.csv.gz", "day.csv", True),
        ("trips-*.parquet", "Trips-1.parquet", True),
        ("*/*.csv", "2024/day.csv.gz", True),
        ("*.gz", "day.GZ", True),
        ("*.gz", "readme.txt", False),
        ("**/*.zip", "old/readme.txt", False),
        ("*.csv", "day.csv.tmp", False),
        ("*.csv", "old/day.csv", False),
        ("*.csv", "readme.txt", False),
        ("*.csv", "readme.TXT.gz", False),
        ("trips-*.parquet", "rides-1.parquet", False),
    ],
)
def test_a_file_is_near_miss_that_differs_only_in_case_or_compression(
    glob: str, path: str, *, is_near_miss: bool
) -> None:
    found = outside_glob(glob, [path])
    assert (found.num_files, found.files) == (1, (path,))
    assert found.near_misses == ((path,) if is_near_miss else ())


def test_a_few_files_are_named_and_all_are_counted() -> None:
    found = outside_glob("*.csv", [*(f"{number}.txt" for number in range(9)), "b.csv.gz", "a\n.CSV"])
    of_all, of_near_misses = found.sentences
    assert of_all == "raw.glob (*.csv) leaves out 11 files: 0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 6 more"
    assert of_near_misses.startswith(
        "raw.glob leaves out 2 files for case or compression alone: a\\u{a}.CSV, b.csv.gz; rename"
    )
    assert OutsideGlob().sentences == ()


def test_a_compressed_file_beside_the_glob_is_named_by_the_sensor_the_check_and_the_command(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.land("a", range(3))
    assert deployment.tick().new_partitions == ("a",)
    land(deployment, "b.parquet.gz")
    land(deployment, "old/c.parquet")
    assert "for case or compression alone: b.parquet.gz" in (deployment.tick().skip_message or "")
    check = deployment.check()["landing_readable"]
    assert not check.passed and check.severity is dg.AssetCheckSeverity.WARN
    assert "b.parquet.gz" in (check.description or "")
    metadata = values(check.metadata)
    assert metadata.pop("lance/listing_seconds") > 0
    assert metadata == {
        "lance/set_aside": 0,
        "lance/outside_glob": 2,
        "lance/outside_glob_files": ["b.parquet.gz", "old/c.parquet"],
        "lance/outside_glob_near_misses": 1,
        "lance/outside_glob_near_misses_files": ["b.parquet.gz"],
    }
    declaration = tmp_path / "trips.yaml"
    declaration.write_text(deployment.config.model_dump_json(exclude={"write", "maintenance", "health"}))
    shown = CliRunner().invoke(app, ["batches", str(declaration)], env={"DAGSTER_HOME": None})
    assert shown.exit_code == 0, "a batch that is landed needs nobody"
    assert "leaves out 2 files: b.parquet.gz, old/c.parquet" in shown.output
    told = CliRunner().invoke(app, ["batches", str(declaration), "--json"], env={"DAGSTER_HOME": None})
    assert json.loads(told.output)["outside_glob"]["near_misses"] == ["b.parquet.gz"]


def test_a_file_in_a_folder_is_named_and_the_check_passes(deployment: Deployment) -> None:
    land(deployment, "old/c.parquet")
    check = deployment.check()["landing_readable"]
    assert check.passed
    assert check.description == "no file is set aside. raw.glob (*.parquet) leaves out 1 file: old/c.parquet"
    assert batch_states(deployment.config, deployment.instance).outside.num_files == 1


def test_the_sensor_reports_a_file_that_looks_like_a_batch_and_no_growth_of_a_folder_of_handled_files(
    deployment: Deployment,
) -> None:
    assert [each.passed for each in reported(deployment)] == [True]
    land(deployment, "old/a.parquet")
    assert [each.passed for each in reported(deployment)] == [True]
    land(deployment, "old/b.parquet")
    assert reported(deployment) == []
    land(deployment, "c.PARQUET")
    assert [(each.passed, each.severity) for each in reported(deployment)] == [(False, dg.AssetCheckSeverity.WARN)]
    (deployment.landing / "c.PARQUET").unlink()
    assert [each.passed for each in reported(deployment)] == [True]
