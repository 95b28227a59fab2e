"""Ask before a change that nothing brings back."""

from __future__ import annotations

import sys

import typer

from lance_ops.core.errors import InvalidInput

__all__ = ["check_can_ask", "insist"]


def check_can_ask(*, as_json: bool) -> None:
    """Raise `InvalidInput` unless a person at a terminal sees a preview and can answer."""
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput(
            "this removes rows and versions for good, and nobody is here to be asked: "
            "look at it with --dry-run, then add --yes"
        )


def insist(question: str) -> None:
    """Ask, with no as the default. End the command with exit code 1 unless the answer is yes."""
    typer.confirm(question, abort=True)
