"""Callbacks that a write calls when it begins and completes a fragment."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from lance_ops.store import open_store
from lance_ops.table import Fragment

__all__ = ["FileSystemFragmentWriteProgress", "FragmentWriteProgress", "NoopFragmentWriteProgress"]


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


class FileSystemFragmentWriteProgress(FragmentWriteProgress):
    """Writes files beside the data, under the reference's names: who writes a fragment now, and what it began with.

        fragment_{id}.in_progress    {"fragment_id": …, "metadata": {…}}, until the fragment is complete
        fragment_{id}.json           the fragment as it began

    Fragments that no commit has numbered have id 0 and share their files. `base_uri` is a path or the URI of any store.
    """

    PROGRESS_EXT = ".in_progress"

    def __init__(self, base_uri: str, metadata: Mapping[str, str] | None = None) -> None:
        self._store = open_store(base_uri)
        self._metadata = dict(metadata or {})

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Write both files."""
        note = {"fragment_id": fragment.id, "metadata": self._metadata}
        self._store.put(self._in_progress(fragment), json.dumps(note).encode())
        self._store.put(f"fragment_{fragment.id}.json", json.dumps(fragment.to_json()).encode())

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Remove the file that says that the fragment is being written."""
        self._store.delete(self._in_progress(fragment))

    def _in_progress(self, fragment: Fragment) -> str:
        return f"fragment_{fragment.id}{self.PROGRESS_EXT}"
