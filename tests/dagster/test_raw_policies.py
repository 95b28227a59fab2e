"""What a declaration says about text, columns and unexpected batches reaches the sensor and backfills."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.dagster import batch_states
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.landing import batches, tick
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.dagster.landing.landing_entries import LandedBatch
from lance_ops.maintenance.ingest import IngestResult
from lance_ops.runners import Runner
from tests.dagster.deployment import LANDED, Deploy, Deployment, values

pytestmark = pytest.mark.dagster


def land_text(deployment: Deployment, name: str, text: str) -> Path:
    """Land a text file, a minute newer than the one before."""
    deployment.minute += 1
    path = deployment.landing / name
    path.write_text(text)
    os.utime(path, (LANDED + 60 * deployment.minute,) * 2)
    return path


def test_text_columns_and_types_are_read_as_declared_by_sensor_and_backfill(deploy: Deploy) -> None:
    text = {"delimiter": ";", "header": False, "null_values": ["-"], "date_formats": ["%d.%m.%Y"]}
    deployment = deploy(
        raw={"glob": "*.csv", "text": text, "schema_mode": "add"},
        write={"columns": {"code": "string", "day": "date32:day"}},
    )
    land_text(deployment, "a.csv", "007;03.02.2026\n008;-\n")
    deployment.tick()
    rows = [{"code": "007", "day": datetime(2026, 2, 3, tzinfo=UTC).date()}, {"code": "008", "day": None}]
    assert deployment.data.to_table().to_pylist() == rows
    land_text(deployment, "b.csv", "009;04.02.2026\n")
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["b"])
    deployment.ingest("b")
    assert deployment.data.schema.field("day").type == pa.date32()
    assert deployment.data.count_rows() == 3


def test_a_rewritten_batch_exchanges_its_rows_in_one_version(deploy: Deploy) -> None:
    deployment = deploy(raw={"changed": "replace"}, write={"batch_column": "batch"})
    deployment.land("a", range(3))
    deployment.land("b", range(3, 6))
    deployment.tick()
    deployment.land("a", range(10, 12))
    ticked = deployment.tick()
    assert (ticked.new_partitions, [request.partition_key for request in ticked.run_requests]) == ((), ["a"])
    assert deployment.data.version == 2
    rows = deployment.data.to_table().select(["batch", "id"]).to_pylist()
    assert sorted((row["batch"], row["id"]) for row in rows) == [("a", 10), ("a", 11), ("b", 3), ("b", 4), ("b", 5)]
    assert deployment.tick().run_requests == ()
    deployment.land("b", range(1))
    deployment.ingest("a", "b")
    assert sorted(deployment.data.to_table()["id"].to_pylist()) == [0, 10, 11], "a backfill replaces it, too"


@pytest.mark.parametrize("changed", ["refuse", "append", "replace"])
def test_a_file_that_is_rewritten_with_an_older_time_is_found(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    write = {"batch_column": "batch"} if changed == "replace" else {}
    deployment = deploy(raw={"changed": changed}, write=write)
    first = deployment.land("a", range(3))
    before = first.read_bytes(), first.stat().st_mtime
    deployment.minute = 9
    deployment.land("b", range(3, 6))
    deployment.tick()
    deployment.minute = 5
    deployment.land("a", range(10, 12))
    nothing = deployment.tick()
    assert (nothing.runs, nothing.events) == ((), ()), "all batches were compared a moment ago"
    monkeypatch.setattr(tick, "_COMPARISON_INTERVAL", timedelta(0))
    found = deployment.tick()
    assert [bool(found.events), bool(found.runs)] == [changed == "refuse", changed != "refuse"]
    again = deployment.tick()
    assert (again.runs, again.events) == ((), ()), "it is reported once, and asked for once"
    ids = {"refuse": [0, 1, 2], "append": [0, 1, 2, 10, 11], "replace": [10, 11]}[changed]
    assert sorted(deployment.data.to_table()["id"].to_pylist()) == sorted([*ids, 3, 4, 5])
    first.write_bytes(before[0])
    os.utime(first, (before[1], before[1]))
    back = deployment.tick()
    asked = [{request.run_key for request in ticked.run_requests} for ticked in (found, back)]
    assert asked[0].isdisjoint(asked[1]), "Dagster launches a run key once"
    assert len(back.runs) == (changed == "replace")
    assert deployment.data.count_rows() == {"refuse": 6, "append": 8, "replace": 6}[changed]


def test_a_rewritten_batch_that_was_set_aside_is_not_asked_for_again(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick, "_COMPARISON_INTERVAL", timedelta(0))
    deployment = deploy(raw={"changed": "replace"}, write={"batch_column": "batch"})
    deployment.land("a", range(3))
    deployment.tick()
    path = deployment.land("a", range(3))
    landed_at = path.stat().st_mtime
    path.write_bytes(b"junk")
    os.utime(path, (landed_at, landed_at))
    assert [len(deployment.tick(raise_on_error=False).runs) for _ in range(3)] == [1, 0, 0]
    assert deployment.data.count_rows() == 3


@pytest.mark.usefixtures("without_pauses")
def test_rewritten_batches_whose_runs_keep_failing_do_not_hold_up_others(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick, "_COMPARISON_INTERVAL", timedelta(0))
    deployment = deploy(raw={"changed": "replace", "max_files_per_tick": 1}, write={"batch_column": "batch"})
    landed_at = {}
    for number, key in enumerate("ab"):
        landed_at[key] = deployment.land(key, range(10 * number, 10 * number + 3)).stat().st_mtime
    for _ in "ab":
        deployment.tick()
    deployment.land("z", range(90, 91))
    deployment.tick()
    for number, key in enumerate("ab"):
        path = deployment.land(key, range(10 * number, 10 * number + 2), city="La Chaux-de-Fonds")
        os.utime(path, (landed_at[key],) * 2)

    def only_b(config: DatasetConfig, landed: Sequence[LandedBatch], runner: Runner) -> IngestResult:
        if landed[0].key == "a":
            raise RuntimeError("the machine is on fire")
        return ingest_landed(config, landed, runner)

    ingest_landed = batches._ingest
    monkeypatch.setattr(batches, "_ingest", only_b)
    asked = [
        [request.partition_key for request in deployment.tick(raise_on_error=False).run_requests] for _ in range(7)
    ]
    assert asked == [["a"]] * 5 + [["b"], []]
    assert sorted(deployment.data.to_table()["id"].to_pylist()) == [0, 1, 2, 10, 11, 90]


def test_a_rewritten_batch_whose_run_was_cancelled_is_left_to_a_person(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick, "_COMPARISON_INTERVAL", timedelta(0))
    deployment = deploy(raw={"changed": "replace"}, write={"batch_column": "batch"})
    landed_at = deployment.land("a", range(3)).stat().st_mtime
    deployment.tick()
    os.utime(deployment.land("a", range(2), city="La Chaux-de-Fonds"), (landed_at,) * 2)
    run = deployment.add_run("a", dg.DagsterRunStatus.STARTED)
    assert deployment.tick().run_requests == (), "its run is under way"
    deployment.instance.report_run_canceled(run)
    assert deployment.tick().run_requests == ()
    (state,) = batch_states(deployment.config, deployment.instance).unsettled
    assert (state.key, state.state.value) == ("a", "failed")
    deployment.ingest("a")
    assert batch_states(deployment.config, deployment.instance).unsettled == ()


def test_rows_are_merged_by_key_by_sensor_and_backfill(deploy: Deploy) -> None:
    deployment = deploy(write={"mode": "upsert", "keys": ["id"]})
    deployment.land("a", range(3))
    deployment.land("b", range(2, 5), city="Basel")
    (run,) = deployment.tick().runs
    events = run.asset_materializations_for_node("trips__batches")
    merged = [values(each.metadata) for each in events if each.asset_key == deployment.names.batches]
    assert [each["lance/inserted_rows"] for each in merged] == [5, 5], "of the run, on each of its partitions"
    assert [row["city"] for row in rows_of(deployment)] == ["Bern", "Bern", "Basel", "Basel", "Basel"]
    deployment.land("c", range(1), city="Chur")
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["c"])
    deployment.ingest("a", "c")
    assert [row["city"] for row in rows_of(deployment)] == ["Chur", "Bern", "Basel", "Basel", "Basel"]
    assert deployment.check()["batches_exactly_once"].passed


def rows_of(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the table's rows in the order of their ids."""
    found: list[dict[str, Any]] = deployment.data.to_table().sort_by("id").to_pylist()
    return found


