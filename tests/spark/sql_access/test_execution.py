"""`sql`: whose error a statement raises that this library does not execute."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

from lance_ops.api import write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.spark import sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A folder with one table, whose name is `tides`."""
    write_dataset(pa.table({"x": [1]}), tmp_path / "tides.lance")
    return tmp_path


@pytest.mark.parametrize("text", ["OPTIMIZE of_delta ZORDER BY (x)", "VACUUM of_delta", "DESC HISTORY of_delta"])
def test_the_error_of_another_library_that_has_the_statement_is_raised(
    spark: SparkSession, lake: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def refuse(query: str) -> DataFrame:
        raise AnalysisException(f"[DELTA_REFUSES] {query}")

    monkeypatch.setattr(spark, "sql", refuse)
    with pytest.raises(AnalysisException, match="DELTA_REFUSES"):
        sql(spark, text, namespace=lake)


def test_an_ambiguous_namespace_does_not_hide_an_error_of_spark(spark: SparkSession, lake: Path) -> None:
    write_dataset(pa.table({"x": [1]}), lake / "other" / "tides.lance")
    pattern = str(lake / "**" / "*.lance")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        sql(spark, "SHOW TABLES IN nope", namespace=pattern)
    with pytest.raises(InvalidInput, match="are both named 'tides'"):
        sql(spark, "REPAIR TABLE tides", namespace=pattern)


def test_a_table_of_another_database_is_not_that_of_the_namespace(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(UnsupportedFeature, match="REPAIR of a Lance table"):
        sql(spark, "REPAIR TABLE tides", namespace=lake)
    for name in ("default.tides", "other_db.tides", "spark_catalog.default.tides"):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            sql(spark, f"REPAIR TABLE {name}", namespace=lake)
