"""What the contenders answer to a table case. Each writes its answer down, and all must be the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

__all__ = ["compare", "write_answer"]


def write_answer(root: Path, contender: str, answer: pa.Table) -> None:
    """Write one contender's answer as an Arrow file, in place of its last."""
    with pa.ipc.new_file(_path(root, contender), answer.schema) as sink:
        sink.write_table(answer)


def compare(case: str, root: Path, contenders: Sequence[str]) -> None:
    """Raise `AssertionError` unless all contenders wrote the same answer."""
    answers = [pa.ipc.open_file(pa.memory_map(str(_path(root, name)))).read_all() for name in contenders]
    if any(not answer.equals(answers[0]) for answer in answers):
        raise AssertionError(f"{case}: the contenders do not answer the same")


def _path(root: Path, contender: str) -> Path:
    return root / f"{contender}-answer.arrow"
