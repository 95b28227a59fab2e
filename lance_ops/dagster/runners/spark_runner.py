"""The resource that executes a run's tasks on Spark. Importing this module needs the `spark` extra."""

from __future__ import annotations

from pydantic import Field

from lance_ops.dagster.declaration import expand, expand_all
from lance_ops.dagster.runners.runner import LanceRunner
from lance_ops.runners import ReportProgress, Runner
from lance_ops.spark import OnSpark, get_or_create

__all__ = ["SparkRunner"]


class SparkRunner(LanceRunner):
    """Runs tasks on the workers of a Spark session, which the first task starts.

    A session costs some ten seconds, so one serves every step of a run (Spark jobs use `in_process_executor`) and every
    run of the process; it ends with the process and not with the run.
    """

    app_name: str = "lance-ops"
    master: str | None = Field(default=None, description="Defaults to spark-submit's, else all cores of this machine.")
    tasks_per_core: int = 3
    config: dict[str, str] = Field(
        default_factory=dict, description="Spark settings on top of lance_ops' own; ${NAME} is expanded by the run."
    )

    def runner(self, on_progress: ReportProgress | None = None) -> Runner:
        master = None if self.master is None else expand(self.master, "runner.spark.master")
        settings = expand_all(self.config, "runner.spark.conf")
        session = get_or_create(self.app_name, master=master, config=settings)
        return OnSpark(session, self.tasks_per_core, on_progress)
