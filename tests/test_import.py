"""Importing the library loads little, and reading loads only what it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops

_MEASURE = """
import json, sys
before = set(sys.modules)
import lance_ops
print(json.dumps(sorted(sys.modules.keys() - before)))
"""


def test_importing_the_library_loads_no_other_package_and_few_modules() -> None:
    run = subprocess.run([sys.executable, "-c", _MEASURE], capture_output=True, text=True, check=True)
    loaded = json.loads(run.stdout)
    own = [name for name in loaded if name.partition(".")[0] == "lance_ops"]
    assert own == ["lance_ops"]  # public names load their modules when they are first used
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"lance_ops"}
    assert len(loaded) < 60


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
assert lance_ops.dataset({str(tmp_path / "t")!r}).count_rows("a + 0 = 2") == 1
print("sqlglot" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True"]


def test_a_class_loads_without_a_look_at_the_signatures_of_its_methods() -> None:
    code = """
import inspect
import lance_ops
from lance_ops.errors import WrongType
seen, signature = set(), inspect.signature
def noted(function):
    if function.__module__.startswith("lance_ops.api."):
        seen.add(function.__qualname__)
    return signature(function)
inspect.signature = noted
lance_ops.LanceDataset, lance_ops.LanceFragment
print(len(seen))
try:
    lance_ops.dataset(uri=7)
except WrongType:
    print(*seen)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "dataset"]


HEAVY = {"dagster", "duckdb", "fsspec", "numba", "pandas", "pyspark", "rich", "s3fs", "sqlalchemy", "sqlglot", "typer"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("cold") / "table")
    rows = {"id": list(range(100)), "name": [f"name {number % 7}" for number in range(100)], "x": [0.5] * 100}
    lance_ops.write_dataset(pa.table(rows), uri)
    return uri


def _run(code: str, table: str, disabled: str = "") -> list[str]:
    """Run code in a new process, where `t` opens the table; return the lines that it prints."""
    start = f"import sys, lance_ops\ndef t(): return lance_ops.dataset({table!r})\n"
    env = {**os.environ, "LANCE_OPS_DISABLE": disabled}
    run = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, check=True, env=env)
    return run.stdout.splitlines()


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("assert t().schema.names == ['id', 'name', 'x']", set()),
        ("assert t().count_rows() == 100", set()),
        ("assert t().to_table().column('id').to_pylist() == list(range(100))", set()),
        ("assert t().take([3, 5]).column('id').to_pylist() == [3, 5]", set()),
        ("assert t().head(2).num_rows == 2", set()),
        ("lance_ops.write_dataset(t().to_table(), t().uri + '-new')", set()),
        ("lance_ops.write_dataset(t().to_table(), t().uri + '-new', mode='append')", set()),
        ("assert t().count_rows('id = 7 AND x >= 0.5') == 1", set()),
        ("assert t().to_table(filter='x < 1.5 AND id IN (3, 4)').num_rows == 2", {"sqlglot"}),
        ("assert t().to_table(filter=\"name LIKE 'name 3%' AND x IS NOT NULL\").num_rows == 14", {"sqlglot"}),
        ("assert t().to_table(filter=\"name = 'none' and id > -1\").num_rows == 0", set()),
    ],
)
def test_a_cold_process_loads_only_the_packages_that_its_path_needs(table: str, code: str, loaded: set[str]) -> None:
    shown = f"\nprint(*sorted({HEAVY!r} & sys.modules.keys()))"
    assert set(_run(code + shown, table)[-1].split()) == loaded


