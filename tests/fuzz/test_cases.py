"""Files that fuzzing once found to be misread."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.reading import read_deletions, read_file, read_manifest

CASES = Path(__file__).parent / "cases"
OUTCOMES = {
    "invalid_schema.arrow": "CorruptFile",
    "dictionaries_with_null_entries.lance": "rows",
    "fragments_beyond_32_bits.manifest": "CorruptFile",
    "null_keys_of_maps.lance": "CorruptFile",
    "nulls_of_a_field_that_is_not_nullable.lance": "CorruptFile",
    "too_many_nulls_in_lists.lance": "CorruptFile+ReadTooLarge",
    "numbers_with_children.lance": "UnsupportedFeature+rows",
    "petabytes_of_deletions.arrow": "CorruptFile",
    "rows_beyond_64_bits.lance": "CorruptFile",
    "sizes_beyond_32_bits.manifest": "CorruptFile",
    "structs_without_their_children.lance": "CorruptFile",
    "validity_that_is_null.lance": "CorruptFile",
}
READERS = {".lance": read_file, ".arrow": read_deletions, ".manifest": read_manifest}


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_found_file_gives_rows_or_its_typed_error(name: str) -> None:
    data = (CASES / name).read_bytes()
    assert READERS[Path(name).suffix](data) == OUTCOMES[name]


def test_every_found_file_has_an_expected_outcome() -> None:
    assert {path.name for path in CASES.iterdir()} == set(OUTCOMES)
