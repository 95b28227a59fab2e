"""Fixtures: small tables of several fragments for maintenance verbs."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.snapshot import Snapshot
from lance_ops.table import change_manifest, encode_manifest
from lance_ops.transactions import read_version
from tests.maintenance.verification.planted_damages import make_dataset


def rows(start: int, stop: int) -> pa.Table:
    """Return rows with an unsorted `key` that is sometimes null."""
    ids = list(range(start, stop))
    keys = [None if i % 11 == 0 else (i * 7919) % 1000 for i in ids]
    return pa.table({"id": ids, "key": pa.array(keys, pa.int32()), "text": [f"t{i}" for i in ids]})


def forbid_writes(snapshot: Snapshot) -> None:
    """Set a flag in a version's manifest that this release does not know: it may read the version, and not write it."""
    committed = read_version(snapshot.store, snapshot.committer, snapshot.version)
    assert committed.transaction is not None
    forged = change_manifest(committed.manifest, writer_feature_flags=committed.manifest.writer_feature_flags | 1 << 40)
    snapshot.store.put(
        snapshot.committer.location(snapshot.version), encode_manifest(forged, committed.transaction.encode())
    )


@pytest.fixture
def make(dataset_uri: str) -> Callable[..., lance_ops.LanceDataset]:
    """Return a function that writes a dataset of some fragments of some rows, one version each."""

    def make_dataset(num_fragments: int = 5, num_rows: int = 20) -> lance_ops.LanceDataset:
        for at in range(num_fragments):
            made = lance_ops.write_dataset(rows(at * num_rows, (at + 1) * num_rows), dataset_uri, mode="append")
        return made

    return make_dataset


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a dataset with every kind of part, for a verification or a repair. No test changes it."""
    root = tmp_path_factory.mktemp("healthy") / "data.lance"
    make_dataset(root)
    return root


@pytest.fixture
def copied(healthy: Path, tmp_path: Path) -> Path:
    """The root of a copy to damage."""
    return Path(shutil.copytree(healthy, tmp_path / "data.lance"))
