"""Ask before a change that nothing undoes."""

from __future__ import annotations

import sys

import typer

from lance_ops.core.errors import InvalidInput

__all__ = ["check_can_ask", "confirm_or_exit"]


def check_can_ask(*, as_json: bool) -> None:
    """Raise `InvalidInput` unless a person at a terminal sees a preview and can answer."""
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput(
            "this cannot be undone, and the command asks only at a terminal and without --json: look at it with "
            "--dry-run, then add --yes"
        )


def confirm_or_exit(question: str) -> None:
    """Ask, with no as the default. End the command with exit code 1 unless the answer is yes."""
    typer.confirm(question, abort=True)
