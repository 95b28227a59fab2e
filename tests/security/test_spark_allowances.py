"""Workers of Spark follow no base that the driver's handle does not allow, and read no rows that are in no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, UnsafePath
from lance_ops.maintenance.compaction.compaction_plan import CompactionOptions, plan_compaction
from lance_ops.maintenance.compaction.rewriting import execute_rewrite
from lance_ops.spark import OnSpark
from lance_ops.spark.data_source import LanceReader, SourceOptions, visible_schema
from lance_ops.table import Fragment
from tests.s3_server import S3Server
from tests.security.forging import with_file_of, with_fragments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = pa.table({"id": list(range(10))})


@pytest.mark.server
def test_a_worker_refuses_a_base_that_the_driver_s_handle_does_not_allow(
    spark: SparkSession, s3_server: S3Server
) -> None:
    options = s3_server.storage_options
    elsewhere = lance_ops.write_dataset(ROWS, s3_server.new_uri("other"), storage_options=options)
    made = lance_ops.write_dataset(ROWS, s3_server.new_uri("t"), storage_options=options)
    made.insert(ROWS)
    hostile = with_file_of(elsewhere, made)
    (task,) = plan_compaction(hostile.snapshot, CompactionOptions()).tasks
    with pytest.raises(UnsafePath, match="allowed_bases"):
        OnSpark(spark).map(execute_rewrite, [task])
    trusting = lance_ops.dataset(hostile.uri, storage_options=options | {"allowed_bases": elsewhere.uri})
    (task,) = plan_compaction(trusting.snapshot, CompactionOptions()).tasks
    (outcome,) = OnSpark(spark).map(execute_rewrite, [task])
    assert sum(each.physical_rows for each in outcome.new_fragments) == 20


def test_a_table_of_rows_in_no_file_is_refused_before_any_task_reads_it(spark: SparkSession, dataset_uri: str) -> None:
    made = lance_ops.write_dataset(ROWS, dataset_uri)
    with_fragments(made, [*made.snapshot.fragments, Fragment(1, (), 1 << 31)])
    with pytest.raises(Exception, match="ReadTooLarge"):
        spark.read.format("lance").load(dataset_uri).collect()
    options = SourceOptions.parse({"path": dataset_uri})
    shape = spark.read.format("lance").load(dataset_uri).schema
    assert shape.names == visible_schema(options).names
    with pytest.raises(InvalidInput, match="ReadTooLarge"):
        LanceReader(options, shape).partitions()
