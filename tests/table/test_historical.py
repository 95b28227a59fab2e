"""Manifests written by old releases: read, written again, and read the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.table import check_writable, decode_manifest, encode_manifest, inline_transaction, violations
from lance_ops.transactions import Transaction

EXPECTED = {  # dataset: (data format, fragments of the newest version, flaws that `validate` reports)
    "v0.5.9/dataset_with_fragments": ("0.1", 3, set()),
    "v0.7.5/with_deletions": ("0.1", 1, set()),
    "v0.8.0/migrated_from_v0.7.5": ("0.1", 2, set()),
    "v0.10.5/corrupt_schema": ("0.1", 2, {"a_field_lies_in_one_file_of_a_fragment"}),
    "v0.13.0/string_encoding.lance": ("2.0", 1, set()),
    "v0.15.0/v1_with_files.lance": ("0.1", 1, set()),
    "v0.15.0/v2_no_files.lance": ("2.2", 0, set()),
    "v0.15.0/v2_with_files.lance": ("2.0", 1, set()),
    "v0.16.0/wrong_data_version_can_fix.lance": ("2.0", 3, set()),
    "v0.16.0/wrong_data_version_no_fix.lance": (
        "0.1",
        4,
        {"files_have_the_tables_version", "fragment_ids_are_unique"},
    ),
    "v0.18.2/index_no_details.lance": ("2.0", 1, set()),
    "v0.21.0/bad_index_fragment_bitmap": ("2.0", 2, {"a_fragment_is_in_one_segment_of_an_index"}),
    "v0.20.0/old_btree_bitmap_indices.lance": ("2.0", 1, set()),
    "v0.27.1/pq_in_schema": ("2.0", 1, set()),
    "0.27.0/legacy_fts_index": ("2.0", 1, set()),
    "0.36.0/btree_in_index_pkg.lance": ("2.0", 1, set()),
}


@pytest.mark.parametrize("dataset", EXPECTED)
def test_every_version_is_read_and_written_again(historical: Path, dataset: str) -> None:
    manifests = sorted((historical / dataset / "_versions").glob("*.manifest"))
    assert manifests

    for path in manifests:
        data = path.read_bytes()
        manifest = decode_manifest(data, str(path))
        assert manifest.version == int(path.stem)
        assert decode_manifest(encode_manifest(manifest, inline_transaction(data, str(path)) or b""), "m") == manifest

    data_format, fragments, flaws = EXPECTED[dataset]
    assert manifest.data_format.version == data_format
    assert len(manifest.fragments) == fragments
    assert {violation.invariant for violation in violations(manifest)} == flaws
    check_writable(manifest, dataset)


def test_every_transaction_is_read(historical: Path) -> None:
    files = sorted(historical.glob("*/*/_transactions/*.txn"))
    assert files

    for path in files:
        transaction = Transaction.decode(path.read_bytes(), str(path))
        assert transaction.file_name == path.name
        assert Transaction.decode(transaction.encode(), "t") == transaction


def test_index_metadata_of_old_releases_is_read(historical: Path) -> None:
    path = historical / "v0.20.0/old_btree_bitmap_indices.lance/_versions/3.manifest"
    indices = decode_manifest(path.read_bytes(), str(path)).indices

    assert sorted(index.name for index in indices)
    assert all(index.files == () for index in indices)


def test_a_newer_file_version_is_refused_when_it_is_checked(historical: Path) -> None:
    path = historical / "v0.27.1/pq_in_schema/_versions/2.manifest"
    data = path.read_bytes().replace(b"\x0a\x05lance\x12\x032.0", b"\x0a\x05lance\x12\x032.9")

    with pytest.raises(UnsupportedFeature, match="'2.9'"):
        check_writable(decode_manifest(data, str(path)), str(path))
