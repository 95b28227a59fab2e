"""Change a table of an S3 server on a standalone cluster until a file appears; print each step that is done.

The arguments are the master, the dataset's URI and the name of the file. A step appends rows under the name of a batch,
so that a repetition of it adds none, then updates some of them by a merge, and sometimes compacts.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import lance_ops
from lance_ops.errors import LanceOpsError
from lance_ops.spark import OnSpark, get_or_create, private_format

ROWS = 200
_STEPS_BETWEEN_COMPACTIONS = 5


def main(master: str, uri: str, stop: Path) -> None:
    """Repeat steps; one that the cluster gave up is tried again."""
    options = json.loads(os.environ["STORAGE_OPTIONS"])
    config = {"spark.sql.shuffle.partitions": "2", "spark.executor.memory": "512m", "spark.task.maxFailures": "8"}
    spark = get_or_create("soak", master=master, config={**config, "spark.deploy.maxExecutorRetries": "-1"})
    spark.sparkContext.setLogLevel("ERROR")
    step = 0
    while not stop.exists():
        rows = spark.range(step * ROWS, (step + 1) * ROWS, 1, 4).selectExpr("id", "0L AS touched")
        changes = spark.range(step * ROWS, step * ROWS + ROWS // 2, 1, 2).selectExpr("id", "1L AS touched")
        try:
            writer = rows.write.format(private_format(spark, options)).mode("append")
            writer.option("batch", f"step-{step}").save(uri)
            dataset, runner = lance_ops.dataset(uri, storage_options=options), OnSpark(spark, least_bytes=0)
            dataset.merge_insert("id").when_matched_update_all().execute(changes, runner=runner)
            if step % _STEPS_BETWEEN_COMPACTIONS == _STEPS_BETWEEN_COMPACTIONS - 1:
                dataset.optimize.compact_files(runner=runner)
        except (LanceOpsError, PySparkException, Py4JError) as error:  # its workers are gone
            print(f"again {step} {type(error).__name__}", flush=True)
        else:
            print(f"done {step}", flush=True)
            step += 1
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
