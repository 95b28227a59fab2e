"""Launch runs in processes of the code server, and tell Dagster's run monitoring which of them have died.

The code server marks a run whose process dies as failed. Nobody does when the server dies with its runs: a machine that
loses power, or a `dg dev` that is killed with all its processes. Run monitoring then asks the launcher, and Dagster's
own launcher has no answer, so the run would stay as started and keep its pool slot.
"""

from __future__ import annotations

import json

import dagster as dg
import psutil
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG

__all__ = ["LocalRunLauncher"]

_SECONDS_OF_CLOCKS = 60.0
"""A process is another one than the run's if it is younger than the run's first event by more than so many seconds."""


class LocalRunLauncher(dg.DefaultRunLauncher):
    """`DefaultRunLauncher` that also knows whether the process of a run still lives, if it runs on this machine.

    A run of a code server on another host counts as living: nothing can be said of it here.
    """

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Always true."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return `FAILED` if the process of a started run is gone, and `RUNNING` otherwise or if that is unknown."""
        start = _first_process(self._instance, run.run_id) if _is_local(run) else None
        if start is None or _is_alive(*start):
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"process {start[0]} is gone")


def _is_local(run: dg.DagsterRun) -> bool:
    server = json.loads(run.tags.get(GRPC_INFO_TAG, "{}"))
    return bool(server.get("socket")) or server.get("host") in ("localhost", "127.0.0.1", "::1")


def _first_process(instance: dg.DagsterInstance, run_id: str) -> tuple[int, float] | None:
    """Return the process of a run, and the seconds since 1970 at which it reported itself; None if it has not."""
    events = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records
    for entry in (record.event_log_entry for record in events):
        pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
        if pid is not None:
            return int(str(pid.value)), entry.timestamp
    return None


def _is_alive(pid: int, reported_at: float) -> bool:
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and process.create_time() < reported_at + _SECONDS_OF_CLOCKS
    except psutil.NoSuchProcess:
        return False
