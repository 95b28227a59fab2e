"""A test that waits for retries does not depend on when the daemon looks at a failure."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import dagster as dg
import pytest
from dagster._daemon.auto_run_reexecution import auto_run_reexecution
from dagster._daemon.auto_run_reexecution.event_log_consumer import EventLogConsumerDaemon

from lance_ops.dagster.instances import instance_file
from tests.dagster.running_daemon import are_retried

pytestmark = pytest.mark.dagster


@dg.job
def a_job() -> None: ...


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "dagster.yaml").write_text(instance_file("laptop"))
    with dg.DagsterInstance.from_config(str(tmp_path)) as made:
        yield made


def test_a_failure_that_the_daemon_saw_before_the_status_is_looked_at_again(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, retried = EventLogConsumerDaemon(), list[str]()
    daemon._logger = mock.create_autospec(logging.Logger)
    monkeypatch.setattr(auto_run_reexecution, "retry_run", lambda run, _: retried.append(run.run_id))
    store_status = instance.run_storage.handle_run_event

    def look() -> None:
        list(daemon.run_iteration(mock.Mock(instance=instance)))

    def look_and_store_status(*given: Any) -> None:
        look()
        store_status(*given)

    look()
    run = instance.create_run_for_job(a_job, status=dg.DagsterRunStatus.STARTED)
    monkeypatch.setattr(instance.run_storage, "handle_run_event", look_and_store_status)
    instance.report_run_failed(run)
    look()
    assert retried == []
    assert not are_retried(instance, 1)
    look()
    assert retried == [run.run_id]