def test_the_history_of_each_key_is_kept_by_sensor_and_backfill(deploy: Deploy) -> None:
    deployment = deploy(raw={"glob": "*.csv"}, write={"mode": "scd2", "keys": ["id"]})
    land_text(deployment, "a.csv", "id,city,valid_from\n1,Bern,2026-01-01\n2,Bern,2026-01-01\n")
    land_text(deployment, "c.csv", "id,city,valid_from\n1,Chur,2026-03-01\n")
    deployment.tick()
    assert history_of(deployment) == {1: [("Bern", 1, 3, False), ("Chur", 3, None, True)], 2: [("Bern", 1, None, True)]}
    land_text(deployment, "b.csv", "id,city,valid_from\n1,Basel,2026-02-01\n")
    deployment.tick()
    assert history_of(deployment)[1] == [("Bern", 1, 2, False), ("Basel", 2, 3, False), ("Chur", 3, None, True)]
    (late,) = (batch.key for batch in batch_states(deployment.config, deployment.instance).batches if batch.is_late)
    version = deployment.data.version
    deployment.ingest("b")
    assert (late, deployment.data.version) == ("b", version), "a batch is in the table once"
    land_text(deployment, "d.csv", "id,city\n1,Biel\n")
    deployment.tick(raise_on_error=False)
    (refused,) = batch_states(deployment.config, deployment.instance).unsettled
    assert (refused.key, refused.state.value) == ("d", "quarantined")
    assert "valid_from" in refused.reason and "d.csv" in refused.reason


