"""What a process that starts with a filled kernel cache compiles, imports and keeps in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_ops.file import LanceFileWriter

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

_SCAN = """
import json, sys
from lance_ops import kernels
from lance_ops.file import LanceFileReader
for kernel in (kernels.read_headers, kernels.read_widths, kernels.unpack_blocks):
    kernel.load()  # before, its twin would answer

table = LanceFileReader(sys.argv[1]).read_all().to_table()
heavy = [module for module in ("pandas", "sqlglot", "pyspark", "dagster") if module in sys.modules]
rows = table.take([0, 17]).to_pylist()
from lance_ops.kernels.chunks.headers import read_headers
from lance_ops.kernels.fastlanes import unpack_blocks
stats = [kernel.stats for kernel in (read_headers, unpack_blocks)]
hits = sum(sum(each.cache_hits.values()) for each in stats)
misses = sum(sum(each.cache_misses.values()) for each in stats)
resident, name = 0, ""
for line in open("/proc/self/smaps"):
    head = line.split()
    if "-" in head[0] and not head[0].endswith(":"):
        name = line if "libllvmlite" in line and "r-xp" in line else ""
    elif name and head[0] == "Rss:":
        resident += int(head[1]) * 1024
print(json.dumps({"rows": rows, "hits": hits, "misses": misses, "compiler_bytes": resident, "heavy": heavy}))
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = str(tmp_path / "numbers.lance")
    with LanceFileWriter(path) as writer:
        writer.write_batch(pa.table({"n": np.arange(5000) % 100}))
    return path


def scan_in_a_new_process(file: str, **environment: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-c", _SCAN, file],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    assert found["rows"] == [{"n": 0}, {"n": 17}]
    return found


def test_a_second_process_compiles_nothing_imports_little_and_releases_the_compiler(file: str) -> None:
    scan_in_a_new_process(file)
    for _ in range(3):  # a process that stores another variant of a kernel at the same time may lose this one's
        found = scan_in_a_new_process(file)
        if not found["misses"]:
            break
    assert (found["hits"], found["misses"]) == (2, 0)
    assert found["heavy"] == []
    assert found["compiler_bytes"] < 16 << 20


def test_with_the_trick_off_the_compiler_stays_in_memory(file: str) -> None:
    scan_in_a_new_process(file)
    assert scan_in_a_new_process(file, LANCE_OPS_DISABLE="compiler-memory")["compiler_bytes"] > 16 << 20
