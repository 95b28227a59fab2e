"""What a query needs of its tables, told from its text alone."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from lance_ops.spark.sql_access.query_needs import QueryNeeds, is_of_cte
from lance_ops.spark.sql_access.words import split_words
from lance_ops.spark.translation import CaseRule

T = ("a", "b", "c", "date")
U = ("a", "x", "y")


def needs_of(text: str, rule: CaseRule = CaseRule.INSENSITIVE) -> QueryNeeds:
    return QueryNeeds(sqlglot.parse_one(text, dialect="spark"), split_words(text), rule)


def table_of(needs: QueryNeeds, name: str) -> exp.Table:
    return next(each for each in needs.tree.find_all(exp.Table) if each.name == name and not is_of_cte(each))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM t", "a"),
        ("SELECT A, `b` FROM t", "a b"),
        ("SELECT t.a FROM t WHERE t.b > 1 ORDER BY c", "a b c"),
        ("SELECT q.a FROM t AS q JOIN u ON q.b = u.x", "a b"),
        ("SELECT u.a FROM t JOIN u USING (b)", "b"),
        ("SELECT a.x FROM t JOIN (SELECT x FROM u) a", "a"),
        ("SELECT b.city FROM t WHERE a IN (SELECT x FROM u AS b)", "a b"),
        ("SELECT date FROM t", "date"),
        ("SELECT max(date) FROM t GROUP BY c HAVING count(b) > 1", "b c date"),
        ("SELECT count(*) FROM t", ""),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT * FROM u WHERE u.x = t.c)", "c"),
        ("SELECT s.f FROM t", ""),
        ("SELECT a.f.g FROM t", "a"),
        ("SELECT _rowid, a FROM t", "a _rowid"),
        ("SELECT t._RowAddr FROM t WHERE _ROWID = 1", "_rowid _rowaddr"),
        ("SELECT a FROM (SELECT * FROM t) WHERE b = 1", "a b"),
        ("WITH q AS (SELECT * FROM t) SELECT count(*) FROM q WHERE c > 1", "c"),
        ("WITH t AS (SELECT a FROM t) SELECT * FROM t", "a"),
        ("SELECT transform(b, v -> v + c) FROM t", "b c"),
    ],
)
def test_columns_that_are_named_are_read(text: str, expected: str) -> None:
    needs = needs_of(text)
    assert needs.columns(table_of(needs, "t"), T) == tuple(expected.split())


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t",
        "SELECT t.* FROM t JOIN u",
        "SELECT a, struct(*) FROM t",
        "SELECT count(t.*) FROM t",
        "SELECT count(DISTINCT *) FROM t",
        "SELECT a FROM t NATURAL JOIN u",
        "SELECT * FROM t PIVOT (max(a) FOR b IN (1))",
        "SELECT a FROM (SELECT DISTINCT * FROM t)",
        "SELECT a FROM u WHERE x = (SELECT * FROM t)",
        "SELECT a FROM u WHERE x IN (SELECT * FROM t)",
        "SELECT k FROM (SELECT * FROM t) AS q(k, l, m, n)",
        "SELECT k FROM t AS q(k, l, m, n)",
        "SELECT a FROM (SELECT * FROM t UNION ALL SELECT * FROM t)",
        "SELECT a FROM (SELECT * FROM t UNION ALL SELECT * FROM u)",
        "WITH q AS (SELECT * FROM t) SELECT * FROM q",
        "FROM t |> SELECT a",
        "SELECT a, b, c, `date` FROM t",
        "SELECT sum(b) FROM (SELECT * FROM t ORDER BY 1 LIMIT 5)",
        "SELECT sum(b) FROM (SELECT * FROM t ORDER BY ALL LIMIT 5)",
        "SELECT sum(b) FROM (SELECT * FROM t SORT BY 1 DESC LIMIT 5)",
        "SELECT count(*) FROM (SELECT * FROM t GROUP BY ALL)",
        "SELECT IDENTIFIER('b') FROM t",
    ],
)
def test_where_the_text_leaves_a_doubt_all_columns_are_read(text: str) -> None:
    needs = needs_of(text)
    assert needs.columns(table_of(needs, "t"), T) is None


def test_names_that_differ_only_in_case_are_read_together() -> None:
    text = "SELECT a FROM t"
    assert needs_of(text).columns(table_of(needs_of(text), "t"), ("a", "A", "b")) is None
    exact = needs_of(text, CaseRule.SENSITIVE)
    assert exact.columns(table_of(exact, "t"), ("a", "A", "b")) == ("a",)


@pytest.mark.parametrize(
    ("text", "of_t", "of_u"),
    [
        ("SELECT 1 FROM t WHERE a = 1 AND b = 2", ["a = 1", "b = 2"], []),
        ("SELECT 1 FROM t WHERE a = 1 OR b = 2", ["a = 1 OR b = 2"], []),
        ("SELECT 1 FROM t WHERE a = zz", [], []),
        ("SELECT 1 FROM t, u WHERE t.a = 1 AND u.x = 2 AND t.a = u.a AND b = 3", ["t.a = 1"], ["u.x = 2"]),
        ("SELECT 1 FROM t JOIN u ON t.a = u.a AND t.b = 1 WHERE u.x = 2", ["t.b = 1"], ["u.x = 2"]),
        ("SELECT 1 FROM t LEFT JOIN u ON t.b = 1 AND u.y = 3 WHERE t.a = 1 AND u.x = 2", ["t.a = 1"], ["u.y = 3"]),
        ("SELECT 1 FROM t RIGHT JOIN u ON t.b = 1 WHERE t.a = 1 AND u.x = 2", [], []),
        ("SELECT 1 FROM t FULL JOIN u ON t.b = 1 WHERE t.a = 1 AND u.x = 2", [], []),
        ("SELECT 1 FROM t LEFT ANTI JOIN u ON t.a = u.a AND u.x = 1 WHERE t.b = 1", ["t.b = 1"], []),
        ("SELECT 1 FROM t JOIN t ON true WHERE t.a = 1", [], []),
        ("SELECT 1 FROM t LATERAL VIEW explode(b) v AS c WHERE c = 1 AND t.a = 2", ["t.a = 2"], []),
        ("SELECT 1 FROM t WHERE a IN (SELECT a FROM u WHERE x = 1)", [], ["x = 1"]),
        ("SELECT 1 FROM t TABLESAMPLE (5 ROWS) WHERE a = 1", [], []),
        ("SELECT 1 FROM t AS q(b, a, c, d) WHERE a = 1", [], []),
        ("FROM t |> LIMIT 5 |> WHERE a = 1", [], []),
        (
            "SELECT now FROM t, u WHERE t.a > CAST(1 AS INT) AND (t.b = 1 OR t.b > abs(2)) AND u.x > current_date",
            ["t.a > CAST(1 AS INT)", "t.b = 1 OR t.b > ABS(2)"],
            [],
        ),
        ("SELECT 1 FROM t, u WHERE t.a > now AND t.c < localtimestamp AND u.x > curdate AND t.a > u.x", [], []),
    ],
)
def test_conditions_that_every_row_must_meet_are_found(text: str, of_t: list[str], of_u: list[str]) -> None:
    needs = needs_of(text)
    for name, columns, expected in (("t", T, of_t), ("u", U, of_u)):
        for table in [each for each in needs.tree.find_all(exp.Table) if each.name == name][:1]:
            assert [each.sql("spark") for each in needs.conjuncts(table, columns)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1 FROM (SELECT * FROM t) WHERE a = 1 AND zz = 2", ["`a` = 1"]),
        ("SELECT 1 FROM (SELECT * FROM t WHERE c = 1) q WHERE q.a = 1 OR q.B = 2", ["c = 1", "`a` = 1 OR `b` = 2"]),
        (
            "SELECT 1 FROM (SELECT a AS k, b AS a, c + 1 AS b FROM t) WHERE a = 1 AND b = 2 AND k = 3",
            ["`b` = 1", "`a` = 3"],
        ),
        ("SELECT 1 FROM (SELECT t.*, a + 1 AS z FROM t) q JOIN u ON q.a = u.a AND q.b = 1", ["`b` = 1"]),
        ("SELECT 1 FROM u LEFT JOIN (SELECT * FROM t) q ON q.b = 1 WHERE q.a = 2", ["`b` = 1"]),
        ("WITH q AS (SELECT a AS k FROM t) SELECT 1 FROM q WHERE k = 1", ["`a` = 1"]),
        (
            "WITH q AS (SELECT a AS k FROM t), r AS (SELECT k AS j FROM q) SELECT 1 FROM r AS s WHERE s.j IN (1)",
            ["`a` IN (1)"],
        ),
        # what comes between may make other rows or values of them
        ("SELECT 1 FROM (SELECT *, row_number() OVER (ORDER BY b) n FROM t) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT a, my_udf(b) FROM t) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT a, explode(c) FROM t) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT a, count(*) FROM t GROUP BY a) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT max(a) AS a FROM t) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT * FROM t LIMIT 5) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT DISTINCT a FROM t) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT t.a FROM u LEFT JOIN t) WHERE a IS NULL", []),
        ("SELECT 1 FROM (SELECT a, b AS a FROM t) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT * EXCEPT (a) FROM t) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT s.a FROM t) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT * FROM t) AS q(b, a, c, d) WHERE a = 1", []),
        ("SELECT 1 FROM (SELECT a FROM t UNION ALL SELECT a FROM u) WHERE a = 1", []),
        ("SELECT 1 FROM u RIGHT JOIN (SELECT * FROM t) q ON q.b = 1 FULL JOIN u ON true WHERE q.a = 2", []),
        ("WITH q AS (SELECT a FROM t) SELECT 1 FROM q WHERE a = 1 UNION SELECT 1 FROM q", []),
        ("WITH q(b) AS (SELECT a FROM t) SELECT 1 FROM q WHERE b = 1", []),
        ("WITH q AS (SELECT a FROM t) SELECT 1 FROM (WITH q AS (SELECT 1 AS a) SELECT * FROM q WHERE a = 1), q", []),
        ("WITH RECURSIVE q AS (SELECT a FROM t) SELECT 1 FROM q WHERE a = 1", []),
    ],
)
def test_conditions_on_a_subquery_that_only_renames_columns_are_on_the_table(text: str, expected: list[str]) -> None:
    needs = needs_of(text)
    assert [each.sql("spark") for each in needs.conjuncts(table_of(needs, "t"), T)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM t LIMIT 5", 5),
        ("SELECT a AS k, 1 FROM t WHERE a > 1 LIMIT 5 OFFSET 7", 12),
        ("SELECT a FROM t", None),
        ("SELECT count(*) FROM t LIMIT 5", None),
        ("SELECT explode(a) FROM t LIMIT 5", None),
        ("SELECT DISTINCT a FROM t LIMIT 5", None),
        ("SELECT a FROM t ORDER BY a LIMIT 5", None),
        ("SELECT a FROM t JOIN u LIMIT 5", None),
        ("SELECT a FROM t GROUP BY a LIMIT 5", None),
        ("SELECT a FROM (SELECT a FROM t LIMIT 5)", None),
        ("SELECT a FROM (SELECT a FROM t) LIMIT 5", None),
        ("SELECT a FROM t LIMIT 2 + 3", None),
        ("SELECT a FROM t LIMIT ALL", None),
    ],
)
def test_a_limit_counts_only_where_any_rows_will_do(text: str, expected: int | None) -> None:
    needs = needs_of(text)
    assert needs.limit(table_of(needs, "t")) == expected


@pytest.mark.parametrize(
    ("text", "num_outside"),
    [
        ("WITH t AS (SELECT 1) SELECT * FROM t", 0),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", 1),
        ("WITH q AS (SELECT * FROM t), t AS (SELECT * FROM q) SELECT * FROM t", 1),
        ("WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM t", 0),
        ("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) JOIN t", 1),
        ("WITH t AS (SELECT 1) SELECT * FROM u WHERE a IN (SELECT * FROM t)", 0),
    ],
)
def test_a_name_of_a_common_table_expression_is_no_table(text: str, num_outside: int) -> None:
    tree = needs_of(text).tree
    assert sum(not is_of_cte(each) for each in tree.find_all(exp.Table) if each.name == "t") == num_outside
