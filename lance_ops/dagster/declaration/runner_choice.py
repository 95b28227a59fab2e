"""The declaration of what executes a dataset's tasks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lance_ops.dagster.declaration.declared_model import DeclaredModel, Options

__all__ = ["OnSpark", "OnThreads", "RunnerChoice", "SparkSettings", "ThreadSettings"]


class ThreadSettings(DeclaredModel):
    """Threads of the process that executes a run."""

    max_workers: int | None = Field(default=None, ge=1, description="Defaults to the machine's cores.")


class SparkSettings(DeclaredModel):
    """A Spark session, which the first task of a process starts. The process's later runs share it."""

    master: str | None = Field(
        default=None,
        description="Such as yarn, spark://host:7077, or sc://host:15002 for a server of Spark Connect; default: "
        "spark-submit's, else local[*].",
    )
    conf: Options = Field(
        default_factory=dict, repr=False, description="Spark settings; ${NAME} in a value is expanded by the run."
    )
    tasks_per_core: int = Field(default=3, ge=1, description="Into how many groups a core's tasks are cut.")


class OnThreads(DeclaredModel):
    """`runner: {threads: {max_workers: 4}}`."""

    threads: ThreadSettings = Field(description="Run tasks in threads; `max_workers` is how many run at a time.")


class OnSpark(DeclaredModel):
    """`runner: {spark: {master: yarn}}`."""

    spark: SparkSettings = Field(description="The workers of a Spark session.")


RunnerChoice = Literal["threads", "spark", "code_location"] | OnThreads | OnSpark
"""`threads` or `spark`, also with settings; or `code_location`: its resource `lance_runner`."""
