"""Filters that are parsed without sqlglot: each is the predicate, or the error, that sqlglot's text would become."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops.core.errors import LanceOpsError
from lance_ops.core.predicate import Predicate, sql
from lance_ops.core.predicate.sql.dialect import LanceDialect

SCHEMA = pa.schema([("id", pa.int64()), ("Name", pa.string()), ("x", pa.float32()), ("x_1", pa.decimal128(9, 2))])
PIECES = [
    *["id", "NAME", "x", "x_1", "nope", "null", "not"],
    *["=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>", "-", "--", "/*", "(", ")", ";", ","],
    *["7", "-3", "0.25", "1.", ".5", "1e3", "0x1f", "'a'", "'it''s'", "'", '"', '"b"', "`id`", "'a\"'", "'\\'", "'é'"],
    *["and", "AND", "or", " ", "  ", "\t", "\n", "\r", "\f", "\v", "\0", "\u00a0"],
]


def _of_sqlglot(text: str, schema: pa.Schema) -> Predicate | str:
    try:
        return sql.parse_sql(text, schema)
    except LanceOpsError as error:
        return str(error)


def _plain(text: str, schema: pa.Schema) -> Predicate | str | None:
    try:
        return sql.parse_plain(text, schema)
    except LanceOpsError as error:
        return str(error)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("id = 7", "id = 7"),
        ("\tid>=-0\n", None),
        ("id >= -7 AND x<2.5 and name != 'a b'", "id >= -7 AND x < 2.5 AND `Name` != 'a b'"),
        ("x_1 <> 1.25 and\nid > 3 AND id<= 9", "x_1 != DECIMAL(9, 2) '1.25' AND id > 3 AND id <= 9"),
        ("id = 1 or id = 2", None),
        ("id = 1 and", None),
        ("null = 1", None),
        ("id = 7--", None),
    ],
)
def test_plain_comparisons_are_read_and_other_texts_are_left(text: str, shown: str | None) -> None:
    found = sql.parse_plain(text, SCHEMA)
    assert (found and found.to_sql()) == shown


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=20))
def test_a_text_that_is_read_means_what_sqlglot_says(text: str) -> None:
    found = _plain(text, SCHEMA)
    assert found is None or found == _of_sqlglot(text, SCHEMA)


COMPARISONS = st.tuples(
    st.sampled_from(["id", "Id", "name", "x", "x_1", "nope"]),
    st.sampled_from(["=", "!=", "<>", "<", "<=", ">", ">="]),
    st.sampled_from(["7", " 7.25", " -3", "\n-0.5", " 'x y'", "''", str(2**63), " -" + str(2**63), "9" * 90]),
).map("".join)


@given(st.lists(COMPARISONS, min_size=1, max_size=4).map(" and ".join))
def test_plain_comparisons_mean_what_sqlglot_says(text: str) -> None:
    found = _plain(text, SCHEMA)
    assert found is not None
    assert found == _of_sqlglot(text, SCHEMA)


def test_words_of_sql_are_read_as_sqlglot_does() -> None:
    parser = LanceDialect.Parser
    words = {*LanceDialect.Tokenizer.KEYWORDS, *parser.NO_PAREN_FUNCTION_PARSERS, *parser.FUNCTION_PARSERS}
    names = sorted(word.lower() for word in words if word.isidentifier())
    assert len(names) > 200
    for name in names:
        for kind, literal in ((pa.int64(), "7"), (pa.int64(), " -7"), (pa.string(), "'7'")):
            schema = pa.schema([(name, kind), ("b", pa.int64())])
            for text in (f"{name} ={literal}", f"b = 1 AND {name} <{literal}", f"{name} >{literal} and b = 1"):
                found = _plain(text, schema)
                assert found is None or found == _of_sqlglot(text, schema), text
