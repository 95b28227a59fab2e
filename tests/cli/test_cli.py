"""What all commands have in common: errors, exit codes, units, options of the store; and `delete`."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import typer

from lance_ops.api import dataset
from lance_ops.cli.arguments import byte_count, duration
from lance_ops.cli.output import percent
from tests.cli.calls import answer, outcome, run, text


def test_delete_counts_first_and_deletes_when_told(flights: str) -> None:
    shown = text("delete", flights, "carrier = 'UA' AND x > 0", "--dry-run")
    assert "delete 3 of 10 rows" in shown and "Rows that would go" in shown
    assert dataset(flights).count_rows() == 10
    assert outcome("delete", flights, "carrier = 'UA' AND x > 0") == {
        "num_deleted_rows": 3,
        "version": 4,
        "dry_run": False,
    }
    assert dataset(flights).count_rows() == 7
    assert "no row matches; version 4 stays" in text("delete", flights, "x = 77")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("inspect", "{missing}"), "no Lance dataset at"),
        (("inspect", "{flights}", "--version", "77"), "has no version 77"),
        (("inspect", "{flights}", "--version", "nope"), "has no tag 'nope'"),
        (("delete", "{flights}", "nope = 1"), "nope"),
        (("delete", "{flights}", "x = = 1"), "x = = 1"),
        (("reindex", "{flights}", "--create", "nope"), "nope"),
        (("reindex", "{flights}", "--index", "nope"), "nope"),
        (("tags", "create", "{flights}", "v1"), "exists already"),
        (("tags", "delete", "{flights}", "nope"), "has no tag 'nope'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_1(flights: str, arguments: tuple[str, ...], message: str) -> None:
    result = run(*(argument.format(flights=flights, missing=f"{flights}.not") for argument in arguments))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect",),
        ("inspect", "{flights}", "--storage-option", "no-value"),
        ("cleanup", "{flights}", "--older-than", "two weeks"),
        ("cleanup", "{flights}", "--retain-versions", "0"),
        ("versions", "{flights}", "--limit", "0"),
        ("reindex", "{flights}", "--type", "ZONEMAP"),
        ("reindex", "{flights}", "--drop", "x_idx", "--type", "ZONEMAP"),
        ("merge", "{flights}", "{flights}", "--on", "x", "--if", "source.x > 1", "--delete-matched"),
        ("merge", "{flights}", "{flights}", "--on", "x", "--if", "source.x > 1", "--no-update"),
        ("nonsense",),
    ],
)
def test_an_invalid_command_line_is_exit_code_2(flights: str, arguments: tuple[str, ...]) -> None:
    result = run(*(argument.format(flights=flights) for argument in arguments))
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    if "{flights}" in arguments:
        assert dataset(flights).version == 3


def test_storage_options_reach_the_store(flights: str) -> None:
    assert answer("inspect", flights, "--storage-option", "some_key=a=b")["version"] == 3


@pytest.mark.parametrize(
    ("written", "meant"),
    [("90s", timedelta(seconds=90)), ("36h", timedelta(hours=36)), ("14d", timedelta(days=14)), ("2w", timedelta(14))],
)
def test_durations_have_units(written: str, meant: timedelta) -> None:
    assert duration(written) == meant
    with pytest.raises(typer.BadParameter):
        duration(written[:-1])


def test_percentages_below_the_whole_never_show_100() -> None:
    assert [percent(ratio) for ratio in (None, 0.0, 0.5, 0.99999, 1.0)] == ["-", "0.0%", "50.0%", "99.9%", "100%"]


def test_the_installed_command_starts_without_spark_or_dagster() -> None:
    script = (
        "import sys, lance_ops.cli; "
        "print(*({'pyspark', 'dagster', 'lance'} & sys.modules.keys())); "
        "sys.argv = ['lance-ops', '--help']; lance_ops.cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == ""
    assert "compact" in done.stdout


@pytest.mark.parametrize(
    ("written", "size"), [("7", 7), ("500MB", 500_000_000), ("2GiB", 2 << 30), ("1.5k", 1500), ("x", None), ("", None)]
)
def test_a_size_has_a_number_and_a_unit(written: str, size: int | None) -> None:
    if size is None:
        with pytest.raises(typer.BadParameter, match="no size"):
            byte_count(written)
    else:
        assert byte_count(written) == size


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "arguments", [("inspect",), ("inspect", "--json"), ("query", "--json"), ("compact",)], ids=" ".join
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_takes_no_more_is_one_line_and_exit_code_1(
    flights: str, arguments: tuple[str, ...], unbuffered: str
) -> None:
    command, *options = arguments
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from lance_ops.cli import main; main()", command, flights, *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "error: no output or temporary file can be written: No space left on device; what was committed stays"
    )
    assert "Traceback" not in done.stderr


def test_a_command_whose_output_was_closed_does_its_work(flights: str) -> None:
    shell = f"{sys.executable} -c 'from lance_ops.cli import main; main()' compact {flights} >&-"
    subprocess.run(shell, shell=True, check=True)
    assert len(dataset(flights).get_fragments()) == 1
