"""How many tasks a cluster can run at once, from its settings and from the executors that are there."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock, Mock

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lance_ops.api import write_dataset
from lance_ops.spark import OnSpark, planned_read, table
from lance_ops.spark.running import (
    cluster_size,
    expected_slots,
    frame_job,
    max_attempts,
    settings_of,
    task_slots_by_query,
    wait_for_slots,
)
from lance_ops.spark.running.slots_at_present import slots_at_present

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.maxExecutors": "1000",
    "spark.executor.cores": "4",
}


def _slots(settings: dict[str, str], default_parallelism: int = 2) -> int:
    return expected_slots(default_parallelism, settings.get)


def test_an_idle_cluster_counts_the_executors_that_it_may_ask_for() -> None:
    assert _slots(_DYNAMIC) == 4000
    assert _slots({**_DYNAMIC, "spark.task.cpus": "3"}) == 1000
    assert _slots({**_DYNAMIC, "spark.executor.cores": "1"}) == 1000


@pytest.mark.parametrize(
    ("master", "settings", "slots"),
    [
        ("spark://h:7077", {"cores.max": "400"}, 400),
        ("spark://h:7077", {"cores.max": "400", "task.cpus": "4"}, 100),
        ("spark://h:7077", {"cores.max": "400", "default.parallelism": "8"}, 400),
        ("spark://h:7077", {"cores.max": "400", "executor.cores": "4", "executor.instances": "10"}, 40),
        ("k8s://https://h", {"executor.instances": "50", "executor.cores": "8"}, 400),
        ("yarn", {"executor.instances": "50", "executor.cores": "8", "task.cpus": "3"}, 100),
        ("local-cluster[3, 4, 1024]", {}, 12),
        ("local[2]", {"cores.max": "400", "executor.instances": "50"}, 2),
    ],
)
def test_before_executors_register_those_count_that_the_settings_ask_for(
    master: str, settings: dict[str, str], slots: int
) -> None:
    stated = {f"spark.{name}": value for name, value in settings.items()}
    assert _slots({"spark.master": master, **stated}) == slots


def _cluster(monkeypatch: pytest.MonkeyPatch, present: list[int], **settings: str) -> Mock:
    """Let a session see these numbers of slots one after the other; return what its jobs are made by."""
    monkeypatch.setattr(cluster_size, "slots_at_present", lambda session: present.pop(0))
    stated = {"spark.master": "spark://h:7077", **settings}
    monkeypatch.setattr(cluster_size, "settings_of", lambda session: stated.get)
    job = Mock()
    monkeypatch.setattr(cluster_size, "SparkJob", job)
    return job


def test_a_cluster_of_unknown_size_is_known_when_its_executors_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    job = _cluster(monkeypatch, [0, 8, 16, 16])
    monkeypatch.setattr(cluster_size, "_SECONDS_BETWEEN_EXECUTORS", 0)
    assert wait_for_slots(Mock()) == 16
    assert job.call_count == 1


@pytest.mark.parametrize(("present", "settings"), [(16, {}), (0, {"spark.cores.max": "16"})])
def test_a_cluster_of_known_size_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, present: int, settings: dict[str, str]
) -> None:
    job = _cluster(monkeypatch, [present], **settings)
    assert wait_for_slots(Mock()) == 16
    assert not job.called


@pytest.mark.spark
def test_the_default_parallelism_of_a_user_is_no_number_of_cores(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = spark.sparkContext.defaultParallelism
    monkeypatch.setattr(type(spark.sparkContext), "defaultParallelism", 2000)
    assert OnSpark(spark).num_slots() == cores


def test_a_spark_that_does_not_tell_has_its_default_parallelism() -> None:
    session = MagicMock()
    session.sparkContext._jsc.sc.return_value.maxNumConcurrentTasks.side_effect = Py4JError("Method does not exist")
    session.sparkContext.defaultParallelism = 3
    assert slots_at_present(session) == 3


@pytest.mark.spark
def test_a_small_read_waits_for_no_executor(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_dataset(pa.table({"x": [1, 2]}), tmp_path / "t.lance")
    monkeypatch.setattr(planned_read, "slots_if_known", lambda session: None)
    monkeypatch.setattr(planned_read, "wait_for_slots", Mock(side_effect=AssertionError("it waits")))
    assert table(spark, tmp_path / "t.lance").load().count() == 2


@pytest.mark.parametrize(
    ("settings", "slots"),
    [
        ({}, 256),
        ({"dynamicAllocation.maxExecutors": str(2**31 - 1)}, 256),
        ({"executor.instances": "10"}, 256),
        ({"executor.instances": "100"}, 400),
        ({"executor.instances": "10", "cores.max": "400"}, 400),
    ],
)
def test_a_cluster_that_may_grow_without_a_limit_is_offered_enough_tasks_to_grow(
    settings: dict[str, str], slots: int
) -> None:
    elastic = {"spark.dynamicAllocation.enabled": "true", "spark.executor.cores": "4"}
    stated = {f"spark.{name}": value for name, value in settings.items()}
    assert [_slots(elastic | stated, present) for present in (0, 4, 500)] == [slots, slots, 500]


def test_a_cluster_that_is_larger_now_counts_as_it_is() -> None:
    assert _slots(_DYNAMIC, default_parallelism=5000) == 5000


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {**_DYNAMIC, "spark.dynamicAllocation.enabled": "false"},
        {**_DYNAMIC, "spark.master": "local[2]"},
    ],
)
def test_without_dynamic_allocation_only_present_cores_count(settings: dict[str, str]) -> None:
    assert _slots(settings) == 2


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a query be written where no session is active."""
    monkeypatch.setattr(frame_job, "spark_partition_id", Mock())


def _remote(get: Callable[..., str | None]) -> Any:
    """A session of Spark Connect to a server of two cores, whose settings `get` looks up."""
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    remote.conf = SimpleNamespace(get=get)
    remote.range = Mock()
    remote.range.return_value.select.return_value.distinct.return_value.count.return_value = 2
    return remote


@pytest.mark.usefixtures("no_session")
def test_through_connect_an_idle_cluster_counts_the_executors_that_it_may_ask_for() -> None:
    assert task_slots_by_query(_remote(_DYNAMIC.get)) == 4000


@pytest.mark.usefixtures("no_session")
def test_through_connect_the_default_parallelism_of_a_user_counts_where_nothing_tells_the_cores() -> None:
    settings = {"spark.default.parallelism": "2"}
    assert task_slots_by_query(_remote(settings.get)) == 2
    assert task_slots_by_query(_remote({**settings, "spark.cores.max": "1"}.get)) == 1


@pytest.mark.usefixtures("no_session")
def test_a_server_that_keeps_its_settings_to_itself_has_the_cores_of_now_and_one_attempt() -> None:
    def refuse(name: str, default: str | None) -> str | None:
        raise PySparkException(f"[CONFIG_NOT_AVAILABLE] {name}")

    remote = _remote(refuse)
    assert task_slots_by_query(remote) == 2
    assert max_attempts(settings_of(remote)) == 1
