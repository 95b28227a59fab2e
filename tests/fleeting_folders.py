"""Folders for tests that hypothesis runs many times, where pytest's `tmp_path` would be one for all examples."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def fleeting_folder() -> Iterator[Path]:
    """Make an empty folder on the disk, and remove it with all that is in it."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
