"""What the launcher of the shipped instance files says of a run's process to Dagster's run monitoring."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest import mock

import dagster as dg
import psutil
import pytest
from dagster._core.events import EngineEventData
from dagster._core.launcher import LaunchRunContext
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._daemon.monitoring.run_monitoring import monitor_started_run

from lance_ops.dagster.instances import instance_file

pytestmark = pytest.mark.dagster

SOCKET = {"host": "localhost", "socket": "/tmp/of-a-server"}


@dg.op
def work() -> None: ...


@dg.job
def a_job() -> None:
    work()


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "dagster.yaml").write_text(instance_file("laptop"))
    with dg.DagsterInstance.from_config(str(tmp_path)) as made:
        yield made


def started_run(
    instance: dg.DagsterInstance, server: Mapping[str, object], pid: int | None, host: str | None = None
) -> dg.DagsterRun:
    """Return a run that a code server has started, in a process that has reported itself if `pid` is given."""
    tags = {GRPC_INFO_TAG: json.dumps(server), "lance/launched_on": host or socket.gethostname()}
    status = dg.DagsterRunStatus.STARTED
    run = instance.create_run_for_job(a_job, status=status, tags=tags)
    instance.report_engine_event("Waiting", run)
    if pid is not None:
        instance.report_engine_event(f"Started process for run (pid: {pid}).", run, EngineEventData.in_process(pid))
    return run


def status_when_watched(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    """Let Dagster's run monitoring look at a run once; return the run's status then."""
    (record,) = instance.get_run_records(dg.RunsFilter(run_ids=[run.run_id]))
    monitor_started_run(instance, mock.Mock(), record, logging.getLogger(__name__))
    return instance.get_run_records(dg.RunsFilter(run_ids=[run.run_id]))[0].dagster_run.status


@pytest.fixture
def gone() -> int:
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_run_whose_process_lives_goes_on(instance: dg.DagsterInstance) -> None:
    run = started_run(instance, SOCKET, os.getpid())
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.STARTED


@pytest.mark.parametrize("server", [SOCKET, {"host": "localhost", "port": 4000}, {"host": "127.0.0.1", "port": 4000}])
def test_a_run_whose_process_is_gone_fails_and_is_named(
    instance: dg.DagsterInstance, gone: int, server: Mapping[str, object]
) -> None:
    run = started_run(instance, server, gone)
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.FAILURE
    (failure,) = instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.RUN_FAILURE).records
    assert f"process {gone} is gone" in str(failure.event_log_entry.get_dagster_event().message)


def test_a_younger_process_with_the_number_of_the_run_s_does_not_keep_it_started(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started_run(instance, SOCKET, os.getpid())
    began = psutil.Process().create_time()
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: began + 10**6)
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.FAILURE


def test_a_process_that_its_parent_has_not_waited_for_is_gone(instance: dg.DagsterInstance) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    run = started_run(instance, SOCKET, ended.pid)
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.FAILURE
    ended.wait()


@pytest.mark.parametrize("server", [{"host": "code-server", "port": 4000}, {}], ids=["another host", "no server"])
def test_nothing_is_said_of_a_process_that_no_code_server_of_this_machine_started(
    instance: dg.DagsterInstance, gone: int, server: Mapping[str, object]
) -> None:
    run = started_run(instance, server, gone)
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.STARTED


def test_a_process_that_has_not_reported_itself_counts_as_living(instance: dg.DagsterInstance) -> None:
    run = started_run(instance, SOCKET, None)
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.STARTED


def test_nothing_is_said_of_a_run_that_another_host_launched(instance: dg.DagsterInstance, gone: int) -> None:
    run = started_run(instance, SOCKET, gone, host="the-host-before")
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.STARTED


def test_a_launched_run_names_its_host_before_its_process_starts(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = instance.create_run_for_job(a_job)
    tags: list[Mapping[str, str]] = []

    def launch(_: object, context: LaunchRunContext) -> None:
        tags.append(instance.get_run_records()[0].dagster_run.tags)

    monkeypatch.setattr(dg.DefaultRunLauncher, "launch_run", launch)
    instance.run_launcher.launch_run(LaunchRunContext(run, None))
    assert [each["lance/launched_on"] for each in tags] == [socket.gethostname()]
