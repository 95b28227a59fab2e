"""Fixtures: small tables of several fragments for maintenance verbs."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import lance_ops


def rows(start: int, stop: int) -> pa.Table:
    """Return rows with an unsorted `key` that is sometimes null."""
    ids = list(range(start, stop))
    keys = [None if i % 11 == 0 else (i * 7919) % 1000 for i in ids]
    return pa.table({"id": ids, "key": pa.array(keys, pa.int32()), "text": [f"t{i}" for i in ids]})


@pytest.fixture
def make(dataset_uri: str) -> Callable[..., lance_ops.LanceDataset]:
    """Return a function that writes a dataset of some fragments of some rows, one version each."""

    def make_dataset(num_fragments: int = 5, num_rows: int = 20) -> lance_ops.LanceDataset:
        for at in range(num_fragments):
            made = lance_ops.write_dataset(rows(at * num_rows, (at + 1) * num_rows), dataset_uri, mode="append")
        return made

    return make_dataset
