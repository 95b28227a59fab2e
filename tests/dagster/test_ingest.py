from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pyarrow.parquet
import pytest

from lance_ops.dagster.landing import batches as landing_batches
from lance_ops.dagster.landing import failed_run_checks
from lance_ops.maintenance import ingested_batches
from tests.dagster.deployment import Deploy, Deployment, check_results, values

pytestmark = pytest.mark.dagster


def test_a_backlog_becomes_one_run_and_one_version(deployment: Deployment) -> None:
    for day in range(5):
        deployment.land(f"day-{day}", range(day * 10, day * 10 + 10))
    ticked = deployment.tick()
    assert len(ticked.runs) == 1
    assert ticked.new_partitions == tuple(f"day-{day}" for day in range(5))
    assert deployment.data.version == 1
    assert sorted(deployment.data.to_table()["id"].to_pylist()) == list(range(50))
    assert deployment.instance.get_materialized_partitions(deployment.names.batches) == set(ticked.new_partitions)


def test_a_run_that_names_no_batch_says_how_to_name_one(deployment: Deployment) -> None:
    result = deployment.location.run(deployment.names.of("ingest"), raise_on_error=False)
    (failure,) = (event.step_failure_data for event in result.all_node_events if event.is_step_failure)
    assert failure.error is not None
    assert "dg launch --job trips_ingest --partition KEY" in failure.error.message
    assert "the sensor trips_raw_files" in failure.error.message


