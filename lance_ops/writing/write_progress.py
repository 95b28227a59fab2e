"""Callbacks that a write calls when it begins and completes a fragment."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lance_ops.store import open_store
from lance_ops.table import Fragment

__all__ = ["FileSystemFragmentWriteProgress", "FragmentWriteProgress", "NoopFragmentWriteProgress", "NumberedProgress"]


class FragmentWriteProgress(ABC):
    """Called in the thread that writes fragments. An exception from it ends the write, which then deletes its files."""

    @abstractmethod
    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Handle the begin of a fragment; it names its data file, which is not written yet."""

    @abstractmethod
    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Handle a fragment whose file is written; it has no id yet, and no version names it."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Ignores all calls."""

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing."""

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing."""


class NumberedProgress(FragmentWriteProgress):
    """Reports fragments to `progress` under the id that the caller has chosen for them."""

    def __init__(self, progress: FragmentWriteProgress, fragment_id: int) -> None:
        self._progress = progress
        self._fragment_id = fragment_id

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Report the begin."""
        self._progress.begin(replace(fragment, id=self._fragment_id), **kwargs)

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Report the end."""
        self._progress.complete(replace(fragment, id=self._fragment_id), **kwargs)


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
