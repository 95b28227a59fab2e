"""Fragments and data files as values: their JSON for other processes, and descriptions of existing files."""

from __future__ import annotations

import dataclasses
import json
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops import FragmentMetadata, LanceFragment, LanceOperation
from lance_ops.errors import CorruptFile, InvalidInput, UnsafePath, UnsupportedFeature, WrongType
from lance_ops.fragment import DataFile, DeletionFile, RowDatasetVersionMeta, RowIdMeta, RowIdSequence
from lance_ops.table import ExternalFile
from tests.interop.two_libraries import rows

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop
theirs = import_module("lance.fragment")

NESTED = pa.table(
    {
        "a": np.arange(5000),
        "n": pa.nulls(5000, pa.int8()),
        "s": pa.array([{"x": i, "y": [str(i)] * 3} for i in range(5000)]),
    }
)


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_fragment_json_of_one_library_is_read_by_the_other(tmp_path: Path, stable_row_ids: bool) -> None:
    uri = str(tmp_path / "table")
    lance_ops.write_dataset(rows(0, 12_000), uri, max_rows_per_file=6_000, enable_stable_row_ids=stable_row_ids)
    dataset = lance_ops.dataset(uri)
    dataset.delete("id = 3 OR id > 6500")  # one deletion file of each kind
    dataset.update({"s": "'new'"}, "id < 5")
    for ours, other in zip(dataset.get_fragments(), lance.dataset(uri).get_fragments(), strict=True):
        mine, said = ours.metadata.to_json(), other.metadata.to_json()
        assert mine == said
        assert FragmentMetadata.from_json(json.dumps(said)) == ours.metadata
        assert theirs.FragmentMetadata.from_json(json.dumps(mine)) == other.metadata
        assert (ours.metadata.num_deletions, ours.metadata.num_rows) == (other.num_deletions, other.count_rows())


def test_a_fragment_written_by_the_reference_is_committed_here(tmp_path: Path) -> None:
    uri = lance_ops.write_dataset(rows(0, 5), tmp_path / "table").uri
    told = json.dumps(theirs.LanceFragment.create(uri, rows(5, 9)).to_json())
    operation = LanceOperation.Append([FragmentMetadata.from_json(told)])
    lance_ops.LanceDataset.commit(uri, operation, read_version=1)
    told = json.dumps(LanceFragment.create(uri, rows(9, 12)).to_json())
    operation = lance.LanceOperation.Append([theirs.FragmentMetadata.from_json(told)])
    lance.LanceDataset.commit(uri, operation, read_version=2)
    assert lance_ops.dataset(uri).to_table()["id"].to_pylist() == list(range(12))


def test_a_row_id_sequence_in_an_external_file_survives_json() -> None:
    fragment = FragmentMetadata(3, (), 5, None, RowIdMeta(ExternalFile("data/x.ids", 4, 16)))
    assert fragment.to_json()["row_id_meta"] == {"External": {"path": "data/x.ids", "offset": 4, "size": 16}}
    assert FragmentMetadata.from_json(json.dumps(fragment.to_json())) == fragment


def changed_rows(uri: str) -> None:
    """Write a table of two fragments: one with deleted rows, one with rows that were updated."""
    lance.write_dataset(rows(0, 12), uri, enable_stable_row_ids=True)
    dataset = lance.dataset(uri)
    dataset.delete("id = 3")
    dataset.update({"s": "'new'"}, "id = 5 OR id = 7")


