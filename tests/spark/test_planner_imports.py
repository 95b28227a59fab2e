"""What the processes load in which Spark looks the source up and plans reads and writes. No JVM runs here."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

import lance_ops

_START = """
import pickle, sys
import pyspark.sql.worker.create_data_source, pyspark.sql.worker.plan_data_source_read
import pyspark.sql.worker.write_into_data_source
from pyspark.sql.types import LongType, StringType, StructField, StructType
from pyspark_lance_ops import DefaultSource

source = DefaultSource({"path": sys.argv[1]})
rows = StructType([StructField("id", LongType()), StructField("name", StringType())])
"""
_SHOW = """
specs = {name: getattr(each, "__spec__", None) for name, each in sys.modules.items()}
print(*(name for name, spec in specs.items() if spec and spec.parent != name))
"""
_READERS = ("data_source.table_reader", "data_source.pushing_reader", "data_source.stream_reader")
_WRITERS = ("data_source.write_plan", "data_source.write_planning", "data_source.spark_writers")
_DECODERS = ("lance_ops.reading.scan_execution", "lance_ops.file.reader", "lance_ops.file.v2_1.reader")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("planned") / "table")
    lance_ops.write_dataset(pa.table({"id": [1, 2], "name": ["a", "b"]}), uri)
    return uri


@pytest.mark.parametrize(
    ("code", "loaded", "unneeded", "most"),
    [
        ("", (), (*_READERS, *_WRITERS, "data_source.options"), 10),
        ("assert source.schema() == rows", ("data_source.visible_columns",), (*_READERS, *_WRITERS), 132),
        (
            "assert len(source.reader(rows).partitions()) == 1",
            ("data_source.table_reader",),
            (*_READERS[1:], *_WRITERS, *_DECODERS),
            165,
        ),
        ("assert pickle.dumps(source.writer(rows, False))", _WRITERS, _READERS, 143),
    ],
)
def test_a_planner_loads_only_what_its_step_needs(
    table: str, code: str, loaded: tuple[str, ...], unneeded: tuple[str, ...], most: int
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", f"{_START}{code}\n{_SHOW}", table], capture_output=True, text=True, check=True
    )
    modules = set(run.stdout.splitlines()[-1].split())
    own = {name.removeprefix("lance_ops.spark.") for name in modules if name.startswith("lance_ops.")}
    assert "data_source.source" in own
    assert own >= set(loaded)
    assert not own & set(unneeded)
    assert not modules & {"numba.core.dispatcher", "pandas.core.frame", "pyarrow.dataset", "sqlglot.parser"}
    assert len(own) < most
