"""Record what fragments cost: a manifest of many, and the requests and CPU time of one in an object store."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_ops
from tests.bench.scale.many_fragments import ALL_STEPS
from tests.lossy_proxy import lossy_proxy, request_name
from tests.s3_server import moto_server

__all__ = ["FragmentCosts", "driver_lines", "fragment_costs", "manifest_costs"]

_COLUMNS = 8


def manifest_costs(count: int, folder: Path) -> dict[str, float]:
    """Measure every step on a manifest of `count` fragments, each in a process of its own."""
    found: dict[str, float] = {}
    uri = str(folder / f"{count}.lance")
    for step in ALL_STEPS:
        command = [sys.executable, "-m", "tests.bench.scale.many_fragments", step, str(count), uri]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found |= json.loads(done.stdout)
    return found


def driver_lines(script: str, fragments: int, millions: int) -> list[str]:
    """Measure a driver in a process of its own, by the script `merge_driver` or `index_driver`."""
    command = [sys.executable, "-m", f"tests.bench.{script}", str(fragments), str(millions)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@dataclass(frozen=True)
class FragmentCosts:
    """What one fragment of `size_bytes` costs: requests, and CPU seconds with those of the store's client."""

    size_bytes: int
    write_puts: int
    write_cpu_s: float
    read_gets: int
    read_cpu_s: float
    column_gets: int
    column_cpu_s: float
    column_bytes: int

    @property
    def num_rows(self) -> int:
        """The rows of the fragment, of eight columns of doubles."""
        return self.size_bytes // 8 // _COLUMNS


def fragment_costs(size_bytes: int) -> FragmentCosts:
    """Write a fragment to a server, and read it and one of its columns, each with a new handle."""
    with moto_server() as server, lossy_proxy(server.endpoint) as proxy:
        options = replace(server, endpoint=proxy.endpoint).storage_options
        uri = server.new_uri("table.lance")
        numbers = np.random.default_rng(3).normal(size=size_bytes // 8 // _COLUMNS)
        rows = pa.table({f"column_{number}": numbers * (number + 1) for number in range(_COLUMNS)})
        lance_ops.write_dataset(rows.slice(0, 10), uri, storage_options=options)  # the table, and the library's imports

        def counted(column: str | None, *, write: bool = False) -> tuple[Counter[str], float, int]:
            first, begin = len(proxy.seen), time.process_time()
            if write:
                lance_ops.write_dataset(rows, uri, mode="append", max_rows_per_file=len(rows), storage_options=options)
            else:
                opened = lance_ops.dataset(uri, storage_options=options)
                fragment = opened.get_fragment(1)
                assert fragment is not None
                assert fragment.to_table(columns=column and [column]).num_rows == rows.num_rows
            spent = time.process_time() - begin
            names = [request_name(*seen) for seen in proxy.seen[first:] if "/data/" in seen[1]]
            return Counter(names), spent, sum(proxy.sizes_bytes[first:])

        written, write_s, _ = counted(None, write=True)
        counted("column_1")  # kernels and connections
        read, read_s, _ = counted(None)
        column, column_s, column_bytes = counted("column_0")
    return FragmentCosts(
        size_bytes,
        written["PUT"] + written["POST"],
        write_s,
        read["GET"],
        read_s,
        column["GET"],
        column_s,
        column_bytes,
    )