@pytest.mark.parametrize(("num_fragments", "loaded"), [(40, False), (300, True)])
@pytest.mark.parametrize("read", ["to_table()", "take(range(0, 900, 3))", "count_rows('x < 5')"])
def test_a_cold_process_loads_numba_to_open_many_small_files_but_not_for_a_few(
    tmp_path: Path, read: str, num_fragments: int, loaded: bool
) -> None:
    uri = str(tmp_path / "fragments")
    rows = pa.table({"x": range(900), "name": [f"name {number}" for number in range(900)]})
    lance_ops.write_dataset(rows, uri, max_rows_per_file=900 // num_fragments)
    assert _run(f"t().{read}\nprint('numba' in sys.modules)", uri) == [str(loaded)]


_UNNEEDED_BY_READERS = ("changing", "cli", "legacy", "maintenance", "refs", "file.v0_1", "file.v2_0", "file.writer")
_APPENDS = """
import pyarrow as pa
for _ in range(2):
    lance_ops.write_dataset(pa.table({'id': range(9)}), t().uri + '-appended', mode='append')
"""
_READERS = ("reading.scan_execution", "reading.take", "reading.index_lookup", "file.alike_files")
_WRITES = "t(), lance_ops.write_dataset(t().to_table(), t().uri + '-copy')"


@pytest.mark.parametrize(
    ("code", "unneeded", "most"),
    [
        (
            "t().schema",
            (*_UNNEEDED_BY_READERS, "core.predicate.sql", "indices.btree", "transactions.operations", *_READERS),
            180,
        ),
        ("t().to_table()", (*_UNNEEDED_BY_READERS, "core.predicate.sql", "store.remote"), 277),
        ("t().take([3, 5])", (*_UNNEEDED_BY_READERS, "core.predicate.sql", "store.remote"), 272),
        ("t().count_rows('id = 7')", (*_UNNEEDED_BY_READERS, "core.predicate.arrow", "store.remote"), 299),
        (
            _APPENDS,
            (
                *("changing.deletion", "maintenance.cleanup.cleanup", "refs", *_READERS),
                *("maintenance.cleanup.auto_cleanup", "transactions.conflicts", "transactions.operations.rewrite"),
                *("encodings.choosing.choose", "file.reader", "file.v2_1.page_encoder", "file.v2_1.layouts.mini_block"),
            ),
            262,
        ),
        (
            _WRITES,
            ("changing", "maintenance.repair", "maintenance.verification", "file.v2_0", "transactions.conflicts"),
            325,
        ),
    ],
)
def test_a_cold_process_loads_only_the_modules_that_its_path_needs(
    table: str, code: str, unneeded: tuple[str, ...], most: int
) -> None:
    """A door may be loaded, since it loads nothing itself; a module behind it may not."""
    own = "{name: each for name, each in sys.modules.items() if name.startswith('lance_ops.')}.items()"
    shown = f"\nprint(*(name for name, each in {own} if each.__spec__.parent != name))"
    loaded = _run(code + shown, table)[-1].split()
    assert len(loaded) > 100
    prefixes = tuple(f"lance_ops.{name}." for name in unneeded)
    assert not [name for name in loaded if f"{name}.".startswith(prefixes)]
    assert len(loaded) < most


@pytest.fixture
def nested(tmp_path: Path) -> str:
    """Write a table of lists, maps and dictionaries with an index, and an Arrow file of such rows beside it."""
    rows = pa.table(
        {
            "id": range(100),
            "x": [0.5] * 100,
            "y": [number / 100 for number in range(100)],
            "text": [str(number) for number in range(100)],
            "items": [[number, None] for number in range(100)],
            "pairs": pa.array([[("a", number)] for number in range(100)], pa.map_(pa.string(), pa.int32())),
            "word": pa.array(["a", None] * 50).dictionary_encode(),
        }
    )
    dataset = lance_ops.write_dataset(rows, str(tmp_path / "nested"))
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("x", "BTREE")
    dataset.create_scalar_index("y", "ZONEMAP")
    with pa.ipc.new_file(tmp_path / "nested.arrow", rows.schema) as file:
        file.write_table(rows)
    return dataset.uri


@pytest.mark.parametrize(
    "code",
    [
        "assert t().to_table(filter='id = 7').num_rows == 1",
        "assert t().to_table(filter='id > 90 AND x < 1').num_rows == 9",
        "assert t().to_table(filter='y < 0.5').num_rows == 50",
        "t().create_scalar_index('id', 'BTREE', name='again')",
        "t().create_scalar_index('text', 'BTREE')",
        "assert t().delete('id < 10')['num_deleted_rows'] == 10; assert t().to_table().num_rows == 90",
        "lance_ops.write_dataset(pa.ipc.open_file(t().uri + '.arrow').read_all(), t().uri, mode='append')",
        "lance_ops.write_dataset(pa.ipc.open_file(t().uri + '.arrow').read_all(), t().uri + '-copy')",
    ],
)
def test_look_ups_deletions_and_writes_of_nested_columns_load_no_pandas(nested: str, code: str) -> None:
    assert _run(f"import pyarrow as pa\n{code}\nprint('pandas' in sys.modules)", nested) == ["False"]


_AS_BEFORE = """
import pyarrow as pa
before = pa.lib.scalar
t()
import pyarrow.dataset
assert pa.lib.scalar is before is pa.scalar
assert isinstance(t(), pyarrow.dataset.Dataset)
assert str(pyarrow.dataset.field("a").is_null() & True) == "(is_null(a, {nan_is_null=false}) and true)"
assert pa.array(__import__("pandas").Series([1, None])).null_count == 1
print("done")
"""


@pytest.mark.parametrize(("disabled", "loaded"), [("", False), ("dataset-import", True)])
def test_opening_a_dataset_loads_pandas_only_with_the_trick_off(table: str, disabled: str, loaded: bool) -> None:
    assert _run("t()\nprint('pandas' in sys.modules)\n", table, disabled) == [str(loaded)]


def test_pyarrow_works_as_before_when_a_dataset_was_opened(table: str) -> None:
    assert _run(_AS_BEFORE, table) == ["done"]
