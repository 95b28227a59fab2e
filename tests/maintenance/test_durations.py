"""Durations are parsed and formatted as the reference's configuration spells them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.errors import InvalidInput
from lance_ops.maintenance.cleanup import format_duration, parse_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (59, "59s"),
        (61, "1m 1s"),
        (3_661, "1h 1m 1s"),
        (86_400, "1day"),
        (14 * 86_400, "14days"),
        (31 * 86_400, "1month 13h 26m 24s"),
        (400 * 86_400, "1year 1month 4days 7h 26m 24s"),
        (1_000_000_000, "31years 8months 7days 19h 17m 52s"),
    ],
)
def test_durations_are_formatted_and_parsed_as_the_reference_does(seconds: int, text: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == text
    assert parse_duration(text) == timedelta(seconds=seconds)


@given(st.integers(0, 10**10))
def test_a_formatted_duration_is_parsed_back(seconds: int) -> None:
    assert parse_duration(format_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        (" 2 weeks ", timedelta(weeks=2)),
        ("1h30min", timedelta(minutes=90)),
        ("1M", timedelta(seconds=2_630_016)),
        ("1500ms 500us", timedelta(milliseconds=1500, microseconds=500)),
        ("9" * 30 + "years", timedelta.max),
    ],
)
def test_other_spellings_of_durations_are_parsed(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", " ", "5", "h", "1.5h", "-1s", "1 fortnight", "1h,2m", "P1D"])
def test_text_that_is_not_a_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a duration"):
        parse_duration(text)


def test_formatting_a_negative_duration_is_refused() -> None:
    with pytest.raises(InvalidInput, match="negative"):
        format_duration(timedelta(seconds=-1))
