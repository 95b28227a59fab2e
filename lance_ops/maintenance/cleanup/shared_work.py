"""Say how a clean-up is shared among tasks: the manifests they read, the folders they list, the files they delete.

A task returns names of files. It leaves out files of the newest version, which clean-up keeps: most versions share most
of their files with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lance_ops.core.records import dataclass
from lance_ops.runners import Runner

__all__ = ["CleanupTasks", "cut"]

T = TypeVar("T")


@dataclass(frozen=True)
class CleanupTasks:
    """A runner, and how much one task of it does. Work that fits into one task stays in the calling process.

    A version costs the decoding of its manifest. Folders are listed by tasks if the newest version has at least
    `least_fragments`.
    """

    runner: Runner
    versions_per_task: int = 64
    deletes_per_task: int = 5000
    least_fragments: int = 50_000

    @classmethod
    def of(cls, runner: Runner | None) -> CleanupTasks | None:
        """Return the tasks of a runner; None, for the calling process alone, if there is none."""
        return None if runner is None else cls(runner)


def cut(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Cut items into parts of a size; the last one may be smaller."""
    return [items[at : at + size] for at in range(0, len(items), size)]
