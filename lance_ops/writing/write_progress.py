"""Whom a write tells of its fragments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from lance_ops.table import Fragment

__all__ = ["FragmentWriteProgress", "NoopFragmentWriteProgress"]


class FragmentWriteProgress(ABC):
    """Is called as fragments are written, in the thread that writes. What it raises ends the write; nothing stays."""

    @abstractmethod
    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Take note of a fragment that is begun; it has no files yet."""

    @abstractmethod
    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Take note of a fragment whose file is written; no version has it yet, nor has it an id."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Takes no note."""

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing."""

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing."""
