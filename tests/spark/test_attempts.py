"""What the driver makes of the reports of a job's tasks."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from lance_ops.core.errors import (
    LanceOpsError,
    ObjectNotFound,
    StoreError,
    StoreUnreachable,
    TasksLost,
    UnsafeStore,
    WrongType,
)
from lance_ops.runners import Job
from lance_ops.spark.running import Attempts, Reported, outcomes_or_raise


def told(*outcomes: tuple[int, object]) -> list[Reported]:
    return [(index, pickle.dumps(outcome)) for index, outcome in outcomes]


@pytest.mark.parametrize(
    "reported", [told((2, "c"), (0, "a")), told((0, "a"), (2, "c"), (2, "c"))], ids=["missing", "twice"]
)
def test_a_task_without_an_outcome_fails_the_job_and_leaves_no_file(reported: list[Reported]) -> None:
    tokens, discarded = list[str](), list[str]()
    job = Job.on("square", "numbers", remove_files=tokens.append)
    with pytest.raises(TasksLost, match="task 2 of 3 reported nothing"):
        outcomes_or_raise(reported, 3, job, "token", discarded.append)
    assert (tokens, discarded) == (["token"], ["a", "c"])


def test_outcomes_have_the_order_of_the_tasks() -> None:
    assert outcomes_or_raise(told((1, "b"), (0, "a")), 2, None, "token", None) == ["a", "b"]


def letters(_: int) -> Iterator[str]:
    yield "a"


@pytest.mark.parametrize("function", [letters, lambda _: threading.Lock()], ids=["generator", "lock"])
def test_a_return_value_that_cannot_be_pickled_is_an_error_of_the_task(function: Callable[[int], object]) -> None:
    reported = Attempts(function, 1, "0" * 16).report(0, 7)
    with pytest.raises(WrongType, match="return value cannot be pickled.*Return a value such as a number") as caught:
        outcomes_or_raise([reported], 1, None, "token", None)
    assert "by task 1 of 1" in caught.value.__notes__[0]


def interrupted(_: int) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("function", "shown"), [(sys.exit, "SystemExit: 7"), (interrupted, "KeyboardInterrupt")])
def test_what_would_end_the_worker_is_an_error_of_the_task(function: Callable[[int], None], shown: str) -> None:
    reported = Attempts(function, 1, "0" * 16).report(0, 7)
    with pytest.raises(LanceOpsError, match=shown):
        outcomes_or_raise([reported], 1, None, "token", None)


@pytest.mark.parametrize(
    ("error", "is_tried_again"),
    [
        (StoreError("s3://b/t: too busy"), True),
        (StoreUnreachable("s3://b/t: no answer"), True),
        (TimeoutError("no answer"), True),
        (ObjectNotFound("s3://b/t"), False),
        (UnsafeStore("s3://b/t"), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_that_another_attempt_may_not_meet_is_raised_until_the_last_attempt(
    error: Exception, is_tried_again: bool
) -> None:
    def fail(_: int) -> None:
        raise error

    if is_tried_again:
        with pytest.raises(type(error)):
            Attempts(fail, 2, "0" * 16).report(0, 7)
    for max_attempts in (1,) if is_tried_again else (1, 2):
        reported = Attempts(fail, max_attempts, "0" * 16).report(0, 7)
        with pytest.raises(type(error)):
            outcomes_or_raise([reported], 1, None, "token", None)


def test_an_error_of_the_callers_own_program_comes_back_as_itself() -> None:
    class Bad(Exception):
        """Pickled by value, as a class of a notebook is: no module holds it under its name."""

    def fail(_: int) -> None:
        raise Bad("no")

    reported = Attempts(fail, 1, "0" * 16).report(0, 7)
    with pytest.raises(Bad, match="no"):
        outcomes_or_raise([reported], 1, None, "token", None)


def refuse() -> None:
    raise ValueError("not here")


class Refusing:
    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return refuse, ()


def test_an_outcome_that_cannot_be_unpickled_leaves_no_file() -> None:
    tokens = list[str]()
    job = Job.on("square", "numbers", remove_files=tokens.append)
    with pytest.raises(ValueError, match="not here"):
        outcomes_or_raise(told((0, Refusing())), 1, job, "token", None)
    assert tokens == ["token"]
