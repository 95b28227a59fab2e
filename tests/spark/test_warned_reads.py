"""A read of everything is named in the log of the driver, once, although another process plans it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from tests.groups import OWN_SESSIONS

pytestmark = [pytest.mark.spark, OWN_SESSIONS]

ROOT = Path(__file__).parents[2]
_MEGABYTE = 1 << 20

_READ_TWICE = """
import sys
from lance_ops.spark import get_or_create

spark = get_or_create("warned reads", master="local[2]", config={"spark.driver.memory": "1g"})
for _ in range(2):
    frame = spark.read.format("lance").load(sys.argv[1])
    for _ in range(2):
        assert frame.filter("length(value) > 0").rdd.getNumPartitions()
"""


@pytest.mark.timeout(300)
def test_a_read_of_everything_is_named_once_on_the_driver_s_standard_error(dataset_uri: str) -> None:
    values = pa.array([os.urandom(_MEGABYTE) for _ in range(130)], pa.binary())
    lance_ops.write_dataset(pa.table({"value": values}), dataset_uri, max_rows_per_file=10)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _READ_TWICE, dataset_uri],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=280,
        check=True,
    )
    said = [line for line in run.stderr.splitlines() if "reads all columns of all rows" in line]
    assert len(said) == 1, run.stderr
    assert dataset_uri in said[0] and "lance_ops.spark.table(spark, uri)" in said[0]
