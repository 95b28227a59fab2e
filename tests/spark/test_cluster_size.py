"""How many tasks a cluster can run at once, from its settings alone."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.errors import PySparkException

from lance_ops.spark.running import frame_job, max_attempts, settings_of, task_slots, task_slots_by_query

_DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.maxExecutors": "1000",
    "spark.executor.cores": "4",
}


def _slots(settings: dict[str, str], default_parallelism: int = 2) -> int:
    return task_slots(default_parallelism, settings.get)


def test_an_idle_cluster_counts_the_executors_that_it_may_ask_for() -> None:
    assert _slots(_DYNAMIC) == 4000
    assert _slots({**_DYNAMIC, "spark.task.cpus": "3"}) == 1000
    assert _slots({**_DYNAMIC, "spark.executor.cores": "1"}) == 1000


def test_a_cluster_that_is_larger_now_counts_as_it_is() -> None:
    assert _slots(_DYNAMIC, default_parallelism=5000) == 5000


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {**_DYNAMIC, "spark.dynamicAllocation.enabled": "false"},
        {"spark.dynamicAllocation.enabled": "true", "spark.executor.cores": "4"},
        {**_DYNAMIC, "spark.dynamicAllocation.maxExecutors": str(2**31 - 1)},
        {**_DYNAMIC, "spark.master": "local[2]"},
    ],
)
def test_without_a_limit_of_dynamic_allocation_only_present_cores_count(settings: dict[str, str]) -> None:
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
def test_a_server_that_keeps_its_settings_to_itself_has_the_cores_of_now_and_one_attempt() -> None:
    def refuse(name: str, default: str | None) -> str | None:
        raise PySparkException(f"[CONFIG_NOT_AVAILABLE] {name}")

    remote = _remote(refuse)
    assert task_slots_by_query(remote) == 2
    assert max_attempts(settings_of(remote)) == 1
