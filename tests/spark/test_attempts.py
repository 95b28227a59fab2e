"""What the driver makes of the reports of a job's tasks."""

from __future__ import annotations

import pytest

from lance_ops.core.errors import TasksLost
from lance_ops.runners import Job
from lance_ops.spark.running import Reported, outcomes_or_raise


@pytest.mark.parametrize("reported", [[(2, "c"), (0, "a")], [(0, "a"), (2, "c"), (2, "c")]], ids=["missing", "twice"])
def test_a_task_without_an_outcome_fails_the_job_and_leaves_no_file(reported: list[Reported[str]]) -> None:
    tokens, discarded = list[str](), list[str]()
    job = Job.on("square", "numbers", remove_files=tokens.append)
    with pytest.raises(TasksLost, match="task 2 of 3 reported nothing"):
        outcomes_or_raise(reported, 3, job, "token", discarded.append)
    assert (tokens, discarded) == (["token"], ["a", "c"])


def test_outcomes_have_the_order_of_the_tasks() -> None:
    reported: list[Reported[str]] = [(1, "b"), (0, "a")]
    assert outcomes_or_raise(reported, 2, None, "token", None) == ["a", "b"]
