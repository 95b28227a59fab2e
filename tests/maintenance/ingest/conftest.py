"""A folder for raw files, and a table to ingest them into."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of raw files."""
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


@pytest.fixture
def uri(dataset_uri: str) -> str:
    """A table that is there already: the files decide nothing about its schema."""
    lance_ops.write_dataset(pa.table({"x": [0]}), dataset_uri)
    return dataset_uri
