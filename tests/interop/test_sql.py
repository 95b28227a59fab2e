"""`LanceDataset.sql` gives the reference's answers, and its filters and columns reach the scan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import CorruptFile, InvalidInput
from lance_ops.reading import scan_execution as scan
from lance_ops.reading.scan_plan import ScanPlan, ScanRequest, plan_scan
from lance_ops.snapshot import Snapshot
from tests.fragments_read import note_fragments_read

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytest.importorskip("datafusion", reason="datafusion, which executes the queries, is not installed")
pytestmark = pytest.mark.interop

QUERIES = [
    "SELECT id, s FROM dataset WHERE id > 95",
    "SELECT * FROM dataset WHERE s = 'n3' AND f < 10",
    "SELECT count(*) FROM dataset",
    "SELECT s, sum(f) AS total, count(*) FROM dataset GROUP BY s ORDER BY s",
    "SELECT id FROM dataset ORDER BY f DESC LIMIT 3 OFFSET 2",
    "SELECT avg(f), min(s), max(id) FROM dataset WHERE id % 2 = 0",
    'SELECT "Cap" FROM dataset WHERE "Cap" BETWEEN 3 AND 5',
    "SELECT ID FROM DATASET WHERE s IS NULL",
    "SELECT st.x + 1 AS y, st['x'] FROM dataset WHERE st.x IN (1, 50)",
    "SELECT a.id FROM dataset a JOIN dataset b ON a.id = b.id + 97 ORDER BY 1",
    "WITH few AS (SELECT id FROM dataset WHERE id < 3) SELECT sum(id) FROM few",
    "SELECT DISTINCT s FROM dataset WHERE s LIKE 'n%' ORDER BY s",
    "SELECT regexp_like(s, 'n1') AS r, upper(s), CASE WHEN id > 1 THEN 'a' ELSE 'b' END AS c FROM dataset LIMIT 4",
    "SELECT id, row_number() OVER (PARTITION BY s ORDER BY id) AS n FROM dataset ORDER BY id LIMIT 9",
    "SELECT id FROM dataset WHERE id > 1000",
    "SELECT 1",
]

REFUSED = [
    "SELEC id FROM dataset",
    "SELECT nope FROM dataset",
    "SELECT id FROM other",
    "SELECT _rowid FROM dataset",
    "SELECT Cap FROM dataset",
    "SELECT id FROM dataset; SELECT 1",
    "SELECT id / 0 FROM dataset",
    "SELECT * FROM '/etc/passwd'",
    "",
]

CHANGES = [
    "DROP TABLE dataset",
    "CREATE TABLE copied AS SELECT * FROM dataset",
    "CREATE EXTERNAL TABLE passwords STORED AS CSV LOCATION '/etc/passwd'",
    "INSERT INTO dataset SELECT * FROM dataset",
    "SET datafusion.execution.batch_size = 1",
]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("sql") / "t")
    numbers = range(100)
    table = pa.table(
        {
            "id": numbers,
            "s": [None if i % 11 == 0 else f"n{i % 5}" for i in numbers],
            "f": [i / 2 for i in numbers],
            "Cap": numbers,
            "st": [{"x": i} for i in numbers],
        }
    )
    lance.write_dataset(table, uri, max_rows_per_file=40).delete("id = 2")
    lance_ops.dataset(uri).create_scalar_index("id", "BTREE")
    return uri


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[ScanPlan]:
    """Collect the plan of each scan that reads rows."""
    found: list[ScanPlan] = []
    plan: Callable[[Snapshot, ScanRequest], ScanPlan] = plan_scan

    def watched(snapshot: Snapshot, request: ScanRequest) -> ScanPlan:
        found.append(plan(snapshot, request))
        return found[-1]

    monkeypatch.setattr(scan, "plan_scan", watched)
    return found


def result(builder: Any) -> tuple[list[tuple[str, pa.DataType]], list[dict[str, Any]]]:
    read = builder.build().to_stream_reader().read_all()
    return [(field.name, field.type) for field in read.schema], read.to_pylist()


@pytest.mark.parametrize("query", QUERIES)
def test_queries_give_the_reference_s_answers(uri: str, query: str) -> None:
    mine, other = (result(library.dataset(uri).sql(query)) for library in (lance_ops, lance))
    assert mine[0] == other[0]
    assert mine[1] == other[1] or sorted(map(str, mine[1])) == sorted(map(str, other[1]))


def test_plain_queries_keep_the_order_of_the_rows(uri: str) -> None:
    for library in (lance_ops, lance):
        assert result(library.dataset(uri).sql("SELECT id FROM dataset"))[1] == [
            {"id": i} for i in range(100) if i != 2
        ]


@pytest.mark.parametrize(
    "options",
    [
        {"with_row_id": True},
        {"with_row_addr": True},
        {"with_row_id": True, "with_row_addr": True},
        {"with_row_id": False},
        {"batch_size": 7},
        {"batch_size": 7, "batch_size_bytes": 1 << 20},
        {"blob_handling": "all_binary"},
    ],
    ids=str,
)
def test_options_of_the_builder_act_as_in_the_reference(uri: str, options: dict[str, Any]) -> None:
    answers = []
    for library in (lance_ops, lance):
        builder = library.dataset(uri).sql("SELECT * FROM dataset")
        for name, value in options.items():
            builder = getattr(builder, name)(value)
        batches = builder.build().to_batch_records()
        answers.append(([batch.num_rows for batch in batches], pa.Table.from_batches(batches).to_pylist()))
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("name", "spelled"), [("foo", "foo"), ("Foo", "FOO"), ("my table", '"my table"'), ("a.b", '"a.b"')]
)
def test_the_table_is_known_by_the_name_that_the_caller_gives(uri: str, name: str, spelled: str) -> None:
    query = lance_ops.dataset(uri).sql(f"SELECT max(id) AS m FROM {spelled}").table_name(name)
    assert result(query)[1] == [{"m": 99}]


def test_columns_and_filters_reach_the_scan_which_searches_an_index(uri: str, plans: list[ScanPlan]) -> None:
    query = "SELECT upper(s) AS u FROM dataset WHERE id = 41 AND s IS NOT NULL"
    assert result(lance_ops.dataset(uri).sql(query))[1] == [{"u": "N1"}]
    (plan,) = plans
    assert plan.request.schema.names == ["s"]
    assert plan.request.predicate is not None
    assert plan.request.predicate.to_sql() == "id = 41 AND s IS NOT NULL"
    assert "ScalarIndexQuery: query=[id = 41]@id_idx(BTREE)" in plan.explain()


def test_a_limit_ends_the_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(10_000)}), tmp_path / "t", max_rows_per_file=10)
    monkeypatch.setattr(scan, "available_cores", lambda: 2)  # more cores read further ahead
    read = note_fragments_read(monkeypatch)
    assert len(result(dataset.sql("SELECT id FROM dataset LIMIT 5").batch_size(5))[1]) == 5
    assert 0 < len(read) < 500  # of 1,000: the first ones, and what threads read ahead until the end


def test_a_plan_names_the_filter_that_the_scan_gets(uri: str) -> None:
    plan = lance_ops.dataset(uri).sql("SELECT id FROM dataset WHERE id > 5").build().explain_plan()
    assert "logical_plan" in plan
    assert "filter_expr=(id > 5), projection=[id]" in plan


@pytest.mark.parametrize("query", REFUSED)
def test_queries_that_the_reference_refuses_are_refused(uri: str, query: str) -> None:
    for library, error in ((lance_ops, InvalidInput), (lance, ValueError)):
        built = library.dataset(uri).sql(query).build()
        with pytest.raises(error):
            built.to_batch_records()


@pytest.mark.parametrize("query", CHANGES)
def test_statements_that_change_something_are_refused(uri: str, query: str) -> None:
    with pytest.raises(InvalidInput, match="not supported"):
        lance_ops.dataset(uri).sql(query).build().to_stream_reader()
    assert lance_ops.dataset(uri).count_rows() == 99


def test_invalid_options_are_refused_by_name(uri: str) -> None:
    dataset = lance_ops.dataset(uri)
    for name, value in {"batch_size": 0, "blob_handling": "nope", "table_name": ""}.items():
        with pytest.raises(InvalidInput, match=name.replace("table_name", "name of a queried table")):
            getattr(dataset.sql("SELECT id FROM dataset"), name)(value).build().to_batch_records()


def test_damage_is_reported_as_by_a_scan(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(40)}), tmp_path / "t", max_rows_per_file=10)
    damaged = dataset.snapshot.fragments[2].files[0].path
    (tmp_path / "t" / "data" / damaged).write_bytes(b"damaged")
    with pytest.raises(CorruptFile, match=damaged):
        dataset.sql("SELECT sum(id) FROM dataset").build().to_batch_records()


def test_a_query_reads_the_version_of_its_handle(tmp_path: Path) -> None:
    first = lance_ops.write_dataset(pa.table({"id": range(3)}), tmp_path / "t")
    query = first.sql("SELECT count(*) AS n FROM dataset").build()
    lance_ops.write_dataset(pa.table({"id": range(5)}), tmp_path / "t", mode="append")
    for _ in range(2):
        assert query.to_batch_records()[0].to_pylist() == [{"n": 3}]
