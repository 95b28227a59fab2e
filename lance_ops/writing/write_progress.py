"""Callbacks that a write calls when it begins and completes a fragment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from lance_ops.table import Fragment

__all__ = ["FragmentWriteProgress", "NoopFragmentWriteProgress"]


class FragmentWriteProgress(ABC):
    """Called in the thread that writes fragments. An exception from it ends the write, which then deletes its files."""

    @abstractmethod
    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Handle the begin of a fragment; it has no files yet."""

    @abstractmethod
    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Handle a fragment whose file is written; it has no id yet, and no version names it."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Ignores all calls."""

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing."""

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing."""
