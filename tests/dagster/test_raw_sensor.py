from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable

import dagster as dg
import pytest

from lance_ops.dagster.landing import landing_entries
from lance_ops.dagster.landing.batch_runs import RANGE_END_TAG, RANGE_START_TAG
from lance_ops.errors import ConfigError
from lance_ops.maintenance.ingest import batch_token
from tests.dagster.deployment import Deploy, Deployment
from tests.dagster.test_late_repairs import handled, later

pytestmark = pytest.mark.dagster


def test_an_empty_landing_folder_is_skipped_with_a_reason(deployment: Deployment) -> None:
    ticked = deployment.tick()
    assert ticked.runs == ()
    assert ticked.skip_message == "0 batches are in the landing folder, none is new"


def test_one_new_file_is_a_run_of_one_partition_and_many_a_range(deployment: Deployment) -> None:
    deployment.land("a", range(1))
    (alone,) = deployment.tick().run_requests
    assert alone.partition_key == "a"
    deployment.land("c", range(1, 2))
    deployment.land("b", range(2, 3))
    (together,) = deployment.tick().run_requests
    assert together.partition_key is None
    assert (together.tags[RANGE_START_TAG], together.tags[RANGE_END_TAG]) == ("c", "b"), "in the order of arrival"
    assert deployment.data.version == 2
    assert deployment.tick().runs == ()


def test_a_file_younger_than_the_limit_waits(deployment: Deployment) -> None:
    path = deployment.land("a", range(1))
    soon = time.time() + 3600  # however long the test takes
    os.utime(path, (soon, soon))
    ticked = deployment.tick()
    assert ticked.runs == ()
    assert "1 are still settling" in (ticked.skip_message or "")


def test_a_cap_spreads_a_backlog_over_ticks(deploy: Deploy) -> None:
    deployment = deploy(raw={"max_files_per_tick": 2})
    for day in range(5):
        deployment.land(f"d{day}", range(day, day + 1))
    assert [deployment.tick().new_partitions for _ in range(4)] == [("d0", "d1"), ("d2", "d3"), ("d4",), ()]
    assert deployment.data.count_rows() == 5
    assert deployment.data.version == 3


def test_a_cap_spreads_new_files_with_older_times_over_ticks(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deploy(raw={"max_files_per_tick": 1})
    for key in ("a", "b"):
        deployment.land(key, range(1))
    handled(deployment)
    assert deployment.tick().new_partitions == (), "all batches were compared a moment ago"
    later(monkeypatch, minutes=6)
    assert [deployment.tick().new_partitions for _ in range(2)] == [("a",), ("b",)]


def test_a_lost_cursor_requests_nothing_again(deployment: Deployment) -> None:
    for day in range(3):
        deployment.land(f"d{day}", range(day, day + 1))
    deployment.tick()
    deployment.location.cursors.clear()
    ticked = deployment.tick()
    assert ticked.runs == () and ticked.new_partitions == ()
    assert deployment.data.count_rows() == 3


def test_a_lost_instance_requests_everything_again_and_duplicates_nothing(deployment: Deployment) -> None:
    deployment.fill(3)
    ticked = deployment.tick()
    assert len(ticked.runs) == 1
    assert deployment.data.version == 3
    assert deployment.data.count_rows() == 30


def test_a_failed_batch_is_requested_again_after_a_lost_cursor(deployment: Deployment) -> None:
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["a", "b"])
    deployment.land("a", range(1))
    deployment.land("b", range(1, 2))
    ticked = deployment.tick()
    assert ticked.new_partitions == ()
    assert len(ticked.runs) == 1
    assert deployment.data.count_rows() == 2


def test_a_changed_file_is_reported_on_its_partition_and_not_ingested(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    deployment.land("a", range(50))
    ticked = deployment.tick()
    assert ticked.runs == ()
    (event,) = ticked.events
    assert isinstance(event, dg.AssetObservation) and event.partition == "a"
    assert "changed after it was ingested" in (event.description or "")
    assert deployment.data.count_rows() == 3


def test_a_changed_file_is_appended_as_a_new_batch_if_so_declared(deploy: Deploy) -> None:
    deployment = deploy(raw={"changed": "append"})
    deployment.land("a", range(3))
    deployment.tick()
    deployment.land("a", range(3, 5))
    (key,) = deployment.tick().new_partitions
    assert key.startswith("a=")
    assert sorted(deployment.data.to_table()["id"].to_pylist()) == [0, 1, 2, 3, 4]
    assert deployment.tick().runs == ()


@pytest.mark.parametrize("sensor", ["raw_files", "settled"])
def test_a_tick_that_compares_all_batches_computes_the_token_of_each_once(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, sensor: str
) -> None:
    for number in range(5):
        deployment.land(f"d{number}", range(number, number + 1))
    deployment.tick()
    deployment.location.cursors.clear()
    computed: Counter[str] = Counter()

    def counted(files: Iterable[tuple[str, str]]) -> str:
        named = list(files)
        computed.update(uri.rpartition("/")[2] for uri, _ in named)
        return batch_token(named)

    monkeypatch.setattr(landing_entries, "batch_token", counted)
    assert deployment.tick(sensor).runs == ()
    assert computed == {f"d{number}.parquet": 1 for number in range(5)}


def test_a_delivery_by_folder_waits_for_its_marker(deploy: Deploy) -> None:
    deployment = deploy(raw={"batch": "folder", "marker": "_SUCCESS", "glob": "**/*.parquet"})
    (deployment.landing / "day1").mkdir()
    deployment.land("day1/a", range(2))
    deployment.land("day1/b", range(2, 4))
    assert deployment.tick().runs == ()
    (deployment.landing / "day1" / "_SUCCESS").touch()
    assert deployment.tick().new_partitions == ("day1",)
    assert deployment.data.count_rows() == 4


def test_a_missing_variable_fails_the_tick_and_names_itself(deploy: Deploy) -> None:
    deployment = deploy(raw={"uri": "${NOT_SET_ANYWHERE}/in"})
    with pytest.raises(ConfigError, match=r"raw\.uri: environment variable NOT_SET_ANYWHERE is not set"):
        deployment.tick()