def test_metadata_has_the_reference_s_members(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    changed_rows(uri)
    pairs = list(zip(lance_ops.dataset(uri).get_fragments(), lance.dataset(uri).get_fragments(), strict=True))
    assert len(pairs) == 2
    for ours, other in pairs:
        mine, said = ours.metadata, other.metadata
        names = ("row_id_meta", "created_at_version_meta", "last_updated_at_version_meta")
        for name in names:
            meta, reference = getattr(mine, name), getattr(said, name)
            assert type(meta).__name__ == type(reference).__name__
            assert meta.json() == reference.json()
            assert type(meta).from_json(reference.json()) == meta
            assert type(reference).from_json(meta.json()) == reference
        assert mine.row_id_meta is not None and said.row_id_meta is not None
        assert mine.row_id_meta.asdict() == said.row_id_meta.asdict()
        assert RowIdMeta.from_dict(said.row_id_meta.asdict()) == mine.row_id_meta
        assert set(dataclasses.asdict(said)) <= set(dataclasses.asdict(mine))
        assert dataclasses.asdict(mine)["files"][0]["fields"] == tuple(dataclasses.asdict(said)["files"][0]["fields"])


def test_metadata_is_made_of_the_reference_s_arguments_in_its_order(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    changed_rows(uri)
    for ours, other in zip(lance_ops.dataset(uri).get_fragments(), lance.dataset(uri).get_fragments(), strict=True):
        said = other.metadata
        files = [
            DataFile(f.path, f.fields, f.column_indices, f.file_major_version, f.file_minor_version, f.file_size_bytes)
            for f in said.files
        ]
        deleted = said.deletion_file
        deletions = deleted and DeletionFile(*deleted.asdict().values())
        made = FragmentMetadata(
            said.id,
            files,  # type: ignore[arg-type]  # a list, as in the reference
            said.physical_rows,
            deletions,
            RowIdMeta.from_json(said.row_id_meta.json()),
            RowDatasetVersionMeta.from_json(said.created_at_version_meta.json()),
            RowDatasetVersionMeta.from_json(said.last_updated_at_version_meta.json()),
        )
        assert made == ours.metadata and made.to_json() == said.to_json()


def test_a_deletion_file_has_the_reference_s_members() -> None:
    for kind in ("array", "bitmap"):
        mine, other = DeletionFile(1, 2, kind, 3, None), theirs.DeletionFile(1, 2, kind, 3, None)  # type: ignore[arg-type]
        assert mine.file_type == other.file_type == kind
        assert (mine.json(), mine.asdict()) == (other.json(), other.asdict())
        assert mine.path(4) == other.path(4)
    with pytest.raises(InvalidInput, match="zip"):
        DeletionFile(1, 2, "zip", 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("ids", [[], [4], list(range(100)), [9, 3, 7], [0, 2**64 - 2], list(range(0, 90, 2))])
def test_row_ids_of_one_library_are_read_by_the_other(ids: list[int]) -> None:
    mine, other = RowIdSequence(ids), theirs.RowIdSequence(ids)
    assert list(mine) == list(other) == ids and len(mine) == len(other)
    assert mine.to_pyarrow().equals(other.to_pyarrow())
    said = other.to_inline_metadata().asdict()
    assert RowIdSequence.from_inline_metadata(RowIdMeta.from_dict(said)) == mine
    told = theirs.RowIdMeta.from_dict(mine.to_inline_metadata().asdict())
    assert list(theirs.RowIdSequence.from_inline_metadata(told)) == ids
    assert RowIdSequence(pa.array(ids, pa.uint64())) == mine


def test_row_ids_that_are_none_are_refused() -> None:
    for ids, error in (([5, 1, 5], InvalidInput), ([-1], InvalidInput), ([1 << 64], InvalidInput), ([None], WrongType)):
        for library in (RowIdSequence, theirs.RowIdSequence):
            with pytest.raises(error if library is RowIdSequence else (ValueError, TypeError, OverflowError)):
                library(ids)
    with pytest.raises(UnsupportedFeature, match="external"):
        RowIdSequence.from_inline_metadata(RowIdMeta(ExternalFile("data/x.ids", 4, 16)))
    with pytest.raises(CorruptFile):
        RowIdSequence.from_inline_metadata(RowIdMeta(b"\xff"))


@pytest.mark.parametrize("said", ["", "[]", "{}", '"Column"', '{"Inline": [300]}', '{"other": [1]}', "[" * 100_000])
def test_json_that_is_no_row_metadata_is_refused(said: str) -> None:
    for kind in (RowIdMeta, RowDatasetVersionMeta):
        with pytest.raises(InvalidInput, match=kind.__name__):
            kind.from_json(said)


def test_row_ids_carried_over_by_hand_survive_a_commit(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    dataset = lance_ops.write_dataset(rows(0, 4), uri, enable_stable_row_ids=True)
    (old,) = dataset.get_fragments()
    made = LanceFragment.create(uri, dataset.to_table().take([2, 0, 3, 1]))
    made = dataclasses.replace(made, row_id_meta=RowIdSequence([2, 0, 3, 1]).to_inline_metadata())
    operation = LanceOperation.Update(removed_fragment_ids=[old.fragment_id], new_fragments=[made])
    lance_ops.LanceDataset.commit(uri, operation, read_version=1)
    for library in (lance_ops, lance):
        found = library.dataset(uri).to_table(columns=["id"], with_row_id=True)
        assert found["_rowid"].to_pylist() == found["id"].to_pylist() == [2, 0, 3, 1]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[]",
        '{"id": 1}',
        '{"id": -1, "files": [], "physical_rows": 1}',
        '{"id": 1, "files": [{"file": 3}], "physical_rows": 1}',
        '{"id": 1, "files": [], "physical_rows": 1, "row_id_meta": {"other": []}}',
        '{"id": 1, "files": [], "physical_rows": 1, "row_id_meta": {"Inline": 3}}',
        "[" * 100_000,
        '{"id": 1, "files": [], "physical_rows": 1, "deletion_file": {"file_type": "list"}}',
    ],
)
def test_json_that_is_no_fragment_is_refused(said: str) -> None:
    with pytest.raises(InvalidInput, match="not a fragment in JSON"):
        FragmentMetadata.from_json(said)


def test_paths_and_overlays_in_json_are_checked() -> None:
    file = {"path": "../../elsewhere.lance", "fields": [0]}
    with pytest.raises(UnsafePath):
        FragmentMetadata.from_json(json.dumps({"id": 1, "files": [file], "physical_rows": 1}))
    with pytest.raises(UnsupportedFeature, match="overlays"):
        FragmentMetadata.from_json(json.dumps({"id": 1, "files": [], "physical_rows": 1, "overlays": [{}]}))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_data_file_create_describes_an_existing_file(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "table")
    lance.write_dataset(NESTED, uri, data_storage_version=version)
    ours, reference = lance_ops.dataset(uri), lance.dataset(uri)
    (file,) = ours.snapshot.fragments[0].files
    assert DataFile.create(ours, file.path) == file
    other = theirs.DataFile.create(reference, file.path)
    assert (list(file.fields), list(file.column_indices)) == (other.fields, other.column_indices)
    found = LanceFragment.create_from_file(file.path, ours, 7)
    assert (found.id, found.physical_rows, found.files) == (7, 5000, (file,))
    assert theirs.LanceFragment.create_from_file(file.path, reference, 7).physical_rows == 5000
    ours.delete("true")
    made = lance_ops.LanceDataset.commit(uri, LanceOperation.Append([found]), read_version=ours.version)
    assert made.to_table().equals(NESTED) and lance.dataset(uri).to_table().equals(NESTED)


def test_data_file_create_refuses_a_file_with_other_columns(tmp_path: Path) -> None:
    ours = lance_ops.write_dataset(rows(0, 5), tmp_path / "table")
    reference = lance.dataset(ours.uri)
    for name, table in (("more", NESTED), ("fewer", rows(0, 3).select(["id"])), ("typed", pa.table({"id": ["x"]}))):
        part = lance_ops.write_dataset(table, tmp_path / name)
        (path,) = Path(part.uri, "data").iterdir()
        shutil.copy(path, Path(ours.uri, "data", f"{name}.lance"))
        for create, dataset in (
            (LanceFragment.create_from_file, ours),
            (theirs.LanceFragment.create_from_file, reference),
        ):
            with pytest.raises((ValueError, OSError), match=r"(?i)schema|column"):
                create(f"{name}.lance", dataset, 3)
    for create, dataset in ((DataFile.create, ours), (theirs.DataFile.create, reference)):
        assert len(create(dataset, "fewer.lance").fields) == 1
        with pytest.raises(ValueError, match=r"(?i)schema|column"):
            create(dataset, "more.lance")
        with pytest.raises((ValueError, OSError), match=r"(?i)no object|not found"):
            create(dataset, "absent.lance")
        with pytest.raises(ValueError, match=r"base_?.?path"):
            create(dataset, "fewer.lance", base_id=3)


@pytest.mark.parametrize(
    "path", ["../data/x.lance", "/etc/passwd", "a/../../x.lance", "s3://bucket/x.lance", "x\0.lance"]
)
def test_data_file_create_refuses_a_file_outside_the_table(tmp_path: Path, path: str) -> None:
    ours = lance_ops.write_dataset(rows(0, 5), tmp_path / "table")
    for described in (lambda: DataFile.create(ours, path), lambda: LanceFragment.create_from_file(path, ours, 1)):
        with pytest.raises((UnsafePath, OSError)) as caught:
            described()
        assert not isinstance(caught.value, FileNotFoundError) or path.startswith("s3:")


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
def test_data_stats_reports_the_reference_s_bytes_per_field(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "table")
    lance.write_dataset(NESTED, uri, data_storage_version=version, max_rows_per_file=2000)

    def sizes() -> list[list[tuple[int, int]]]:
        found: list[list[tuple[int, int]]] = []
        for library in (lance_ops, lance):
            statistics: Any = library.dataset(uri).stats.data_stats()
            found.append([(field.id, field.bytes_on_disk) for field in statistics.fields])
        return found

    ours, other = sizes()
    assert ours == other and (version == "0.1") == (not any(size for _, size in ours))
    dataset = lance_ops.dataset(uri)
    dataset.drop_columns(["n"])
    dataset.add_columns({"q": "a * 2"})
    ours, other = sizes()
    assert ours == other and len(ours) == 6 - 1 + 1


def test_small_fragments_are_counted_alike(tmp_path: Path) -> None:
    uri = lance_ops.write_dataset(rows(0, 2500), tmp_path / "table", max_rows_per_file=1200).uri
    ours, other = (library.dataset(uri).stats for library in (lance_ops, lance))
    for asked in ((), (100,), (2000,)):
        assert ours.dataset_stats(*asked) == other.dataset_stats(*asked)
