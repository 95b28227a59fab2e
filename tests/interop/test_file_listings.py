"""Both libraries list the same files of a dataset, and the same files for each version."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import DatasetBasePath

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

ROWS = pa.table({"id": range(10), "s": [f"s{i}" for i in range(10)]})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    bases = [DatasetBasePath(str(tmp_path / "side"), "side", True), DatasetBasePath(str(tmp_path / "bare"), "bare")]
    dataset = lance_ops.write_dataset(ROWS, tmp_path / "table", initial_bases=bases, target_bases=["side", "bare"])
    for target in (["bare"], None):
        dataset.insert(ROWS, target_bases=target)
    dataset.delete("id = 3")
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_branch("dev").insert(ROWS)
    (tmp_path / "table" / "stray.txt").write_text("somebody's")
    return dataset.uri


def rows(reader: Any) -> list[dict[str, Any]]:
    return sorted(reader.read_all().to_pylist(), key=lambda row: [str(row[name]) for name in sorted(row)])


def test_all_files_lists_every_file_under_the_root(uri: str) -> None:
    ours, theirs = lance_ops.dataset(uri).all_files(), lance.dataset(uri).all_files()
    assert ours.schema == theirs.schema
    listed, reference = rows(ours), rows(theirs)
    for mine, other in zip(listed, reference, strict=True):
        moments = mine.pop("last_modified"), other.pop("last_modified")
        assert abs(moments[0] - moments[1]) < timedelta(microseconds=5)  # rounded, or cut off
        assert mine == other
    assert "stray.txt" in {row["path"] for row in listed}


@pytest.mark.parametrize("min_version", [None, 4])
def test_tracked_files_lists_the_files_of_each_version(uri: str, min_version: int | None) -> None:
    seen: list[tuple[int, int | None]] = []
    ours = lance_ops.dataset(uri).tracked_files(
        min_version=min_version, progress=lambda done, total: seen.append((done, total))
    )
    theirs = lance.dataset(uri).tracked_files(min_version=min_version)
    assert ours.schema == theirs.schema
    assert seen == []  # reading starts with the first requested batch
    listed = rows(ours)
    assert listed == rows(theirs)
    assert {row["type"] for row in listed} == {
        "manifest",
        "transaction file",
        "data file",
        "deletion file",
        "index file",
    }
    versions = 5 if min_version is None else 2
    assert seen == [(done, versions) for done in range(1, versions + 1)]


def test_every_tracked_file_exists_and_a_branch_lists_its_own_files(uri: str) -> None:
    branch = lance_ops.dataset(uri).checkout_version(("dev", None))
    listed = rows(branch.tracked_files())
    for row in listed:
        assert Path(row["base_uri"], row["path"]).is_file()
    inherited = [row for row in listed if row["type"] == "index file" and row["base_uri"] == uri]
    assert len(inherited) == 4  # the reference omits index files that a branch shares with the main branch
    theirs = rows(lance.dataset(uri).checkout_version(("dev", None)).tracked_files())
    assert [row for row in listed if row not in inherited] == theirs
