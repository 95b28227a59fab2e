"""The command `lance-ops`: the library's verbs for people at a terminal and for shell scripts."""

from __future__ import annotations

from lance_ops.cli.commands import app, main

__all__ = ["app", "main"]
