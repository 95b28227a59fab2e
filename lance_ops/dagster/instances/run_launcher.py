"""Launch runs in processes of the code server, and tell Dagster's run monitoring which of them have died.

The code server marks a run whose process dies as failed. Nobody does when the server dies with its runs: a machine that
loses power, or a `dg dev` that is killed with all its processes. Run monitoring then asks the launcher, and Dagster's
own launcher has no answer, so the run would stay as started and keep its pool slot.

A run reports the number of its process, and the number means something only to those who see the process. So the
launcher notes on the run that it has seen the process, and only then does it take an absent process for a dead one.
"""

from __future__ import annotations

import json
import socket
import time

import dagster as dg
import psutil
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG

from lance_ops.core.records import dataclass

__all__ = ["LocalRunLauncher"]

_SEEN_ON = "lance/process_seen_on"
"""The tag of a run that names the host whose daemon has seen the run's process."""
_CLOCK_TOLERANCE_S = 60.0
"""A process is not the run's if it is younger than the run's first event by more than this many seconds."""
_LONGEST_START_S = 60.0
"""A process is taken for the run's if it began at most this many seconds before that event."""
_WAIT_FOR_REPORT_S = 2.0
_POLL_S = 0.05


class LocalRunLauncher(dg.DefaultRunLauncher):
    """`DefaultRunLauncher` that also knows whether the process of a run still lives, if the daemon has seen it.

    A run counts as living if its code server is on another host, or if the daemon of this host never saw its process.
    So no run is lost in a pod, whose containers share a host name and do not see each other's processes.
    """

    def launch_run(self, context: LaunchRunContext) -> None:
        """Launch a run, and look for its process at once: it may die before run monitoring looks first."""
        super().launch_run(context)
        run = self._instance.get_run_by_id(context.dagster_run.run_id)
        deadline = time.monotonic() + _WAIT_FOR_REPORT_S
        while run is not None and _has_local_server(run) and time.monotonic() < deadline:
            process = _ReportedProcess.of(self._instance, run.run_id)
            if process is not None:
                self._note_if_seen(run, process)
                return
            time.sleep(_POLL_S)

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Always true."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return `FAILED` if the process of a started run is gone, and `RUNNING` otherwise or if that is unknown."""
        process = _ReportedProcess.of(self._instance, run.run_id) if _has_local_server(run) else None
        if process is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        if not _was_seen_here(run):
            self._note_if_seen(run, process)
        elif not process.is_alive:
            return CheckRunHealthResult(WorkerStatus.FAILED, f"process {process.pid} is gone")
        return CheckRunHealthResult(WorkerStatus.RUNNING)

    def _note_if_seen(self, run: dg.DagsterRun, process: _ReportedProcess) -> None:
        if process.is_seen:
            self._instance.add_run_tags(run.run_id, {_SEEN_ON: socket.gethostname()})


@dataclass(frozen=True)
class _ReportedProcess:
    """The process that a run reported first, and when (seconds since 1970)."""

    pid: int
    reported_at: float

    @classmethod
    def of(cls, instance: dg.DagsterInstance, run_id: str) -> _ReportedProcess | None:
        """Return the process of a run; None if it has reported none."""
        events = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records
        for entry in (record.event_log_entry for record in events):
            pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
            if pid is not None:
                return cls(int(str(pid.value)), entry.timestamp)
        return None

    @property
    def is_alive(self) -> bool:
        """Whether a process of this number lives that is not younger than the report."""
        began = self._began()
        return began is not None and began < self.reported_at + _CLOCK_TOLERANCE_S

    @property
    def is_seen(self) -> bool:
        """Whether the living process of this number is the run's: it began shortly before the report."""
        began = self._began()
        return began is not None and -_LONGEST_START_S < began - self.reported_at < _CLOCK_TOLERANCE_S

    def _began(self) -> float | None:
        """Return when the process of this number began; None if there is none that lives."""
        try:
            process = psutil.Process(self.pid)
            return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
        except psutil.NoSuchProcess:
            return None


def _was_seen_here(run: dg.DagsterRun) -> bool:
    return run.tags.get(_SEEN_ON) == socket.gethostname()


def _has_local_server(run: dg.DagsterRun) -> bool:
    server = json.loads(run.tags.get(GRPC_INFO_TAG, "{}"))
    return bool(server.get("socket")) or server.get("host") in ("localhost", "127.0.0.1", "::1")
