"""What fuzzing found once, read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.reading import read_file

CASES = Path(__file__).parent / "cases"
OUTCOMES = {
    "nulls_that_may_not_be_null": "CorruptFile",
    "nulls_without_end_in_lists": "CorruptFile+ReadTooLarge",
    "numbers_with_children": "UnsupportedFeature+rows",
    "rows_beyond_64_bits": "CorruptFile",
    "validity_that_is_null": "CorruptFile",
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_what_was_found_is_read_or_refused(name: str) -> None:
    assert read_file((CASES / f"{name}.lance").read_bytes()) == OUTCOMES[name]


def test_every_case_is_read() -> None:
    assert {path.stem for path in CASES.iterdir()} == set(OUTCOMES)
