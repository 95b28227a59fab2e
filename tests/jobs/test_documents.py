from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
import pytest

from assets.documents.definitions import REQUESTS, definitions_of, erasure_requests
from assets.documents.embedding import embed
from assets.documents.generated import NEW_EACH_DAY, land_day
from jobs.documents import definitions
from lance_ops.api import LanceDataset, dataset
from lance_ops.dagster import CodeLocation
from lance_ops.dagster.runners import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.dagster

_ERASED = "author-3"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """Set the variables of the example, and make an instance."""
    monkeypatch.setenv("LANCE_OPS_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("LANCE_OPS_LANDING", str(tmp_path / "landing"))
    monkeypatch.delenv("SPARK_MASTER", raising=False)
    (tmp_path / "home").mkdir()
    overrides = {"telemetry": {"enabled": False}}
    with dg.DagsterInstance.local_temp(str(tmp_path / "home"), overrides=overrides) as instance:
        yield instance


@pytest.fixture
def location(environment: dg.DagsterInstance) -> CodeLocation:
    return CodeLocation(definitions(), environment)


def embedded_rows(location: CodeLocation) -> object:
    """Materialize the embeddings; return how many rows it embedded."""
    job = location.definitions.resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(instance=location.instance, asset_selection=[dg.AssetKey("document_embeddings")])
    (event,) = done.asset_materializations_for_node("document_embeddings")
    return event.metadata["embedded_rows"].value


def check_embeddings(data: LanceDataset) -> None:
    """Assert that each row has the embedding of its present text."""
    rows = data.to_table(["text", "embedding"]).combine_chunks()
    assert rows["embedding"].combine_chunks().equals(embed(rows.to_batches()[0]).column("embedding"))


def test_documents_are_merged_gain_a_column_are_embedded_and_erased(location: CodeLocation, tmp_path: Path) -> None:
    landing, uri = tmp_path / "landing", tmp_path / "lake" / "documents.lance"
    for day in range(2):
        land_day(landing / "documents", day)
    assert len(location.tick("documents_raw_files").runs) == 1
    assert embedded_rows(location) == 2 * NEW_EACH_DAY
    before = dataset(uri)
    check_embeddings(before)
    assert "language" not in before.schema.names

    land_day(landing / "documents", 2)
    assert len(location.tick("documents_raw_files").runs) == 1
    after = dataset(uri)
    assert after.count_rows() == 3 * NEW_EACH_DAY
    assert after.schema.field("language").type == pa.string()
    changed = after.count_rows("embedding IS NULL")
    assert changed > NEW_EACH_DAY  # new documents, and those that got a new text
    assert embedded_rows(location) == changed
    assert embedded_rows(location) == 0
    check_embeddings(dataset(uri))
    (page,) = dataset(uri).take_blobs("page", indices=[0])
    assert page is not None
    assert len(page.read()) == 4096

    held = dataset(uri).count_rows(f"author = '{_ERASED}'")
    (landing / REQUESTS).mkdir()
    (landing / REQUESTS / "0001.csv").write_text(f"author\n{_ERASED}\n")
    ticked = location.tick("erasure_requests")
    assert _ERASED not in str(ticked.run_requests)
    again = location.tick("erasure_requests")
    assert again.runs == () and str(again.skip_message).endswith("have its authors erased again: 0001.csv")
    (landing / REQUESTS / "0002.csv").write_text("author\nnobody\n")
    assert len(location.tick("erasure_requests").runs) == 1
    left = dataset(uri)
    assert (held > 0, left.count_rows()) == (True, 3 * NEW_EACH_DAY - held)
    for version in left.versions():
        assert dataset(uri, version["version"]).count_rows(f"author = '{_ERASED}'") == 0
    report = min((uri / "_lance_ops" / "erasures").glob("*.json"), key=lambda path: path.stat().st_mtime)
    assert _ERASED not in report.read_text()
    assert json.loads(report.read_text())


def test_a_request_is_asked_for_once_by_its_name_and_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_OPS_LANDING", str(tmp_path))
    (tmp_path / REQUESTS).mkdir()
    request = tmp_path / REQUESTS / "0001.csv"

    def run_key() -> str | None:
        with dg.DagsterInstance.ephemeral() as instance:
            context = dg.build_sensor_context(instance, sensor_name="erasure_requests")
            (asked,) = erasure_requests.evaluate_tick(context).run_requests or ()
        return asked.run_key

    request.write_text("author\na\n")
    first = run_key()
    assert run_key() == first
    request.write_text("author\nsomebody else\n")
    second = run_key()
    assert second != first
    os.utime(request, (0, 0))
    assert run_key() == second, "a copy of the folder has other times"
    request.rename(tmp_path / REQUESTS / "0002.csv")
    assert run_key() not in {first, second}


@pytest.fixture
def spark_jobs(spark: SparkSession) -> Iterator[Callable[[], int]]:
    """Return how many jobs of Spark this test has run."""
    spark.sparkContext.setJobGroup("documents", "the example with documents")
    yield lambda: len(spark.sparkContext.statusTracker().getJobIdsForGroup("documents"))
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # which unsets it


@pytest.mark.spark
def test_spark_runs_the_tasks_of_the_example(
    environment: dg.DagsterInstance, tmp_path: Path, spark_jobs: Callable[[], int]
) -> None:
    location = CodeLocation(definitions_of(SparkRunner()), environment)
    landing, uri = tmp_path / "landing", tmp_path / "lake" / "documents.lance"
    for day in range(2):
        land_day(landing / "documents", day)
        assert len(location.tick("documents_raw_files").runs) == 1
    ingested = spark_jobs()
    assert embedded_rows(location) == 2 * NEW_EACH_DAY
    assert spark_jobs() > ingested > 0
    check_embeddings(dataset(str(uri)))
    held = dataset(str(uri)).count_rows(f"author = '{_ERASED}'")
    (landing / REQUESTS).mkdir()
    (landing / REQUESTS / "0001.csv").write_text(f"author\n{_ERASED}\n")
    location.tick("erasure_requests")
    assert (held > 0, dataset(str(uri)).count_rows()) == (True, 2 * NEW_EACH_DAY - held)
