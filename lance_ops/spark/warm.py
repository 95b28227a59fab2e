"""Archive the classes of Spark when an image is built, so that its sessions start in half the time.

    python -m lance_ops.spark.warm

The archive is a file of about 190 MB in the cache folder of the user who runs this. Every session of `get_or_create`
with a local master uses it. Another build of Java or of Spark needs one of its own.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from lance_ops.core.errors import ConfigError
from lance_ops.spark.java import make_archive, use_java
from lance_ops.spark.session import get_or_create
from lance_ops.spark.sql_access import sql
from lance_ops.spark.table_query import table

__all__ = ["load_classes", "main", "warm"]


def warm() -> Path:
    """Return the archive for the Java that `find_java` finds; make it if it is not there. Raises `ConfigError`."""
    return make_archive(use_java())


def load_classes(java_options: str) -> None:
    """Start a session whose JVM gets these options, and let it read, join and write a few rows, as most sessions do."""
    with tempfile.TemporaryDirectory() as folder:
        session = get_or_create(
            "lance-ops warm",
            master="local[2]",
            config={
                "spark.driver.defaultJavaOptions": java_options,
                "spark.sql.warehouse.dir": f"{folder}/warehouse",
                "spark.local.dir": f"{folder}/local",
            },
        )
        rows = session.createDataFrame([(1, "a"), (2, "b")], "id bigint, name string")
        rows.write.parquet(f"{folder}/rows")
        stored, uri = session.read.parquet(f"{folder}/rows"), f"{folder}/rows.lance"
        stored.write.format("lance").mode("append").save(uri)
        changed = "USING (SELECT 2 AS id, 'c' AS name) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *"
        sql(session, f"MERGE INTO lance.`{uri}` t {changed}")
        session.read.format("lance").load(uri).join(stored, "id").groupBy("id").count().orderBy("id").collect()
        table(session, uri).where("id = 1").load().collect()
        stored.mapInArrow(_same, stored.schema).collect()
        session.sparkContext.parallelize([1, 2], 2).map(str).collect()
        session.stop()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main() -> None:
    """Make the archive, and print its path."""
    parser = argparse.ArgumentParser(prog="python -m lance_ops.spark.warm", description=__doc__)
    parser.add_argument("--load-classes", metavar="JAVA_OPTIONS", help=argparse.SUPPRESS)
    options = parser.parse_args().load_classes
    if options is not None:
        load_classes(options)
        return
    try:
        print(f"the classes of Spark are archived in {warm()}")
    except ConfigError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
