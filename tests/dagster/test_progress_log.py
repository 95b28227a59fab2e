"""How far a job is, in a run's log: a line now and then and at the end of a long job, none for a short one."""

from __future__ import annotations

import logging
from typing import Literal

import pytest

from lance_ops.dagster.runners.progress_log import SECONDS_BETWEEN_LINES, progress_in_log
from lance_ops.runners import Job, JobProgress

pytestmark = pytest.mark.dagster

JOB = Job.on("compact", "lake/flights.lance", 41)


def lines(caplog: pytest.LogCaptureFixture, *reports: tuple[Job, int, float]) -> list[str]:
    report = progress_in_log(logging.getLogger("run"))
    with caplog.at_level(logging.INFO, "run"):
        for job, num_done, seconds in reports:
            report(JobProgress(job, num_done, 120, seconds))
    return [record.getMessage() for record in caplog.records]


def test_a_short_job_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, (JOB, 40, 1.0), (JOB, 120, 3.0)) == []


def test_a_long_job_of_one_task_logs_a_line_when_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    job = Job.on("compact", "lake/flights.lance", weights=(4096,), unit="bytes")
    report = progress_in_log(logging.getLogger("run"))
    with caplog.at_level(logging.INFO, "run"):
        for seconds in (40.0, 40.5, 9.0, 20.0):  # the end is reported twice; two equal jobs follow, the first is short
            report(JobProgress(job, 1, 1, seconds, 4096))
    assert caplog.messages == [
        "compact flights: its task is done after 40 s, 4.0 KiB of 4.0 KiB, 102 B/s",
        "compact flights: its task is done after 20 s, 4.0 KiB of 4.0 KiB, 204 B/s",
    ]


def test_a_long_job_logs_a_line_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    step = SECONDS_BETWEEN_LINES
    assert lines(caplog, *((JOB, round(at), at) for at in (step, step + 1, 2 * step, 3 * step)), (JOB, 120, 99.0)) == [
        "compact flights v41: 10 of 120 tasks are done, about 110 s left",
        "compact flights v41: 20 of 120 tasks are done, about 100 s left",
        "compact flights v41: 30 of 120 tasks are done, about 90 s left",
        "compact flights v41: all 120 tasks are done after 99 s",
    ]


def test_the_time_left_is_not_said_before_a_task_is_done(caplog: pytest.LogCaptureFixture) -> None:
    assert lines(caplog, (JOB, 0, 60.0)) == ["compact flights v41: 0 of 120 tasks are done"]


@pytest.mark.parametrize(
    ("unit", "amount"),
    [("bytes", "1.0 KiB of 4.0 KiB, 102 B/s"), ("rows", "1,024 of 4,096 rows, 102/s"), (None, None)],
)
def test_a_job_that_knows_its_bytes_or_rows_says_how_fast_it_is(
    caplog: pytest.LogCaptureFixture, unit: Literal["bytes", "rows"] | None, amount: str | None
) -> None:
    job = Job.on("compact", "lake/flights.lance", weights=(1024, 3072), unit=unit)
    with caplog.at_level(logging.INFO, "run"):
        progress_in_log(logging.getLogger("run"))(JobProgress(job, 1, 2, 10.0, 1024))
    amounts = "" if amount is None else f", {amount}"
    assert caplog.messages == [f"compact flights: 1 of 2 tasks are done{amounts}, about 30 s left"]


def test_the_next_job_of_a_run_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    other = Job.on("verify", "lake/flights.lance", 42)
    assert len(lines(caplog, (JOB, 10, 60.0), (other, 10, 11.0), (JOB, 120, 70.0), (JOB, 1, 10.0))) == 4


def test_an_equal_job_begins_anew_although_its_first_report_comes_later_than_the_last_one_s_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert lines(caplog, (JOB, 120, 12.0), (JOB, 1, 15.0), (JOB, 120, 16.0)) == [
        "compact flights v41: all 120 tasks are done after 12 s",
        "compact flights v41: 1 of 120 tasks are done, about 1785 s left",
        "compact flights v41: all 120 tasks are done after 16 s",
    ]
