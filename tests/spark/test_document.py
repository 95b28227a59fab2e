"""What docs/spark.md shows is run as it stands, but for the place and the number of rows."""

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
    return ast.parse(found[1])


def run(code: ast.Module, names: dict[str, Any]) -> Any:
    """Run the code and return the value of its last line."""
    last = code.body.pop()
    assert isinstance(last, ast.Expr)
    exec(compile(code, DOCUMENT.name, "exec"), names)
    return eval(compile(ast.Expression(last.value), DOCUMENT.name, "eval"), names)


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


class Elsewhere(ast.NodeTransformer):
    """Puts the folder of tables elsewhere, where they need no storage options."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        value = node.value.replace("/data", str(self.folder)) if isinstance(node.value, str) else node.value
        return ast.copy_location(ast.Constant(value), node)

    def visit_Dict(self, node: ast.Dict) -> ast.Dict:
        return ast.copy_location(ast.Dict([], []), node)


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
