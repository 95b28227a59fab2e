"""Datasets of the oldest releases, which may have no `_versions`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lance_ops.committers import Committed, PutIfAbsentCommitter
from lance_ops.committers.legacy_manifest import read_legacy_manifest
from lance_ops.core.errors import CorruptFile, VersionNotFound
from lance_ops.store import LocalStore, MemoryStore

LEGACY = [
    ("v0.5.9/dataset_with_fragments", 3),
    ("v0.7.5/with_deletions", 2),
    ("v0.8.0/migrated_from_v0.7.5", 3),
    ("v0.10.5/corrupt_schema", 6),
    ("v0.15.0/v2_with_files.lance", 1),
]


def without_versions(source: Path, target: Path) -> LocalStore:
    target.mkdir()
    shutil.copyfile(source / "_latest.manifest", target / "_latest.manifest")
    return LocalStore(str(target))


@pytest.mark.parametrize(("name", "version"), LEGACY)
def test_the_version_of_a_dataset_without_versions_is_in_its_legacy_manifest(
    historical: Path, tmp_path: Path, name: str, version: int
) -> None:
    whole = PutIfAbsentCommitter(LocalStore(str(historical / name)))
    bare = PutIfAbsentCommitter(without_versions(historical / name, tmp_path / "bare"))

    assert whole.latest() == bare.latest() == version
    assert bare.versions() == [version]
    assert whole.location(version) == f"_versions/{version}.manifest"
    assert bare.location(version) == "_latest.manifest"
    assert bare.read(version) == whole.read(version)
    assert bare.exists(version)
    assert not bare.exists(version + 1)
    with pytest.raises(VersionNotFound):
        bare.read(version + 1)


def test_a_legacy_manifest_is_ignored_beside_versions(historical: Path) -> None:
    committer = PutIfAbsentCommitter(LocalStore(str(historical / "v0.8.0/migrated_from_v0.7.5")))
    assert committer.versions() == [1, 2, 3]


def test_the_first_commit_keeps_the_legacy_version(historical: Path, tmp_path: Path) -> None:
    store = without_versions(historical / "v0.7.5/with_deletions", tmp_path / "bare")
    legacy = store.get("_latest.manifest")
    committer = PutIfAbsentCommitter(store)

    assert isinstance(committer.commit(3, b"three"), Committed)

    assert committer.versions() == PutIfAbsentCommitter(store).versions() == [2, 3]
    assert committer.read(2) == legacy


@pytest.mark.parametrize("damage", [b"", b"LANC", b"\0" * 16, b"\xff" * 12 + b"LANC", b"\0" * 12 + b"LANC"])
def test_a_damaged_legacy_manifest_is_a_corrupt_file(damage: bytes) -> None:
    store = MemoryStore()
    store.put("_latest.manifest", damage)
    with pytest.raises(CorruptFile, match="_latest.manifest"):
        read_legacy_manifest(store)
