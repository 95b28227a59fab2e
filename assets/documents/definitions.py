"""The Dagster definitions of the documents: the declared dataset, its embeddings, and erasure requests."""

# No postponed annotations here: Dagster compares the annotation of `context` as it stands.
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa

from assets.documents.embedding import embed
from lance_ops.dagster import LanceDatasetResource, build_asset_definitions, build_job_definitions, load_dataset
from lance_ops.dagster.ops import launch
from lance_ops.dagster.runners import RUNNER_KEY, LanceRunner
from lance_ops.verbs import Erase

__all__ = ["REQUESTS", "definitions_of"]

REQUESTS = "erasure_requests"
"""The folder beneath `LANCE_OPS_LANDING` whose CSV files name authors, in a column `author`."""

_BATCH_ROWS = 1024
_SHOWN = 20


def definitions_of(runner: LanceRunner) -> dg.Definitions:
    """Return the assets, jobs, sensors and resources; every task runs on `runner`."""
    config = load_dataset(Path(__file__).parent / "documents.yaml")
    own = dg.Definitions(
        assets=[document_embeddings],
        sensors=[erasure_requests],
        resources={"documents_table": LanceDatasetResource(uri=config.uri), RUNNER_KEY: runner},
    )
    return dg.Definitions.merge(build_asset_definitions(config), build_job_definitions(config), own)


@dg.asset(deps=["documents"], kinds={"lance"}, automation_condition=dg.AutomationCondition.eager())
def document_embeddings(
    context: dg.AssetExecutionContext, documents_table: LanceDatasetResource, lance_runner: LanceRunner
) -> dg.MaterializeResult[Any]:
    """Compute the column `embedding` where it is missing: of all rows at first, then of new and changed ones.

    The first time tasks of the runner write one file for each fragment. Later, only the missing values are merged: an
    upsert of a document leaves its embedding null, because raw files do not have the column. A document whose text
    changes meanwhile stays without an embedding until the next run.
    """
    data = documents_table.open()
    if "embedding" not in data.schema.names:
        num_rows = data.count_rows()
        data.add_columns(embed, ["text"], runner=lance_runner.logging_to(context.log))
    else:
        missing = data.scanner(columns=["id", "text"], filter="embedding IS NULL", batch_size=_BATCH_ROWS)
        num_rows = missing.count_rows()
        if num_rows:
            schema = pa.schema([data.schema.field(name) for name in ("id", "text", "embedding")])
            rows = pa.RecordBatchReader.from_batches(schema, _embedded(missing.to_batches(), schema))
            data.merge_insert("id").when_matched_update_all("source.text = target.text").execute(rows)
    return dg.MaterializeResult(
        metadata={"embedded_rows": num_rows, "lance/version": data.version},
        data_version=dg.DataVersion(str(data.version)),
    )


def _embedded(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = [batch.column("id"), batch.column("text"), embed(batch).column("embedding")]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


@dg.sensor(job_name="documents_erase", minimum_interval_seconds=60)
def erasure_requests(context: dg.SensorEvaluationContext) -> dg.SensorResult:
    """Ask for one erasure for each request. The run's configuration has the file's path, not the author.

    A request is a file's name with its content, so a copy of the folder, whose files have new times, asks for nothing
    again: an author may have come back since. The tick names such known requests. After a run that failed, execute that
    run again. Other content under the same name is a new request. Write a request under another name and rename it,
    because a file is read as soon as it is there.
    """
    folder = Path(os.environ["LANCE_OPS_LANDING"]) / REQUESTS
    found = {
        f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}": path for path in sorted(folder.glob("*.csv"))
    }
    known = _known(context, list(found))
    told = None
    if known:
        told = (
            f"{len(known)} known requests are not asked for again; give a file another name to have its authors erased "
            f"again: {', '.join(found[key].name for key in known[:_SHOWN])}"
        )
        context.log.info(told)
    requests = [_request(key, path) for key, path in found.items() if key not in known]
    return dg.SensorResult(run_requests=requests, skip_reason=None if requests else told or "there is no request")


def _known(context: dg.SensorEvaluationContext, keys: list[str]) -> list[str]:
    """Return the keys for which this sensor has launched a run. A run that was only stored is left to Dagster."""
    tags = {"dagster/sensor_name": context.sensor_name, "dagster/run_key": keys}
    runs = context.instance.get_runs(dg.RunsFilter(tags=tags)) if keys else []
    launched = {run.tags["dagster/run_key"] for run in runs if run.status is not dg.DagsterRunStatus.NOT_STARTED}
    return [key for key in keys if key in launched]


def _request(key: str, path: Path) -> dg.RunRequest:
    erase = Erase(key_files=(str(path),), on=("author",), reason="erasure request")
    return dg.RunRequest(run_key=key, run_config=dg.RunConfig(ops={"erase": launch(erase, dry_run=False)}))
