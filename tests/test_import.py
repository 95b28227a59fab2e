"""Importing the library is quick and loads no heavy package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import lance_ops

_MEASURE = """
import sys, time
start = time.perf_counter()
import lance_ops
print(time.perf_counter() - start, *({"pyspark", "dagster", "lance", "numba"} & sys.modules.keys()))
"""


def test_importing_the_library_is_quick_and_loads_no_heavy_package() -> None:
    seconds = []
    for _ in range(5):
        run = subprocess.run([sys.executable, "-c", _MEASURE], capture_output=True, text=True, check=True)
        taken, *dragged_in = run.stdout.split()
        assert dragged_in == []
        seconds.append(float(taken))
    assert min(seconds) < 0.4


def test_an_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'datasets'"):
        lance_ops.datasets  # type: ignore[attr-defined]  # noqa: B018 # what raises


def test_every_public_name_is_listed_and_resolves() -> None:
    assert set(lance_ops.__all__) <= set(dir(lance_ops))
    for name in lance_ops.__all__:
        assert getattr(lance_ops, name) is not None


def test_reading_a_local_dataset_loads_no_sql_and_no_network_package(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
import pyarrow as pa, lance_ops
lance_ops.write_dataset(pa.table({{"a": [1, 2]}}), {str(tmp_path / "t")!r})
assert lance_ops.dataset({str(tmp_path / "t")!r}).to_table().num_rows == 2
print(*({{"sqlglot", "fsspec", "sqlalchemy"}} & sys.modules.keys()))
assert lance_ops.dataset({str(tmp_path / "t")!r}).count_rows("a = 2") == 1
print("sqlglot" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True"]
