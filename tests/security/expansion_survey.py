"""Use small tables that claim very many rows, by every verb: `python -m tests.security.expansion_survey`.

Prints the outcome of every verb on every table as JSON, and the most memory that each took. The number of cores is
fixed, since a scan holds something for each.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import tempfile
import traceback
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pyarrow as pa

import lance_ops.api
import lance_ops.maintenance
from lance_ops import LanceDataset
from lance_ops.errors import LanceOpsError
from lance_ops.kernels.warm import warm
from lance_ops.table import Fragment
from tests.fuzz.bombs import BOMBS, claiming
from tests.security.forging import with_files, with_fragments

_CORES = 2
ALLOWED_BYTES = 512 << 20
"""The memory that one use of a hostile table may add to a process."""

_ROWS = 1 << 31
_KIB = 1024  # the unit of `ru_maxrss`

IDS = pa.schema({"id": pa.int64(), "s": pa.string()})


def rows_in_no_file(uri: str, *row_counts: int, schema: pa.Schema = IDS) -> LanceDataset:
    """Return a table whose fragments have rows and no files."""
    empty = lance_ops.write_dataset(schema.empty_table(), uri)
    return with_fragments(empty, [Fragment(number, (), rows) for number, rows in enumerate(row_counts)])


def one_file(uri: str, column: pa.Array, num_rows: int, num_copies: int = 1) -> LanceDataset:
    """Return a table of fragments whose file has one page that claims to repeat its value for `num_rows` rows."""
    data = claiming(column, num_rows)
    return with_files(uri, pa.schema({"c": column.type}), [(data, num_rows)] * num_copies)


def _long_items(uri: str) -> LanceDataset:
    data = BOMBS["one long item for every row"][0]()
    return with_files(uri, pa.schema({"c": pa.string()}), [(data, 1024 * 1000)] * 4)


TABLES: dict[str, Callable[[str], LanceDataset]] = {
    "2^31 rows in no file": lambda uri: rows_in_no_file(uri, _ROWS),
    "2^27 rows in no file": lambda uri: rows_in_no_file(uri, 1 << 27),
    "2^42 rows in no file": lambda uri: rows_in_no_file(uri, *[(1 << 32) - 1] * 1024),
    "nulls of 1 GiB each": lambda uri: rows_in_no_file(uri, 50, schema=pa.schema({"c": pa.binary(1 << 30)})),
    "2^31 equal numbers": lambda uri: one_file(uri, pa.array([7] * 10), _ROWS),
    "2^31 equal strings": lambda uri: one_file(uri, pa.array(["x" * 50] * 10), _ROWS),
    "2^25 equal numbers in 32 files": lambda uri: one_file(uri, pa.array([7] * 10), 1 << 20, 32),
    "dictionaries of one long item": _long_items,
}


def _first_batches(table: LanceDataset) -> int:
    return sum(batch.num_rows for batch in islice(table.to_batches(), 200))


def _merge(table: LanceDataset) -> object:
    key = table.schema.names[0]
    merge = table.merge_insert(key).when_matched_update_all().when_not_matched_insert_all()
    return merge.execute(table.schema.empty_table())


VERBS: dict[str, Callable[[LanceDataset], object]] = {
    "count": lambda table: table.count_rows(),
    "count matches": lambda table: table.count_rows(f"{table.schema.names[0]} IS NULL"),
    "stream": _first_batches,
    "read whole": lambda table: table.to_table().num_rows,
    "read row ids": lambda table: table.to_table(columns=[], with_row_id=True).num_rows,
    "read matches": lambda table: table.to_table(filter=f"{table.schema.names[0]} IS NULL").num_rows,
    "read sorted": lambda table: table.to_table(order_by=[table.schema.names[0]], limit=5).num_rows,
    "head": lambda table: table.head(5).num_rows,
    "take": lambda table: table.take([0, 49, 7]).num_rows,
    "query": lambda table: len(table.sql("SELECT count(*) FROM dataset").build().to_batch_records()),
    "delete": lambda table: table.delete(f"{table.schema.names[0]} IS NULL"),
    "update": lambda table: table.update({table.schema.names[0]: "NULL"}),
    "merge": _merge,
    "add a column": lambda table: table.add_columns({"z": "1"}),
    "index": lambda table: table.create_scalar_index(table.schema.names[0], "BTREE"),
    "compact": lambda table: table.optimize.compact_files(target_rows_per_fragment=1 << 33),
    "validate": lambda table: table.validate(),
    "statistics": lambda table: table.stats.data_stats(),
}


def outcome(use: Callable[[], object]) -> str:
    """Return the type of the library's error, or `done`. Any other error passes through: it is a defect."""
    try:
        use()
    except LanceOpsError as error:
        return type(error).__name__
    return "done"


USES: dict[str, tuple[str, ...]] = {
    "2^31 rows in no file": tuple(VERBS),
    "2^27 rows in no file": ("stream", "read whole", "read row ids", "read matches", "read sorted", "delete", "index"),
    "2^42 rows in no file": ("count", "stream", "count matches", "query", "delete", "add a column", "compact"),
    "nulls of 1 GiB each": ("count", "stream", "head", "take", "update", "index"),
    "2^31 equal numbers": ("count", "stream", "read whole", "index"),
    "2^31 equal strings": ("stream", "read whole", "take"),
    "2^25 equal numbers in 32 files": ("stream", "read whole", "update", "compact"),
    "dictionaries of one long item": (
        *("stream", "read whole", "read matches", "read sorted", "update", "merge", "compact", "index"),
    ),
}


def main() -> None:
    """Print the outcomes, and the most memory in bytes that a use added, each in a process of its own."""
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:_CORES])
    warm()
    _load_modules()
    outcomes: dict[str, str] = {}
    added_bytes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for table, verbs in USES.items():
            for verb in verbs:
                use = f"{table}: {verb}"
                uri = Path(folder, f"{len(outcomes)}.lance")
                outcomes[use], added_bytes[use] = _in_a_child(table, verb, uri)
                if added_bytes[use] >= ALLOWED_BYTES:  # allocators and threads differ from run to run
                    added_bytes[use] = min(added_bytes[use], _in_a_child(table, verb, uri.with_suffix(".again"))[1])
    print(json.dumps({"outcomes": outcomes, "added_bytes": added_bytes}))


def _load_modules() -> None:
    """Import what verbs import when they are first used: otherwise each child does, which takes most of its time."""
    for room in (lance_ops.api, lance_ops.maintenance):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)


def _in_a_child(table: str, verb: str, uri: Path) -> tuple[str, int]:
    """Return the outcome of a use in a forked process, and how many bytes of memory it added at its peak."""
    told = uri.with_suffix(".outcome")
    child = os.fork()
    if not child:
        _tell(told, table, verb, str(uri))
    _, status, usage = os.wait4(child, 0)
    if status:
        return f"ended with {status}", 0
    outcome, before = told.read_text().split()
    return outcome, usage.ru_maxrss * _KIB - int(before)


def _tell(told: Path, table: str, verb: str, uri: str) -> None:
    """Use the table in this process, write the outcome, and end the process."""
    try:
        before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        told.write_text(f"{outcome(lambda: VERBS[verb](TABLES[table](uri)))} {before}")
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a forked child must not go on as its parent
        traceback.print_exc()
        os._exit(1)


if __name__ == "__main__":
    main()
