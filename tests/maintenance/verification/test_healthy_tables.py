"""A healthy table of any kind is whole: no check blames what a writer is allowed to do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import LanceOpsError
from lance_ops.maintenance.verification import (
    FindingSeverity,
    VerificationLevel,
    VerificationOptions,
    VerificationReport,
    verify,
    verify_uri,
)

KINDS = [("0.1", False), *((version, stable) for version in ("2.0", "2.1", "2.2") for stable in (False, True))]
"""Versions of files, each without and with stable row ids, which tables of 0.1 do not have."""

EVERYTHING = VerificationOptions(VerificationLevel.FULL, all_versions=True)


def table(num_rows: int, version: str) -> pa.Table:
    """Return columns of many types; 0.1 files hold neither nulls nor maps."""
    ids = np.arange(num_rows)
    columns: dict[str, pa.Array] = {
        "x": pa.array(ids, pa.int64()),
        "f": pa.array(np.where(ids % 17 == 0, np.nan, (ids % 13) - 6.0)),
        "text": pa.array([f"text {i % 97}" for i in ids]),
        "list": pa.array([[i, i + 1][: i % 3] for i in range(num_rows)], pa.list_(pa.int32())),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4 * num_rows), pa.float32()), 4),
        "word": pa.array([f"w{i % 5}" for i in ids]).dictionary_encode(),
    }
    if version != "0.1":
        columns["some"] = pa.array([None if i % 3 else i for i in range(num_rows)], pa.int32())
        columns["pair"] = pa.array([{"a": i, "b": None if i % 2 else f"b{i}"} for i in range(num_rows)])
    if version == "2.2":
        columns["map"] = pa.array([[("k", i)] for i in range(num_rows)], pa.map_(pa.string(), pa.int64()))
    return pa.table(columns)


def live_through(library: Any, uri: str, version: str, stable_row_ids: bool) -> None:
    """Write a table and change it in every way: deletes, updates, appends, columns, compaction, indices."""
    made = table(900, version)
    library.write_dataset(
        made, uri, max_rows_per_file=300, data_storage_version=version, enable_stable_row_ids=stable_row_ids
    )

    def step(change: Callable[[Any], object]) -> None:
        change(library.dataset(uri))

    for column in ("x", "f", "text"):
        step(lambda opened, column=column: opened.create_scalar_index(column, "BTREE"))  # type: ignore[misc]
    step(lambda opened: opened.delete("x % 7 = 0"))
    step(lambda opened: opened.tags.create("deleted"))
    step(lambda opened: opened.update({"f": "f + 1"}, where="x > 700"))
    library.write_dataset(made.slice(0, 100), uri, mode="append")
    if version != "0.1":
        step(lambda opened: opened.add_columns({"y": "x * 2"}))
        step(lambda opened: opened.alter_columns({"path": "y", "data_type": pa.int32()}))
        step(lambda opened: opened.drop_columns(["vector"]))
    step(lambda opened: opened.optimize.compact_files(target_rows_per_fragment=500))
    step(lambda opened: opened.optimize.optimize_indices())
    step(lambda opened: opened.delete("x = 5"))


def check_whole(report: VerificationReport) -> None:
    assert report.ok, str(report)
    assert report.findings == (), str(report)


@pytest.mark.parametrize(("version", "stable_row_ids"), KINDS)
def test_every_version_of_a_table_that_was_changed_in_every_way_is_whole(
    dataset_uri: str, version: str, stable_row_ids: bool
) -> None:
    live_through(lance_ops, dataset_uri, version, stable_row_ids)
    report = verify_uri(dataset_uri, options=EVERYTHING)
    check_whole(report)
    assert report.versions == tuple(range(1, report.version + 1))


@pytest.mark.interop
@pytest.mark.parametrize(("version", "stable_row_ids"), KINDS)
def test_every_version_of_a_table_of_the_reference_is_whole(
    dataset_uri: str, version: str, stable_row_ids: bool
) -> None:
    lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    live_through(lance, dataset_uri, version, stable_row_ids)
    check_whole(verify_uri(dataset_uri, options=EVERYTHING))


@pytest.mark.interop
def test_an_index_of_another_type_is_unverified_and_its_files_are_checked(dataset_uri: str) -> None:
    lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
    lance.write_dataset(table(900, "2.2"), dataset_uri)
    for column, kind in (("text", "BITMAP"), ("list", "LABEL_LIST"), ("x", "ZONEMAP"), ("f", "BLOOMFILTER")):
        lance.dataset(dataset_uri).create_scalar_index(column, kind)
    report = verify_uri(dataset_uri, options=EVERYTHING)
    assert report.ok, str(report)
    assert {finding.severity for finding in report.findings} <= {FindingSeverity.UNVERIFIED}
    index = lance_ops.dataset(dataset_uri).snapshot.manifest.indices[0]
    path = Path(dataset_uri, index.directory, index.files[0].path)
    path.write_bytes(bytes(path.stat().st_size))
    assert verify_uri(dataset_uri, options=EVERYTHING).damaged_indices == (index.name,)


def test_blobs_of_every_kind_are_whole(tmp_path: Path) -> None:
    sizes = [0, 10, 1000, 70_000, 5_000_000, None]
    values = [None if size is None else bytes([7]) * size for size in sizes]
    for version in ("2.0", "2.1", "2.2"):
        schema = pa.schema([pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
        uri = str(tmp_path / version)
        lance_ops.write_dataset(
            pa.table([pa.array(values, pa.large_binary())], schema), uri, data_storage_version=version
        )
        lance_ops.dataset(uri).delete("_rowid = 1")
        check_whole(verify_uri(uri, options=EVERYTHING))


def test_branches_and_clones_are_whole_and_so_is_their_source(tmp_path: Path) -> None:
    uri, shallow, deep = (str(tmp_path / name) for name in ("source", "shallow", "deep"))
    live_through(lance_ops, uri, "2.2", True)
    source = lance_ops.dataset(uri)
    branch = source.create_branch("trial", "deleted")
    branch.delete("x = 11")
    for clone in (source.shallow_clone(shallow, "deleted"), source.deep_clone(deep, source.version)):
        clone.delete("x = 12")
        lance_ops.write_dataset(clone.to_table().slice(0, 5), clone.uri, mode="append")
    for each in (uri, branch.uri, shallow, deep):
        check_whole(verify_uri(each, options=EVERYTHING))


def test_files_under_base_paths_are_found(tmp_path: Path) -> None:
    uri, base = str(tmp_path / "data"), str(tmp_path / "base")
    bases = [lance_ops.DatasetBasePath(base, "elsewhere", id=1)]
    lance_ops.write_dataset(table(50, "2.2"), uri, initial_bases=bases, target_bases=["elsewhere"])
    check_whole(verify_uri(uri, options=EVERYTHING))
    shutil.rmtree(base)
    assert verify_uri(uri).damaged_fragments == (0,)


def test_a_table_in_memory_is_whole() -> None:
    made = lance_ops.write_dataset(table(50, "2.2"), "memory://verified")
    check_whole(made.verify())


def test_tables_of_old_releases_are_judged_without_an_error(historical: Path) -> None:
    roots = sorted({path.parent.parent for path in historical.rglob("*.manifest") if path.parent.name == "_versions"})
    verdicts: dict[str, bool] = {}
    for root in roots:
        name = str(root.relative_to(historical))
        try:
            opened = lance_ops.dataset(str(root))
        except LanceOpsError:
            verdicts[name] = verify_uri(str(root)).ok
            continue
        verdicts[name] = verify(opened.snapshot).ok
        try:
            opened.validate()
        except LanceOpsError:
            assert not verdicts[name], name
    assert len(verdicts) > 5
    assert sum(verdicts.values()) > len(verdicts) / 2, verdicts


@pytest.mark.interop
def test_a_version_that_the_reference_cleaned_up_beside_is_whole_while_a_branch_keeps_it(dataset_uri: str) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": [1, 2]}), dataset_uri)
    dataset.create_branch("b")
    dataset.insert(pa.table({"id": [3]}))
    theirs = lance.dataset(dataset_uri)
    theirs.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    assert lance_ops.dataset(dataset_uri, 1).count_rows() == 2
    assert not list(Path(dataset_uri, "_transactions").glob("0-*"))
    assert lance_ops.dataset(dataset_uri).verify(all_versions=True).findings == ()
