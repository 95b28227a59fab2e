"""DuckDB, Polars, DataFusion, pandas and pyarrow read a dataset directly, and request only what they need."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
from datafusion import SessionContext

import lance_ops
from lance_ops.core.errors import UnsupportedFeature
from lance_ops.reading import scan_execution as scan
from lance_ops.reading.scan_plan import ScanPlan, ScanRequest, plan_scan
from lance_ops.snapshot.snapshot import Snapshot

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

NUM_ROWS = 60
PLACE = pa.struct({"x": pa.int32(), "city": pa.string()})
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)


def sparse(values: list[Any], arrow_type: pa.DataType, every: int) -> pa.Array:
    return pa.array([None if i % every == 2 else value for i, value in enumerate(values)], arrow_type)


def rows() -> pa.Table:
    numbers = range(NUM_ROWS)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "small": sparse([i % 9 - 4 for i in numbers], pa.int8(), 5),
            "real": sparse([float("nan") if i % 11 == 0 else i / 4 for i in numbers], pa.float64(), 7),
            "text": sparse([f"name {i % 10}" for i in numbers], pa.string(), 6),
            "seen": sparse([NOON + dt.timedelta(hours=i) for i in numbers], pa.timestamp("us", "UTC"), 8),
            "day": sparse([dt.date(2024, 1, 1 + i % 28) for i in numbers], pa.date32(), 9),
            "price": sparse([Decimal(i) / 4 for i in numbers], pa.decimal128(10, 2), 4),
            "flag": sparse([i % 3 == 0 for i in numbers], pa.bool_(), 10),
            "place": sparse([{"x": i % 4, "city": f"c{i % 3}"} for i in numbers], PLACE, 5),
            "tags": sparse([[str(j) for j in range(i % 3)] for i in numbers], pa.list_(pa.string()), 7),
        }
    )


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("rows") / "t")
    lance.write_dataset(rows(), uri, max_rows_per_file=25)
    lance.dataset(uri).delete("id % 7 = 3")
    lance_ops.dataset(uri).create_scalar_index("id", "BTREE")
    return uri


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str | None]]:
    """The columns and the predicate of every scan, without scans for planning."""
    found: list[tuple[list[str], str | None]] = []
    plan: Callable[[Snapshot, ScanRequest], ScanPlan] = plan_scan

    def watched(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
        found.append((request.schema.names, request.predicate.to_sql() if request.predicate else None))
        return plan(snapshot, request)

    monkeypatch.setattr(scan, "plan_scan", watched)
    return found


def sorted_rows(rows: list[Any]) -> list[str]:
    return sorted(map(str, rows))  # NaN is not equal to itself


DUCKDB_QUERIES = [
    ("SELECT id FROM t", ["id"], None),
    ("SELECT id FROM t WHERE id > 40", ["id"], "id > 40"),
    ("SELECT text FROM t WHERE id = 41", ["text"], "id = 41"),
    ("SELECT id FROM t WHERE small < 0 AND small != -2", ["id"], "small != -2 AND small < 0"),
    ("SELECT id FROM t WHERE small IS NULL", ["id"], "small IS NULL"),
    ("SELECT id FROM t WHERE small IS NOT NULL AND id < 9", ["id"], "small IS NOT NULL AND id < 9"),
    ("SELECT id FROM t WHERE text = 'name 4'", ["id"], "text = 'name 4'"),
    ("SELECT id FROM t WHERE text = 'name 4' OR text IS NULL", ["id"], "text = 'name 4' OR text IS NULL"),
    ("SELECT id FROM t WHERE text IN ('name 1', 'name 9')", ["id"], "text IN ('name 1', 'name 9')"),
    ("SELECT id FROM t WHERE text NOT IN ('name 1', 'name 9')", None, None),
    ("SELECT id FROM t WHERE text LIKE 'name%'", None, None),
    (
        "SELECT id FROM t WHERE seen >= '2024-01-02T00:00:00Z'",
        ["id"],
        "seen >= '2024-01-02 00:00:00+00:00'",
    ),
    ("SELECT id FROM t WHERE day BETWEEN '2024-01-05' AND '2024-01-09'", ["id"], None),
    ("SELECT id FROM t WHERE price > 3.5", ["id"], "price > DECIMAL(10, 2) '3.50'"),
    ("SELECT id FROM t WHERE price IN (3.5, 4)", None, None),
    ("SELECT id FROM t WHERE real > 5", None, None),
    ("SELECT id FROM t WHERE real = 'nan'::DOUBLE", None, None),
    ("SELECT id FROM t WHERE flag", None, None),
    ("SELECT id FROM t WHERE place.x = 1", ["id"], "place.x = 1"),
    ("SELECT place.city FROM t WHERE place.city > 'c1'", ["place"], "place.city > 'c1'"),
    ("SELECT id FROM t WHERE tags = ['0', '1']", None, None),
    ("SELECT count(*) FROM t", None, None),
    ("SELECT text, sum(price) FROM t WHERE id % 2 = 0 GROUP BY text", ["id", "text", "price"], None),
    ("SELECT a.id FROM t a JOIN t b ON a.id = b.small WHERE b.id > 10", None, None),
    ("SELECT * FROM t ORDER BY real DESC, id LIMIT 5", None, None),
]


@pytest.mark.parametrize(("query", "columns", "predicate"), DUCKDB_QUERIES, ids=[query for query, *_ in DUCKDB_QUERIES])
def test_duckdb_pushes_down_columns_and_filters_and_returns_the_reference_s_rows(
    uri: str, asked: list[Any], query: str, columns: list[str] | None, predicate: str | None
) -> None:
    with duckdb.connect() as connection:
        t: Any = lance.dataset(uri).to_table()
        expected = connection.sql(query).fetchall()
        t = lance_ops.dataset(uri)
        assert sorted_rows(connection.sql(query).fetchall()) == sorted_rows(expected)
        assert t.count_rows() == 51
    if columns is not None:
        assert {tuple(names) for names, _ in asked} == {tuple(columns)}
    if predicate is not None:
        assert {condition for _, condition in asked} == {predicate}


def test_duckdb_returns_the_same_rows_from_the_reference_s_dataset_and_ours(uri: str) -> None:
    query = "SELECT id, text, price FROM t WHERE id > 20 AND text IN ('name 1', 'name 5') AND seen IS NOT NULL"
    answers = []
    with duckdb.connect() as connection:
        for t in (lance.dataset(uri), lance_ops.dataset(uri)):
            assert isinstance(t, pads.Dataset)
            answers.append(sorted_rows(connection.sql(query).fetchall()))
    assert answers[0] == answers[1]
    assert len(answers[0]) == 6


def test_duckdb_filters_use_an_index(uri: str) -> None:
    t = lance_ops.dataset(uri)
    plans: list[str] = []
    scanner = lance_ops.LanceDataset.scanner

    class Watched(lance_ops.LanceDataset):
        def scanner(self, *args: Any, **kwargs: Any) -> Any:
            made = scanner(self, *args, **kwargs)
            plans.append(made.explain_plan())
            return made

    t = Watched.of(t.snapshot)
    with duckdb.connect() as connection:
        assert connection.sql("SELECT text FROM t WHERE id = 41").fetchall() == [("name 1",)]
    assert "ScalarIndexQuery: query=[id = 41]@id_idx(BTREE)" in plans[0]


POLARS_QUERIES = [
    (pl.col("id") > 40, ["id", "text"], "id > 40"),
    (pl.col("small").is_null(), ["id", "text", "small"], "small IS NULL"),
    ((pl.col("small") < 0) & (pl.col("text") == "name 4"), ["id", "text", "small"], "small < 0 AND text = 'name 4'"),
    (pl.col("text").is_in(["name 1", "name 9"]), ["id", "text"], None),
    (~pl.col("text").is_in(["name 1", "name 9"]), None, None),
    (pl.col("seen") >= NOON + dt.timedelta(hours=9), None, None),
    (pl.col("day").is_between(dt.date(2024, 1, 5), dt.date(2024, 1, 9)), None, None),
    (pl.col("price") > Decimal("3.5"), None, None),
    (pl.col("real") > 5, None, None),
    (pl.col("real").is_nan(), None, None),
    (pl.col("flag"), None, None),
    (~pl.col("flag") | pl.col("id").is_in([1, 2]), None, None),
    (pl.col("place").struct.field("x") == 1, None, None),
    (pl.col("text").str.ends_with("3"), None, None),
    (pl.col("tags").list.len() == 2, None, None),
]


@pytest.mark.parametrize(("condition", "columns", "predicate"), POLARS_QUERIES, ids=str)
def test_polars_pushes_down_columns_and_filters_and_returns_the_reference_s_rows(
    uri: str, asked: list[Any], condition: pl.Expr, columns: list[str] | None, predicate: str | None
) -> None:
    expected = pl.DataFrame(lance.dataset(uri).to_table()).filter(condition).select("id", "text")
    lazy = pl.scan_pyarrow_dataset(lance_ops.dataset(uri)).filter(condition).select("id", "text")
    found = lazy.collect()
    assert found.equals(expected)
    assert 0 < len(found) < 51
    if columns is not None:
        assert [set(names) for names, _ in asked] == [set(columns)]
        assert all(condition is not None for _, condition in asked)
    if predicate is not None:
        assert [condition for _, condition in asked] == [predicate]


def test_polars_reads_a_dataset_and_a_scan_whole(uri: str) -> None:
    expected = pl.DataFrame(lance.dataset(uri).to_table())
    ours = lance_ops.dataset(uri)
    assert pl.DataFrame(ours).equals(expected)
    assert pl.scan_pyarrow_dataset(ours).head(7).collect().equals(expected.head(7))
    assert pl.DataFrame(ours.scanner(["id"], "id < 9")).equals(expected.filter(pl.col("id") < 9).select("id"))


DATAFUSION_QUERIES = [
    ("SELECT id FROM t WHERE id > 40", ["id"], "id > 40"),
    ("SELECT text FROM t WHERE small IS NULL AND id < 30", None, None),
    ("SELECT id FROM t WHERE text IN ('name 1', 'name 9') OR flag", None, None),
    ("SELECT id FROM t WHERE price > 3.5", None, None),
    ("SELECT id FROM t WHERE seen >= '2024-01-02T00:00:00Z'", None, None),
    ("SELECT id FROM t WHERE day BETWEEN '2024-01-05' AND '2024-01-09'", None, None),
    ("SELECT id FROM t WHERE text LIKE '%3'", None, None),
    ("SELECT id FROM t WHERE place['x'] = 1", None, None),
    ("SELECT text, sum(price) FROM t WHERE id % 2 = 0 GROUP BY text", None, None),
    ("SELECT count(*) FROM t", None, None),
    ("SELECT * FROM t ORDER BY id DESC LIMIT 3", None, None),
]


@pytest.mark.parametrize(
    ("query", "columns", "predicate"), DATAFUSION_QUERIES, ids=[query for query, *_ in DATAFUSION_QUERIES]
)
def test_datafusion_pushes_down_columns_and_filters_and_returns_the_reference_s_rows(
    uri: str, asked: list[Any], query: str, columns: list[str] | None, predicate: str | None
) -> None:
    answers = []
    for source in (pads.dataset(lance.dataset(uri).to_table()), lance_ops.dataset(uri)):
        context = SessionContext()
        context.register_dataset("t", source)
        answers.append(sorted_rows(context.sql(query).to_arrow_table().to_pylist()))
    assert answers[0] == answers[1]
    if columns is not None:
        assert {tuple(names) for names, _ in asked} == {tuple(columns)}
        assert len(asked) == 3  # one for each fragment, side by side
    if predicate is not None:
        assert {condition for _, condition in asked} == {predicate}


def test_datafusion_reads_a_scan_whole(uri: str) -> None:
    frame = SessionContext().from_arrow(lance_ops.dataset(uri).scanner(["id"], "id < 9"))
    assert [row["id"] for row in frame.to_arrow_table().to_pylist()] == [0, 1, 2, 4, 5, 6, 7, 8]


def test_pandas_reads_a_dataset_and_a_scan(uri: str) -> None:
    expected = lance.dataset(uri).to_table().to_pandas()
    ours = lance_ops.dataset(uri)
    pd.testing.assert_frame_equal(ours.to_pandas(), expected)
    frame: Any = pd.DataFrame  # whose stubs are older than it
    pd.testing.assert_frame_equal(frame.from_arrow(ours.scanner(["id", "text"])), expected[["id", "text"]])
    few = ours.to_pandas(["id"], filter=pc.field("id") > 55)
    assert few["id"].tolist() == [56, 57, 58]


def test_pyarrow_writes_a_dataset_s_stream_to_another_format(uri: str, tmp_path: Path) -> None:
    ours, expected = lance_ops.dataset(uri), lance.dataset(uri).to_table()
    assert pa.RecordBatchReader.from_stream(ours).read_all().to_pylist().__repr__() == repr(expected.to_pylist())
    for place, source in {"dataset": ours, "scan": ours.scanner(["id"])}.items():
        pads.write_dataset(source, tmp_path / place, format="parquet")
        copied = pads.dataset(tmp_path / place).to_table(["id"]).sort_by("id")  # its threads keep no order
        assert copied == expected.select(["id"])


def test_pyarrow_calls_that_bypass_dataset_methods_raise_instead_of_crashing(uri: str) -> None:
    ours = lance_ops.dataset(uri)
    with pytest.raises(pa.ArrowInvalid, match="Not an Arrow file"):
        pads.Scanner.from_dataset(ours).to_table()
    with pytest.raises(pa.ArrowInvalid, match="Not an Arrow file"):
        pads.Scanner.from_dataset(ours).count_rows()
    with pytest.raises(pa.ArrowTypeError, match="child Dataset had schema"):
        pads.UnionDataset(ours.schema, [ours])
    attempts: tuple[Callable[[], Any], ...] = (
        lambda: ours.partition_expression,
        lambda: ours.children,
        lambda: ours.filter(pc.field("id") > 1),
        lambda: ours.sort_by("id"),
        lambda: ours.join(ours, "id"),
        lambda: ours.join_asof(ours, "id", [], 1),
        lambda: pads.dataset([ours, ours]),
    )
    for attempt in attempts:
        with pytest.raises(UnsupportedFeature):
            attempt()
    inherited = {name for name in dir(pads.UnionDataset) if not name.startswith("_")}
    assert [
        name for name in inherited if getattr(lance_ops.LanceDataset, name) is getattr(pads.UnionDataset, name)
    ] == []
