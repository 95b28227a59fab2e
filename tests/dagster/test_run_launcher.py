"""What the launcher of the shipped instance files says of a run's process to Dagster's run monitoring."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import time
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

SEEN_ON = "lance/process_seen_on"
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
    instance: dg.DagsterInstance, server: Mapping[str, object], pid: int | None, seen_on: str | None = None
) -> dg.DagsterRun:
    """Return a run that a code server has started, in a process that has reported itself if `pid` is given.

    The daemon of this host has seen the process, unless `seen_on` names another one, or "" for none.
    """
    host = socket.gethostname() if seen_on is None else seen_on
    tags = {GRPC_INFO_TAG: json.dumps(server)} | ({SEEN_ON: host} if host else {})
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


def test_nothing_is_said_of_a_process_that_another_host_has_seen(instance: dg.DagsterInstance, gone: int) -> None:
    run = started_run(instance, SOCKET, gone, seen_on="the-host-before")
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.STARTED


@pytest.mark.parametrize("server", [SOCKET, {"host": "localhost", "port": 4000}])
def test_a_process_that_was_never_seen_here_counts_as_living(
    instance: dg.DagsterInstance, gone: int, server: Mapping[str, object]
) -> None:
    """The code server may be another container of the pod: the same host name, but other numbers of processes."""
    run = started_run(instance, server, gone, seen_on="")
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.STARTED
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.STARTED


def test_an_older_process_with_the_number_of_the_run_s_is_not_taken_for_it(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = started_run(instance, SOCKET, os.getpid(), seen_on="")
    began = psutil.Process().create_time()
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: began - 10**6)
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.STARTED
    assert SEEN_ON not in instance.get_runs()[0].tags


def test_a_process_that_was_seen_once_is_missed_when_it_is_gone(instance: dg.DagsterInstance) -> None:
    living = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    run = started_run(instance, SOCKET, living.pid, seen_on="")
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.STARTED
    assert instance.get_runs()[0].tags[SEEN_ON] == socket.gethostname()
    living.communicate(b"\n")
    assert status_when_watched(instance, run) == dg.DagsterRunStatus.FAILURE


def test_a_launched_run_s_process_is_seen_at_once(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = instance.create_run_for_job(a_job)
    living = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def launch(_: object, context: LaunchRunContext) -> None:
        instance.add_run_tags(run.run_id, {GRPC_INFO_TAG: json.dumps(SOCKET)})
        instance.report_engine_event("Started process", run, EngineEventData.in_process(living.pid))

    monkeypatch.setattr(dg.DefaultRunLauncher, "launch_run", launch)
    instance.run_launcher.launch_run(LaunchRunContext(run, None))
    living.communicate(b"\n")
    assert instance.get_runs()[0].tags[SEEN_ON] == socket.gethostname()


def test_a_launch_does_not_wait_for_the_process_of_another_host(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = instance.create_run_for_job(a_job)

    def launch(_: object, context: LaunchRunContext) -> None:
        instance.add_run_tags(run.run_id, {GRPC_INFO_TAG: json.dumps({"host": "code-server", "port": 4000})})

    monkeypatch.setattr(dg.DefaultRunLauncher, "launch_run", launch)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    instance.run_launcher.launch_run(LaunchRunContext(run, None))
    assert SEEN_ON not in instance.get_runs()[0].tags
