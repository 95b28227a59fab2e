"""Launch runs in processes of the code server, and tell Dagster's run monitoring which of them have died.

The code server marks a run whose process dies as failed. Nobody does when the server dies with its runs: a machine that
loses power, or a `dg dev` that is killed with all its processes. Run monitoring then asks the launcher, and Dagster's
own launcher has no answer, so the run would stay as started and keep its pool slot.
"""

from __future__ import annotations

import json
import socket

import dagster as dg
import psutil
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG

__all__ = ["LocalRunLauncher"]

_LAUNCHED_ON = "lance/launched_on"
"""The tag of a run that names the host of the daemon which launched it."""
_CLOCK_TOLERANCE_S = 60.0
"""A process is another one than the run's if it is younger than the run's first event by more than so many seconds."""


class LocalRunLauncher(dg.DefaultRunLauncher):
    """`DefaultRunLauncher` that also knows whether the process of a run still lives, if it runs on this host.

    A run that another host launched, or whose code server is on another host, counts as living: its processes are not
    seen here.
    """

    def launch_run(self, context: LaunchRunContext) -> None:
        """Launch a run, and tag it with the name of this host."""
        self._instance.add_run_tags(context.dagster_run.run_id, {_LAUNCHED_ON: socket.gethostname()})
        super().launch_run(context)

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Always true."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return `FAILED` if the process of a started run is gone, and `RUNNING` otherwise or if that is unknown."""
        start = _reported_process(self._instance, run.run_id) if _is_local(run) else None
        if start is None or _is_alive(*start):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"process {start[0]} is gone")


def _is_local(run: dg.DagsterRun) -> bool:
    if run.tags.get(_LAUNCHED_ON) != socket.gethostname():
        return False
    server = json.loads(run.tags.get(GRPC_INFO_TAG, "{}"))
    return bool(server.get("socket")) or server.get("host") in ("localhost", "127.0.0.1", "::1")


def _reported_process(instance: dg.DagsterInstance, run_id: str) -> tuple[int, float] | None:
    """Return the process that the run reported first, and when (seconds since 1970); None if it has reported none."""
    events = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records
    for entry in (record.event_log_entry for record in events):
        pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
        if pid is not None:
            return int(str(pid.value)), entry.timestamp
    return None


def _is_alive(pid: int, reported_at: float) -> bool:
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() < reported_at + _CLOCK_TOLERANCE_S
    except psutil.NoSuchProcess:
        return False
