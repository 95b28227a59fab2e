"""Both ends of the pipe between a bench and a contender's process: requests and answers, one JSON object per line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

__all__ = ["Answering", "Worker", "serve"]

Answering = Callable[[dict[str, Any]], dict[str, Any]]
"""Turns a question into its answer."""


class Worker:
    """A worker process, which runs a module with some arguments, and the pipe to it. The module calls `serve`."""

    def __init__(self, *arguments: str, module: str = "tests.bench.worker") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"LANCE_LOG": "error"},
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        """Return the worker's answer. If the worker dies, return an error, as for a failed operation."""
        assert self._process.stdin and self._process.stdout
        try:
            print(json.dumps(question), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        answer: dict[str, Any] = json.loads(line) if line else {"error": f"died: exit code {self._process.wait()}"}
        return answer

    def move_to(self, core: int) -> None:
        """Pin all present threads of the process; later threads inherit the setting."""
        for thread in Path(f"/proc/{self._process.pid}/task").glob("*"):
            os.sched_setaffinity(int(thread.name), {core})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()


def serve(begin: Callable[..., Answering], *, root: Path | None = None) -> None:
    """Answer each question of the bench; `begin` gets the arguments of the `Worker`.

    An exception becomes an error without the path of `root` in it.
    """
    # Output that libraries print goes to stderr, so the pipe carries answers only.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    answer_to = begin(*sys.argv[1:])
    prefixes = [f"{folder}/" for folder in (root, Path.cwd()) if folder]
    for line in sys.stdin:
        try:
            answer = answer_to(json.loads(line))
        except Exception as error:  # noqa: BLE001 - a contender that fails is a cell of the table
            reason = f"{type(error).__name__}: {error}"
            for prefix in prefixes:
                reason = reason.replace(prefix, "")
            answer = {"error": reason}
        print(json.dumps(answer), file=answers)