def test_each_partition_records_its_rows_token_and_files(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.land("b", range(3, 10))
    deployment.tick()
    found = deployment.instance.fetch_materializations(dg.AssetRecordsFilter(deployment.names.batches), limit=10)
    events = [record.asset_materialization for record in found.records]
    metadata = {event.partition: values(event.metadata) for event in events if event}
    assert metadata["a"]["dagster/partition_row_count"] == 3
    assert metadata["b"]["dagster/partition_row_count"] == 7
    assert metadata["a"]["lance/batch_token"] != metadata["b"]["lance/batch_token"]
    assert metadata["a"]["lance/raw_files"] == 1
    assert metadata["a"]["lance/version"] == 1


def test_a_run_lists_the_partitions_as_often_for_many_batches_as_for_few(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    listings: list[str] = []
    list_all = dg.DagsterInstance.get_dynamic_partitions

    def counted(self: dg.DagsterInstance, partitions_def_name: str) -> Sequence[str]:
        listings.append(partitions_def_name)
        return list_all(self, partitions_def_name)

    def listings_of_a_backlog(*keys: str) -> int:
        for number, key in enumerate(keys):
            deployment.land(key, range(number, number + 1))
        before = len(listings)
        (run,) = deployment.tick().runs
        events = run.get_asset_materialization_events()
        assert {event.partition for event in events if event.partition} == {*keys}
        return len(listings) - before

    monkeypatch.setattr(dg.DagsterInstance, "get_dynamic_partitions", counted)
    few = listings_of_a_backlog("a", "b")
    assert listings_of_a_backlog(*[f"m{number}" for number in range(12)]) == few > 0


def test_the_head_gets_one_event_with_the_version_and_the_standard_metadata(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    assert deployment.head_versions() == [1]
    event = deployment.instance.get_latest_materialization_event(deployment.names.head)
    assert event and event.asset_materialization
    assert event.asset_materialization.tags == {"dagster/data_version": "1"}
    metadata = values(event.asset_materialization.metadata)
    assert metadata["dagster/row_count"] == 3
    assert metadata["dagster/table_name"] == "trips"
    assert metadata["dagster/uri"] == deployment.config.uri
    assert [column.name for column in metadata["dagster/column_schema"].columns] == ["id", "city"]
    assert metadata["lance/operation"] == "Overwrite"
    assert metadata["lance/seconds"] >= 0
    assert "| 1 |" in metadata["lance/timeline"]


def test_a_replayed_partition_makes_no_version_and_duplicates_no_row(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    deployment.ingest("a")
    assert deployment.data.version == 1
    assert deployment.data.count_rows() == 3
    assert deployment.head_versions() == [1]
    event = deployment.instance.get_latest_materialization_event(deployment.names.batches)
    assert event and event.asset_materialization
    metadata = values(event.asset_materialization.metadata)
    assert metadata["lance/replayed"] is True
    assert metadata["dagster/partition_row_count"] == 3, "carried on from the first time"


def test_a_backfill_of_old_and_new_partitions_ingests_the_new_ones(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    deployment.land("b", range(3, 5))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["b"])
    deployment.ingest("a", "b")
    assert deployment.data.version == 2
    assert sorted(deployment.data.to_table()["id"].to_pylist()) == [0, 1, 2, 3, 4]


def test_a_partition_whose_files_are_gone_fails_and_says_so(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["a"])
    (deployment.landing / "a.parquet").unlink()
    with pytest.raises(dg.Failure, match="1 of 1 batches have no such files"):
        deployment.ingest("a")


def test_a_repeated_run_of_one_batch_records_it_although_its_files_are_gone(deployment: Deployment) -> None:
    deployment.fill(1)  # a run that died after its commit recorded nothing
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["d0"])
    (deployment.landing / "d0.parquet").unlink()
    assert deployment.ingest("d0").success
    event = deployment.instance.get_latest_materialization_event(deployment.names.batches)
    assert event and event.asset_materialization and event.asset_materialization.partition == "d0"
    metadata = values(event.asset_materialization.metadata)
    assert metadata["lance/replayed"] is True and metadata["lance/skipped_batches"] == 1
    assert metadata["lance/batch_token"]
    assert (deployment.data.version, deployment.data.count_rows()) == (1, 10)


def test_a_replay_without_files_repeats_the_row_count(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    (deployment.landing / "a.parquet").unlink()
    deployment.ingest("a")
    event = deployment.instance.get_latest_materialization_event(deployment.names.batches)
    assert event and event.asset_materialization
    assert values(event.asset_materialization.metadata)["dagster/partition_row_count"] == 3


def test_a_replay_of_many_batches_asks_dagster_for_no_more_events_than_it_reads_at_once(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, keys = deployment.names.batches, [f"d{number}" for number in range(5)]
    for number, key in enumerate(keys):
        counted = {"dagster/partition_row_count": number}
        event = dg.AssetMaterialization(batches, partition=key, metadata=counted)
        deployment.instance.report_runless_asset_event(event)
    monkeypatch.setattr(landing_batches, "_PARTITIONS_AT_ONCE", 2)
    monkeypatch.setenv("MAX_LIMIT_GET_EVENT_RECORDS", "8")
    found = landing_batches._recorded_rows(deployment.instance, batches, keys)
    assert found == {key: number for number, key in enumerate(keys)}


def test_a_repeated_run_records_its_batches_although_files_of_one_are_gone(deployment: Deployment) -> None:
    deployment.fill(3)  # a run that died after its commits recorded nothing
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["d0", "d1", "d2"])
    (deployment.landing / "d1.parquet").unlink()
    assert deployment.ingest("d0", "d2").success
    assert deployment.instance.get_materialized_partitions(deployment.names.batches) == {"d0", "d1", "d2"}
    assert deployment.data.count_rows() == 30

    deployment.land("d3", range(3))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["d3", "d4"])
    with pytest.raises(dg.Failure, match="1 of 3 batches have no such files in .*: d4;"):
        deployment.ingest("d2", "d4")
    assert deployment.instance.get_materialized_partitions(deployment.names.batches) == {"d0", "d1", "d2", "d3"}
    assert deployment.data.count_rows() == 33, "the batch that is there was ingested"


def test_a_run_that_lost_a_batch_and_sets_one_aside_names_both(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.land("b", range(1)).write_bytes(b"this is no Parquet")
    os.utime(deployment.landing / "b.parquet", (0, 0))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["a", "b", "c"])
    with pytest.raises(dg.Failure, match=r"(?s)1 of 3 batches have no such files in .*: c;.*1 of 3 batches are set"):
        deployment.ingest("a", "c")
    assert deployment.data.count_rows() == 3


def test_no_older_batch_becomes_the_whole_table_because_the_newest_is_lost(deploy: Deploy) -> None:
    deployment = deploy(raw={"schema_mode": "overwrite"})
    deployment.land("a", range(3))
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["a", "b"])
    with pytest.raises(dg.Failure, match="1 of 2 batches have no such files"):
        deployment.ingest("a", "b")
    assert not Path(deployment.config.uri).exists()


def test_a_partition_whose_files_changed_fails_and_leaves_the_dataset(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    deployment.land("a", range(100))
    with pytest.raises(dg.Failure, match="'a' was ingested in version 1 with other content"):
        deployment.ingest("a")
    assert deployment.data.count_rows() == 3


@pytest.mark.parametrize("changed", ["refuse", "append"])
def test_a_repeated_run_records_what_the_table_holds_of_a_batch_that_changed_since(
    deploy: Deploy, changed: str
) -> None:
    deployment = deploy(raw={"changed": changed})
    deployment.fill(3)  # a run that died after its commits recorded nothing
    held = ingested_batches(deployment.data.snapshot)["d1"].token
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["d0", "d1", "d2"])
    deployment.land("d1", range(50, 53))
    assert deployment.ingest("d0", "d2").success
    assert deployment.data.version == 3
    batches = deployment.names.batches
    assert deployment.instance.get_materialized_partitions(batches) == {"d0", "d1", "d2"}
    of_batch = dg.AssetRecordsFilter(batches, asset_partitions=["d1"])
    (record,) = deployment.instance.fetch_materializations(of_batch, limit=5).records
    assert record.asset_materialization is not None
    metadata = values(record.asset_materialization.metadata)
    assert (metadata["lance/batch_token"], metadata["lance/replayed"]) == (held, True)
    assert metadata["lance/changed_token"] not in ("", held)
    assert deployment.instance.fetch_observations(of_batch, limit=5).records == [], "it was not set aside"

    ticked = deployment.tick()
    assert [bool(ticked.events), bool(ticked.runs)] == [changed == "refuse", changed == "append"]
    assert deployment.data.count_rows() == 30 + 3 * (changed == "append")
    keys = deployment.instance.get_dynamic_partitions(deployment.names.of("batches"))
    if changed == "append":
        assert deployment.ingest("d0", keys[-1]).success, "a backfill of everything does not fail for it"


def test_an_unreadable_file_fails_the_run_by_name_and_is_ingested_after_repair(
    deployment: Deployment,
) -> None:
    deployment.land("a", range(3))
    broken = deployment.landing / "b.parquet"
    broken.write_bytes(b"PAR1 not at all")
    os.utime(broken, (1_700_000_000, 1_700_000_000))
    with pytest.raises(dg.Failure, match="b.parquet"):
        deployment.tick()
    deployment.land("b", range(3, 6))
    deployment.ingest("b", "a")
    assert sorted(deployment.data.to_table()["id"].to_pylist()) == list(range(6))


def test_declared_types_are_the_tables_types(deploy: Deploy) -> None:
    deployment = deploy(write={"columns": {"id": "int32", "vector": "fixed_size_list:float:2"}})
    path = deployment.land("a", range(2))
    pyarrow.parquet.write_table(pa.table({"id": [1, 2], "vector": [[1.0, 2.0], None]}), path)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    deployment.tick()
    assert deployment.data.schema.field("id").type == pa.int32()
    assert deployment.data.schema.field("vector").type == pa.list_(pa.float32(), 2)
    assert deployment.data.to_table()["vector"].to_pylist() == [[1.0, 2.0], None]


def test_the_run_ends_with_the_heads_checks(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    (result,) = deployment.tick().runs
    results = check_results(result)
    assert results["valid"].passed and results["batches_exactly_once"].passed
    assert not results["unindexed_ratio"].passed, "the declared index is not built yet"


def test_a_version_committed_concurrently_is_recorded_too(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    deployment.data.delete("id = 0")
    deployment.land("b", range(3, 5))
    deployment.tick()
    assert deployment.head_versions() == [1, 3], "2 is left to the version watcher: it was there before the run"


def test_a_bad_batch_does_not_hold_the_others_back_and_is_ingested_when_it_is_mended(deployment: Deployment) -> None:
    deployment.land("before", range(3))
    deployment.tick()
    for number, key in enumerate("abcd"):
        deployment.land(key, range(10 * number, 10 * number + 2))
    junk = deployment.landing / "b.parquet"
    times = (junk.stat().st_atime, junk.stat().st_mtime)
    junk.write_bytes(b"this is no Parquet")
    os.utime(junk, times)
    (run,) = deployment.tick(raise_on_error=False).runs
    assert not run.success
    assert deployment.data.count_rows() == 3 + 6
    batches = deployment.names.batches
    assert deployment.instance.get_materialized_partitions(batches) == {"before", "a", "c", "d"}
    kept, seen = deployment.instance.fetch_observations(batches, limit=10).records
    assert kept.run_id == "" and seen.run_id == run.run_id, "one of them stays when the run is deleted"
    assert seen.asset_observation and seen.asset_observation.partition == "b"
    assert "b.parquet" in values(seen.asset_observation.metadata)["lance/refused"]
    assert deployment.tick().runs == ()
    assert settled(deployment) is False
    check = deployment.check()["batches_settled"]
    assert not check.passed
    assert "b.parquet" in values(check.metadata)["lance/unsettled_batches"]["b"]
    deployment.land("b", range(10, 12))
    assert len(deployment.tick().runs) == 1
    assert settled(deployment) is True
    assert deployment.data.count_rows() == 3 + 8
    assert "b" in deployment.instance.get_materialized_partitions(batches)


def reported(deployment: Deployment) -> list[tuple[bool, list[str]]]:
    """Evaluate the sensor of the check; return whether it passes, and the batches that it names."""
    return [
        (event.passed, list(values(event.metadata)["lance/unsettled_batches"]))
        for event in deployment.tick("settled").events
        if isinstance(event, dg.AssetCheckEvaluation)
    ]


@pytest.mark.usefixtures("without_pauses")
def test_the_check_of_batches_turns_red_and_green_without_a_run(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy(raw={"vanished": "refuse"})
    first = deployment.land("a", range(3))
    deployment.land("b", range(3, 5))
    deployment.tick()
    assert reported(deployment) == [], "the run said so"
    content, landed_at = first.read_bytes(), first.stat().st_mtime
    deployment.land("a", range(9))
    deployment.tick()
    assert settled(deployment) is True, "no run came to the check"
    assert [reported(deployment) for _ in range(2)] == [[(False, ["a"])], []]
    (deployment.landing / "b.parquet").rename(deployment.landing.parent / "b")
    assert reported(deployment) == [(False, ["a", "b"])]
    first.write_bytes(content)
    os.utime(first, (landed_at, landed_at))
    (deployment.landing.parent / "b").rename(deployment.landing / "b.parquet")
    assert reported(deployment) == [(True, [])]
    with monkeypatch.context() as patched:
        patched.setattr(landing_batches, "ingest", on_fire)
        patched.setattr(failed_run_checks, "report_checks", lambda *_: None)
        deployment.land("c", range(5, 7))
        deployment.tick(raise_on_error=False)
    assert reported(deployment) == [(False, ["c"])], "the run died before it came to the check"
    deployment.tick()
    assert settled(deployment) is True


def settled(deployment: Deployment) -> bool | None:
    """Return the newest evaluation of the check that names batches which are not in the table."""
    key = dg.AssetCheckKey(deployment.names.head, "batches_settled")
    record = deployment.instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
    evaluation = record and record.event and record.event.dagster_event
    return evaluation.asset_check_evaluation_data.passed if evaluation else None


def on_fire(*arguments: object, **options: object) -> None:
    raise RuntimeError("the machine is on fire")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Have every ingestion fail as nobody foresaw, until the patch is undone."""
    monkeypatch.setattr(landing_batches, "ingest", on_fire)
    return monkeypatch


@pytest.mark.usefixtures("without_pauses")
def test_batches_of_a_failed_run_are_asked_for_again(deployment: Deployment, broken: pytest.MonkeyPatch) -> None:
    for number, key in enumerate("abc"):
        deployment.land(key, range(10 * number, 10 * number + 2))
    (first,) = deployment.tick(raise_on_error=False).run_requests
    (second,) = deployment.tick(raise_on_error=False).run_requests
    assert first.run_key != second.run_key
    broken.undo()
    again = deployment.tick()
    assert [run.success for run in again.runs] == [True]
    assert again.new_partitions == ()
    assert deployment.data.count_rows() == 6
    assert deployment.tick().run_requests == ()


@pytest.mark.usefixtures("broken", "without_pauses")
def test_a_batch_whose_runs_keep_failing_is_left_to_a_person(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    asked = [len(deployment.tick(raise_on_error=False).run_requests) for _ in range(7)]
    assert asked == [1, 1, 1, 1, 1, 0, 0]
    check = deployment.check()["batches_settled"]
    reason = values(check.metadata)["lance/unsettled_batches"]["a"]
    assert reason.startswith("5 runs failed in a day, run ") and "materialize its partition" in reason
