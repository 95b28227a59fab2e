"""Every Arrow type that a column may have is read back from its name, and a wrong name raises a typed error."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.errors import InvalidFilter
from lance_ops.core.predicate.arrow_type_names import parse_arrow_type, spell_arrow_type

_UNITS = st.sampled_from(["s", "ms", "us", "ns"])
_ZONES = st.sampled_from([None, "UTC", "Europe/Paris", "+01:00"])
_FLAT = st.one_of(
    st.sampled_from([pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.string(), pa.large_binary()]),
    st.sampled_from([pa.string_view(), pa.binary_view(), pa.date32(), pa.date64(), pa.time32("ms")]),
    st.builds(pa.timestamp, _UNITS, _ZONES),
    st.builds(pa.duration, _UNITS),
    st.builds(pa.time64, st.sampled_from(["us", "ns"])),
    st.builds(pa.binary, st.integers(1, 99)),
    st.builds(pa.decimal128, st.integers(1, 38), st.integers(-3, 9)),
    st.builds(pa.decimal256, st.integers(1, 76), st.integers(0, 9)),
    st.builds(pa.dictionary, st.sampled_from([pa.int8(), pa.uint32()]), st.sampled_from([pa.string(), pa.int64()])),
)


def _nested(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    items = st.builds(lambda kind, nullable: pa.field("item", kind, nullable), inner, st.booleans())
    names = st.text(st.characters(exclude_characters='"', exclude_categories=["Cs"]), max_size=5)
    fields = st.lists(st.tuples(names, items), max_size=3, unique_by=lambda pair: pair[0])
    return st.one_of(
        st.builds(pa.list_, items),
        st.builds(pa.large_list, items),
        st.builds(pa.list_, items, st.integers(1, 9)),
        st.builds(lambda pairs: pa.struct([field.with_name(name) for name, field in pairs]), fields),
    )


@given(st.recursive(_FLAT, _nested, max_leaves=5))
def test_a_type_is_read_back_from_its_name(kind: pa.DataType) -> None:
    assert parse_arrow_type(spell_arrow_type(kind)) == kind


@given(st.recursive(_FLAT, _nested, max_leaves=5), st.data())
def test_a_damaged_name_gives_a_type_or_a_typed_error(kind: pa.DataType, data: st.DataObject) -> None:
    name = spell_arrow_type(kind)
    start = data.draw(st.integers(0, len(name)))
    stop = data.draw(st.integers(start, len(name)))
    damage = data.draw(st.sampled_from(["", "(", '"', "9" * 20, "-1", "é", ","]))
    with suppress(InvalidFilter):
        assert isinstance(parse_arrow_type(name[:start] + damage + name[stop:]), pa.DataType)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "ends too early"),
        ("Nope", "no type 'Nope'"),
        ("Timestamp(us", "'\\)' is missing"),
        ("Timestamp(us, UTC)", "'UTC' should be in double quotes"),
        ("Timestamp(minute)", "minute"),
        ("Int8 Int8", "'Int8' is not expected"),
        ("Decimal128(39, 0)", "precision"),
        ("FixedSizeBinary(x)", "'x'"),
        ("List(" * 5000, "recursion"),
        ("Int8;", "';' is not expected"),
    ],
)
def test_a_wrong_name_is_refused_with_the_reason(name: str, words: str) -> None:
    with pytest.raises(InvalidFilter, match=words):
        parse_arrow_type(name)
