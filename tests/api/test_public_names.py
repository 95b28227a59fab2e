"""The public names and their arguments change only on purpose."""

from __future__ import annotations

from pathlib import Path

from tests.api.public_names import describe_public_api

GOLDEN = Path(__file__).parents[1] / "golden" / "public_api.txt"


def test_public_names_and_arguments_are_those_on_record() -> None:
    recorded = GOLDEN.read_text().splitlines()
    assert len(recorded) > 400
    assert describe_public_api() == recorded, "see tests/api/public_names.py for a change that is meant"
