"""What Spark shows its user of an error of this library."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.util import handle_worker_exception

from lance_ops.api import write_dataset
from lance_ops.core.errors import InvalidInput
from lance_ops.spark import register_functions
from lance_ops.spark.data_source import without_frames

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIMPLIFIES, HIDES = "SPARK_SIMPLIFIED_TRACEBACK", "SPARK_HIDE_TRACEBACK"


def written_by_a_worker(error: InvalidInput | KeyError) -> str:
    """Return what Spark's worker writes when this error leaves code that Spark calls."""

    @without_frames()
    def fail() -> None:
        raise error

    written = io.BytesIO()
    try:
        fail()
    except (InvalidInput, KeyError) as raised:
        handle_worker_exception(raised, written)
    return written.getvalue()[8:].decode()  # behind two lengths


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return a function that makes this process look like a worker of a session that simplifies tracebacks, or not."""

    def become(simplifies: bool) -> None:
        for name, value in ((SIMPLIFIES, simplifies), (HIDES, False)):
            monkeypatch.setenv(name, "1")
            if not value:
                monkeypatch.delenv(name)

    return become


def test_an_error_of_this_library_has_no_frames_in_a_worker(worker: Callable[[bool], None]) -> None:
    worker(True)
    assert written_by_a_worker(InvalidInput("no such option")) == "lance_ops.core.errors.InvalidInput: no such option\n"


def test_another_error_keeps_its_frames(worker: Callable[[bool], None]) -> None:
    worker(True)
    assert "in fail\n" in written_by_a_worker(KeyError("x"))


def test_a_session_that_does_not_simplify_tracebacks_has_all_frames(worker: Callable[[bool], None]) -> None:
    worker(False)
    assert "in fail\n" in written_by_a_worker(InvalidInput("no such option"))


@pytest.mark.spark
def test_spark_shows_what_is_wrong_and_no_frames(spark: SparkSession, tmp_path: Path) -> None:
    uri = write_dataset(pa.table({"id": [1]}), str(tmp_path / "t.lance")).uri
    register_functions(spark)
    with pytest.raises(AnalysisException, match="no option 'verison': did you mean 'version'") as misspelled:
        spark.read.format("lance").option("verison", 3).load(uri)
    with pytest.raises(AnalysisException, match="no column 'nope'") as unknown:
        spark.sql(f"SELECT * FROM lance_scan('{uri}', filter => 'nope = 1')")
    with pytest.raises(AnalysisException, match="takes versions as whole numbers, not 'b'") as no_version:
        spark.sql(f"SELECT * FROM lance_changes('{uri}', 1, 'b')")
    with pytest.raises(PythonException, match="path or URI in quotes, not 3, as in lance_versions") as no_text:
        spark.sql("SELECT * FROM lance_indices(3)").collect()
    for error in (misspelled, unknown, no_version, no_text):
        assert "Traceback" not in str(error.value)


@pytest.mark.spark
def test_a_stream_that_is_refused_shows_no_error_of_sparks_worker(spark: SparkSession, tmp_path: Path) -> None:
    uri = write_dataset(pa.table({"id": [1]}), str(tmp_path / "t.lance")).uri
    stream = spark.readStream.format("lance").option("version", 1).load(uri)
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(StreamingQueryException, match="'version' is not for streams") as refused:
        query.awaitTermination()
    assert "UnboundLocalError" not in str(refused.value)
    assert "Traceback" not in str(refused.value)
