"""Datasets of old releases: we read them as the reference does, and refuse changes that would damage them."""

import shutil
from pathlib import Path

import pytest

import lance_ops
from lance_ops.core.versions import FileVersion
from lance_ops.errors import CorruptFile, UnsupportedFeature

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

READABLE = [
    "v0.7.5/with_deletions",
    "v0.8.0/migrated_from_v0.7.5",
    "v0.10.5/corrupt_schema",
    "v0.13.0/string_encoding.lance",
    "v0.15.0/v1_with_files.lance",
    "v0.15.0/v2_no_files.lance",
    "v0.15.0/v2_with_files.lance",
    "v0.16.0/wrong_data_version_can_fix.lance",
    "v0.16.0/wrong_data_version_no_fix.lance",
    "v0.18.2/index_no_details.lance",
    "v0.20.0/old_btree_bitmap_indices.lance",
    "v0.21.0/bad_index_fragment_bitmap",
    "v0.27.1/pq_in_schema",
    "0.27.0/legacy_fts_index",
    "0.36.0/btree_in_index_pkg.lance",
]


@pytest.mark.parametrize("name", READABLE)
def test_every_row_of_an_old_dataset_is_read_as_the_reference_reads_it(historical: Path, name: str) -> None:
    ours, theirs = lance_ops.dataset(historical / name), lance.dataset(historical / name)
    assert ours.version == theirs.version
    assert ours.count_rows() == theirs.count_rows()
    assert ours.to_table(with_row_id=True).equals(theirs.to_table(with_row_id=True))


def test_a_dataset_without_its_data_files_opens_and_names_the_missing_one(historical: Path) -> None:
    dataset = lance_ops.dataset(historical / "v0.5.9/dataset_with_fragments")
    with pytest.raises((FileNotFoundError, CorruptFile), match=r"data/.*\.lance"):
        dataset.to_table()


def test_a_table_with_unreliable_row_counts_refuses_changes(historical: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.lance"
    shutil.copytree(historical / "v0.8.0/migrated_from_v0.7.5", copy)
    dataset = lance_ops.dataset(copy)
    rows = dataset.to_table()
    assert rows.num_rows == 92
    with pytest.raises(UnsupportedFeature, match="names no writer"):
        dataset.delete("true")
    with pytest.raises(UnsupportedFeature, match="copy it with write_dataset"):
        dataset.checkout_version(1).restore()
    assert lance_ops.dataset(copy).version == dataset.version
    fresh = lance_ops.write_dataset(dataset, tmp_path / "fresh.lance")
    assert fresh.to_table() == rows
    assert fresh.delete("true") == {"num_deleted_rows": 92}


def test_a_table_that_states_the_wrong_file_version_stays_open_to_the_reference(
    historical: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.lance"
    shutil.copytree(historical / "v0.16.0/wrong_data_version_can_fix.lance", copy)
    assert lance.dataset(copy).data_storage_version == "0.1"
    dataset = lance_ops.dataset(copy)
    rows = dataset.to_table()
    lance_ops.write_dataset(rows, copy, mode="append")
    assert lance.dataset(copy).data_storage_version == "2.0"
    lance.write_dataset(rows, copy, mode="append")
    dataset = lance_ops.dataset(copy)
    dataset.add_columns({"more": "foo + 1"})
    files = [file for fragment in dataset.get_fragments() for file in fragment.metadata.files]
    assert dataset.data_storage_version == "2.0"
    assert {FileVersion.from_numbers(*file.numbers, where=file.path) for file in files} == {FileVersion.V2_0}
    assert lance.dataset(copy).to_table().equals(dataset.to_table())
    assert dataset.count_rows() == 3 * len(rows)


def test_an_old_b_tree_is_passed_over_until_it_is_built_again(historical: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.lance"
    shutil.copytree(historical / "v0.20.0/old_btree_bitmap_indices.lance", copy)
    dataset = lance_ops.dataset(copy)
    lance_ops.write_dataset(dataset.to_table(), copy, mode="append")
    dataset.checkout_latest()
    for condition in ("btree > 2", "btree = 1", "btree IN (2, 4)", "bitmap > 2", "btree IS NULL"):
        found = dataset.to_table(filter=condition)
        assert found.equals(lance.dataset(copy).to_table(filter=condition)), condition
    with pytest.raises(UnsupportedFeature, match="build the index again"):
        dataset.prewarm_index("btree_idx")
    dataset.create_scalar_index("btree", "BTREE", name="btree_idx", replace=True)
    assert "ScalarIndexQuery" in dataset.scanner(filter="btree > 2").explain_plan()
    assert dataset.count_rows("btree > 2") == 4


def test_fields_that_the_reference_gave_new_ids_are_found_in_files_of_0_1(historical: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.lance"
    shutil.copytree(historical / "v0.10.5/corrupt_schema", copy)
    before = [field.id() for field in lance_ops.dataset(copy).lance_schema.fields()]
    lance.dataset(copy).update_config({"repaired": "yes"})
    ours, theirs = lance_ops.dataset(copy), lance.dataset(copy)
    assert [field.id() for field in ours.lance_schema.fields()] != before
    assert ours.to_table().equals(theirs.to_table())
    for condition in ("b > 4", "c = 5", "b < 0", "x = 1 AND c > 0"):
        assert ours.to_table(filter=condition).equals(theirs.to_table(filter=condition)), condition