def history_of(deployment: Deployment) -> dict[int, list[tuple[str, int, int | None, bool]]]:
    """Return the rows of each id in their order: city, the months in which they begin and end, and `current`."""
    found: dict[int, list[tuple[str, int, int | None, bool]]] = {}
    for row in deployment.data.to_table().sort_by([("id", "ascending"), ("valid_from", "ascending")]).to_pylist():
        end = row["valid_to"]
        told = (row["city"], row["valid_from"].month, None if end is None else end.month, row["current"])
        found.setdefault(row["id"], []).append(told)
    return found


@pytest.mark.parametrize("policy", ["fill", "refuse"])
def test_a_file_that_lacks_a_column_is_filled_or_set_aside_as_declared(deploy: Deploy, policy: str) -> None:
    deployment = deploy(raw={"glob": "*.csv", "missing_columns": policy})
    land_text(deployment, "a.csv", "id,city\n1,Bern\n")
    deployment.tick()
    land_text(deployment, "b.csv", "id\n2\n")
    land_text(deployment, "c.csv", "id,city\n3,Chur\n")
    deployment.tick(raise_on_error=policy == "fill")
    filled = [("b", {"id": 2, "city": None})] if policy == "fill" else []
    rows = {row["id"]: row for row in rows_of(deployment)}
    assert [*rows] == [1, *(2 for _ in filled), 3], "the other batch of the tick is in the table"
    assert all(rows[row["id"]] == row for _, row in filled)
    unsettled = batch_states(deployment.config, deployment.instance).unsettled
    assert [(batch.key, batch.state.value) for batch in unsettled] == ([] if filled else [("b", "quarantined")])
    assert all("city" in batch.reason and "b.csv" in batch.reason for batch in unsettled)


def test_the_newest_batch_is_the_whole_table_if_so_declared(deploy: Deploy) -> None:
    deployment = deploy(raw={"schema_mode": "overwrite"})
    deployment.land("a", range(3))
    deployment.land("b", range(5))
    assert deployment.tick().new_partitions == ("b",), "an older batch is not asked for"
    deployment.location.cursors.clear()
    assert deployment.tick().run_requests == ()
    deployment.land("c", range(7))
    deployment.tick()
    assert (deployment.data.version, deployment.data.count_rows()) == (2, 7)


@pytest.mark.parametrize(
    ("empty", "ready", "waiting", "left_out"),
    [("wait", [], ["a"], ()), ("refuse", ["a"], [], ()), ("ignore", [], [], ("a.csv",))],
)
def test_a_file_of_0_bytes_waits_is_refused_or_is_left_out(
    tmp_path: Path, empty: str, ready: list[str], waiting: list[str], left_out: tuple[str, ...]
) -> None:
    (tmp_path / "a.csv").touch()
    (tmp_path / "new.csv").touch()
    os.utime(tmp_path / "a.csv", (LANDED,) * 2)
    raw = DatasetConfig.model_validate({"name": "t", "uri": "x", "raw": {"uri": str(tmp_path), "empty": empty}})
    landing = list_landing(raw.landing(), datetime.fromtimestamp((tmp_path / "new.csv").stat().st_mtime, UTC))
    assert [batch.key for batch in landing.ready] == ready
    assert [batch.key for batch in landing.waiting] == [*waiting, "new"], "a new file is still being written"
    assert landing.empty == left_out
