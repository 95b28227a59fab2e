from __future__ import annotations

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.dagster.declaration.names import MAX_KEY_LENGTH, DatasetNames, safe_key

pytestmark = pytest.mark.dagster


def test_names_derive_from_the_dataset_name() -> None:
    names = DatasetNames("bronze/flights")
    assert names.head == dg.AssetKey(["bronze", "flights"])
    assert names.batches == dg.AssetKey(["bronze", "flights", "batches"])
    assert names.of("compact") == "bronze_flights_compact"
    assert names.partitions.name == "bronze_flights_batches"


def test_a_plain_key_stays_as_it_is() -> None:
    assert safe_key("day=2013-01-01_a.b") == "day=2013-01-01_a.b"


def test_similar_keys_stay_distinct() -> None:
    assert safe_key("a/b") != safe_key("a b")
    assert safe_key("a...b") != safe_key("a-b")


@given(st.text(max_size=300))
def test_every_text_gives_a_key_that_dagster_accepts(text: str) -> None:
    key = safe_key(text)
    assert 0 < len(key) <= MAX_KEY_LENGTH
    assert ".." not in key
    assert safe_key(key) == key
    assert safe_key(text) == key
