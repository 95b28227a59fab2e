"""The bar of a command: on a terminal only, for long jobs only, and gone when the command ends."""

from __future__ import annotations

import io
import sys

import click
import pytest
from click.testing import CliRunner

from lance_ops.cli.progress_bar import progress_bar
from lance_ops.runners import Job, JobProgress

JOB = Job.on("compact", "lake/fli\x1bghts.lance", 41)
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, *reports: JobProgress) -> str:
    """Return what a command writes to its terminal for these reports."""
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()

    @click.command()
    def command() -> None:
        monkeypatch.setattr(sys, "stderr", terminal)
        report = progress_bar()
        assert report is not None
        for progress in reports:
            report(progress)

    assert CliRunner().invoke(command, catch_exceptions=False).exit_code == 0
    return terminal.getvalue()


def test_a_long_job_has_a_bar_until_the_command_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, JobProgress(JOB, 3, 120, 1.5), JobProgress(JOB, 60, 120, 2.0))
    assert "60/120" in text
    assert r"compact fli\x1bghts v41" in text  # a name from the command line cannot move the cursor
    assert text.count(HIDE_CURSOR) == text.count(SHOW_CURSOR) == 1


def test_a_job_that_knows_its_bytes_shows_how_fast_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job.on("compact", "flights.lance", weights=(3_000_000, 1), unit="bytes")
    assert "1.5 MB/s" in shown(monkeypatch, JobProgress(job, 1, 2, 2.0, 3_000_000))


def test_a_short_job_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, JobProgress(JOB, 60, 120, 0.2), JobProgress(JOB, 120, 120, 0.4)) == ""


def test_a_pipe_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress_bar() is None
