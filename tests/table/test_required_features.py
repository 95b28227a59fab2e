"""Feature flags: which tables are left alone, and what a commit sets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.table import BasePath, DataFormat, FeatureFlag, FragmentList, check_readable, check_writable, flags_for
from tests.table.samples import data_file, fragment, index, manifest

READ_AND_WRITTEN = [1, 2, 4, 8, 16, 32, 128, 256]
NEITHER = [64, 512, 2048, 4096, 1 << 40, 1 << 63]


@pytest.mark.parametrize("bit", READ_AND_WRITTEN)
def test_a_known_flag_is_accepted(bit: int) -> None:
    table = replace(manifest(), reader_feature_flags=bit, writer_feature_flags=bit)

    check_readable(table, "m")
    check_writable(table, "m")


@pytest.mark.parametrize("bit", NEITHER)
def test_an_unknown_reader_flag_forbids_reading(bit: int) -> None:
    with pytest.raises(UnsupportedFeature, match="m: reading a table with feature flags"):
        check_readable(replace(manifest(), reader_feature_flags=bit), "m")


@pytest.mark.parametrize("bit", [*NEITHER, 1024])
def test_an_unknown_writer_flag_forbids_writing_only(bit: int) -> None:
    table = replace(manifest(), writer_feature_flags=bit)

    check_readable(table, "m")
    with pytest.raises(UnsupportedFeature, match="m: writing a table with feature flags"):
        check_writable(table, "m")


def test_the_refusal_names_the_flags() -> None:
    with pytest.raises(UnsupportedFeature, match="DATA_OVERLAYS, bit 12"):
        check_readable(replace(manifest(), reader_feature_flags=64 | 4096), "m")


@pytest.mark.parametrize("version", ["2.3", "3.0", "stable", ""])
def test_a_file_version_that_is_not_read_forbids_reading(version: str) -> None:
    with pytest.raises(UnsupportedFeature, match="data storage version"):
        check_readable(replace(manifest(), data_format=DataFormat(version)), "m")


def test_flags_follow_from_the_content() -> None:
    plain = manifest(fragment(0))
    assert flags_for(plain) == (0, 0)
    assert flags_for(manifest(fragment(0, deleted=1))) == (1, 1)
    assert flags_for(replace(plain, fragments=FragmentList([fragment(0).with_sequences(row_ids=b"")]))) == (2, 2)
    assert flags_for(replace(plain, config={"a": "b"})) == (0, 8)
    assert flags_for(replace(plain, base_paths=(BasePath(0, "/x"),))) == (16, 16)
    assert flags_for(replace(plain, indices=(replace(index(1), covering_fields=(2,)),))) == (128, 128)


def test_a_flag_is_cleared_when_its_feature_is_not_in_use() -> None:
    assert flags_for(replace(manifest(fragment(0)), reader_feature_flags=1 | 4, writer_feature_flags=1 | 8)) == (0, 0)


def test_flags_of_stable_row_ids_and_mixed_versions_stay_set() -> None:
    assert flags_for(replace(manifest(), reader_feature_flags=2 | 256)) == (258, 258)


def test_files_of_another_version_set_a_flag() -> None:
    other = replace(data_file("x"), file_minor_version=0)
    table = manifest(fragment(0), replace(fragment(1), files=(other,)))

    assert flags_for(table) == (256, 256)


def test_every_flag_has_its_own_bit() -> None:
    assert [flag.value for flag in FeatureFlag] == [1 << bit for bit in range(12)]
