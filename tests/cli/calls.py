"""Call the command line in this process, and read what it prints."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from lance_ops.cli import app

__all__ = ["answer", "outcome", "run", "said", "text"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def text(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def said(*arguments: str) -> str:
    """Return the first line that a command prints; sizes that changed stand below it."""
    return text(*arguments).splitlines()[0]


def outcome(*arguments: str) -> dict[str, Any]:
    """Return what a command did as JSON, without the sizes before and after."""
    done = answer(*arguments)
    assert set(done.pop("before")) == set(done.pop("after")) == {"rows", "deleted_rows", "fragments", "size_bytes"}
    return dict(done)


def answer(*arguments: str) -> Any:
    return json.loads(text(*arguments, "--json"))
