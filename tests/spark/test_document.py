"""What docs/spark.md and README.md show is run as it stands, but for the place and the number of rows."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_ops
from lance_ops.api import LanceDataset
from lance_ops.spark import map_fragments, use_namespace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT = Path(__file__).parents[2] / "docs" / "spark.md"
ROWS = 1000


def shown(section: str) -> ast.Module:
    """Return the first Python block of a section."""
    text = DOCUMENT.read_text().split(f"\n## {section}\n")[1]
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return ast.parse(found[1].replace("{…}", "{}"))  # a reader's own options


def run(code: ast.Module, names: dict[str, Any]) -> Any:
    """Run the code and return the value of its last line."""
    return values(code, names)[-1]


def values(code: ast.Module, names: dict[str, Any]) -> list[Any]:
    """Run the code and return the values of its lines that have one."""
    found = []
    for line in code.body:
        if isinstance(line, ast.Expr):
            found.append(eval(compile(ast.Expression(line.value), DOCUMENT.name, "eval"), names))
        else:
            exec(compile(ast.Module([line], []), DOCUMENT.name, "exec"), names)
    return found


class Smaller(ast.NodeTransformer):
    """Puts the table elsewhere, with fewer rows."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        new: Any = {"/tmp/flights.lance": self.uri, 1_000_000: ROWS}.get(node.value, node.value)
        return ast.copy_location(ast.Constant(new), node)


@pytest.mark.spark
def test_five_minutes_from_nothing_work_of_ones_own_and_a_merge(
    spark: SparkSession, dataset_uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {}
    capsys.readouterr()
    assert run(Smaller(dataset_uri).visit(shown("Five minutes from nothing")), names) == ROWS
    assert "77" in capsys.readouterr().out
    dataset = names["dataset"]
    assert isinstance(dataset, LanceDataset)
    delays = [i % 90 for i in range(ROWS) if i % 90 <= 80]
    assert dataset.count_rows() == len(delays)
    given = {"__name__": "__main__", "dataset": dataset, "map_fragments": map_fragments, "pa": pa, "pc": pc}
    assert run(shown("Your own work in tasks"), given) == sum(delays)
    deleted = run(shown("Merging and deleting by keys"), {"dataset": dataset, "spark": spark})
    assert deleted == {"num_deleted_rows": sum(i % 90 <= 80 for i in range(100))}
    assert dataset.count_rows("delay = 0 AND id >= 950") == 100
    replaced = run(shown("Values by row"), {"dataset": dataset, "spark": spark})
    assert replaced["num_rows_updated"] == dataset.count_rows("delay = 1 AND log_delay = 0") >= 100


@pytest.mark.spark
def test_the_readme_s_programs_run_one_after_the_other(spark: SparkSession, dataset_uri: str) -> None:
    text = (DOCUMENT.parents[1] / "README.md").read_text()
    names: dict[str, Any] = {}
    found = [
        run(Smaller(dataset_uri).visit(ast.parse(block)), names)
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ]
    num_before_erasure, read = found
    assert num_before_erasure == 3
    assert sorted(row.id for row in read.collect()) == [3, 4, 5]


class Elsewhere(ast.NodeTransformer):
    """Puts the folder of tables elsewhere, where they need no storage options."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        value = node.value
        if isinstance(value, str):
            value = value.replace("/data", str(self.folder)).replace("s3://lake", str(self.folder / "lake"))
        return ast.copy_location(ast.Constant(value), node)

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        value = ast.Dict([], []) if node.arg == "storage_options" else self.visit(node.value)
        return ast.copy_location(ast.keyword(node.arg, ast.copy_location(value, node.value)), node)


@pytest.mark.spark
def test_sql_that_is_shown_is_run(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flights = lance_ops.write_dataset(pa.table({"id": range(8), "delay": range(58, 66)}), tmp_path / "flights.lance")
    for row in (0, 1, 7):  # version 3 still has the last one
        flights.delete(f"id = {row}")
    try:
        run(Elsewhere(tmp_path).visit(shown("SQL")), {"spark": spark})
    finally:
        use_namespace(spark, None)
    out = capsys.readouterr().out
    assert re.findall(r"\| +(\d+)\|", out) == ["3", "4", "5", "6", "7", "5"], out


@pytest.mark.spark
def test_blobs_that_are_shown_are_written_and_read(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use_namespace(spark, tmp_path)
    try:
        run(shown("Blobs"), {"spark": spark})
    finally:
        use_namespace(spark, None)
    assert re.findall(r"\| +(\d+)\|", capsys.readouterr().out) == ["3", "3"]
    for name in ("docs", "copy"):
        (blob,) = lance_ops.dataset(tmp_path / f"{name}.lance").take_blobs("content", indices=[0])
        assert blob is not None and blob.readall() == b"ABC"


@pytest.mark.spark
def test_writes_reads_and_a_stream_that_are_shown_are_run(spark: SparkSession, tmp_path: Path) -> None:
    flights, elsewhere = tmp_path / "flights.lance", Elsewhere(tmp_path)
    days = spark.range(62).selectExpr("id", "id AS delay", "date_add(DATE '2026-01-01', int(id % 31)) AS day")
    last_days = days.where("day = '2026-01-31'")
    values(elsewhere.visit(shown("Writing")), {"spark": spark, "df": last_days})
    assert (lance_ops.dataset(flights).version, lance_ops.dataset(flights).count_rows()) == (3, 2)
    assert lance_ops.dataset(tmp_path / "lake" / "flights.lance").count_rows() == 2
    rows = days.toArrow()
    for num_rows in (62, 1, 1, 5):
        lance_ops.write_dataset(rows.slice(0, num_rows), flights, mode="append")
    newest, third = values(elsewhere.visit(shown("Reading")), {"spark": spark})
    assert (newest.count(), third.count()) == (71, 2)
    run(elsewhere.visit(shown("Streams")), {"spark": spark}).awaitTermination()
    assert lance_ops.dataset(tmp_path / "copy.lance").count_rows() == 5  # those of version 7
