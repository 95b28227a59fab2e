"""What fuzzing found once, read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.reading import read_deletions, read_file, read_manifest

CASES = Path(__file__).parent / "cases"
OUTCOMES = {
    "a_schema_that_is_none.arrow": "CorruptFile",
    "dictionaries_with_nulls_among_their_entries.lance": "rows",
    "fragments_beyond_32_bits.manifest": "CorruptFile",
    "nulls_for_keys_of_maps.lance": "CorruptFile",
    "nulls_that_may_not_be_null.lance": "CorruptFile",
    "nulls_without_end_in_lists.lance": "CorruptFile+ReadTooLarge",
    "numbers_with_children.lance": "UnsupportedFeature+rows",
    "petabytes_of_deletions.arrow": "CorruptFile",
    "rows_beyond_64_bits.lance": "CorruptFile",
    "sizes_beyond_32_bits.manifest": "CorruptFile",
    "structs_without_their_children.lance": "CorruptFile",
    "validity_that_is_null.lance": "CorruptFile",
}
READERS = {".lance": read_file, ".arrow": read_deletions, ".manifest": read_manifest}


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_was_found_is_read_or_refused(name: str) -> None:
    data = (CASES / name).read_bytes()
    assert READERS[Path(name).suffix](data) == OUTCOMES[name]


def test_every_case_is_read() -> None:
    assert {path.name for path in CASES.iterdir()} == set(OUTCOMES)
