from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from lance_ops.core.errors import StoreError
from lance_ops.store import modified_of
from lance_ops.store.services.contract import when_written

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("2026-01-01T12:00:00", NOON),
        ("2026-01-01T13:00:00+01:00", NOON),
        (datetime(2026, 1, 1, 12), NOON),
        ("Thu, 01 Jan 2026 12:00:00 GMT", None),
    ],
)
def test_a_time_without_a_zone_is_in_utc_and_another_text_is_no_time(
    stated: object, expected: datetime | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert modified_of({"modified": stated}) == expected
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("stated", ["Thu, 01 Jan 2026 12:00:00 GMT", 1e300])
def test_a_store_that_states_a_time_in_an_unknown_form_fails_with_the_object_s_name(stated: object) -> None:
    with pytest.raises(StoreError, match=r"a/b: .* when an object was written"):
        when_written({"name": "a/b", "LastModified": stated})


def test_the_first_time_in_a_known_form_counts() -> None:
    assert when_written({"mtime": 1e300, "LastModified": "yesterday", "created": NOON}) == NOON
