"""Data that does not fit a table raises an error that a caller of the reference catches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import SchemaMismatch

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

ROWS = pa.table({"id": range(10)})
NEW = pa.schema([pa.field("x", pa.int64())])


def stream(num_rows: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(range(num_rows))], schema=NEW)


SAID = {
    True: "not in the table|int64 in the table|the stream|at least one row",
    False: "different schema|Stream|Input data was empty",
}
"""What the errors of ours (`True`) and of the reference say."""

ACTS: dict[str, Callable[[Any, Any], object]] = {
    "append of another column": lambda library, handle: library.write_dataset(
        ROWS.rename_columns(["other"]), handle.uri, mode="append"
    ),
    "append of another type": lambda library, handle: library.write_dataset(
        pa.table({"id": ["a"]}), handle.uri, mode="append"
    ),
    "a stream that ends early": lambda library, handle: handle.add_columns(stream(9), reader_schema=NEW),
    "a stream with more rows": lambda library, handle: handle.add_columns(stream(11), reader_schema=NEW),
    "a fragment without rows": lambda library, handle: library.LanceFragment.create(handle.uri, ROWS.slice(10)),
}


@pytest.mark.parametrize("act", ACTS)
def test_data_that_does_not_fit_is_an_os_error_and_here_a_value_error(tmp_path: Path, act: str) -> None:
    for library in (lance_ops, lance):
        handle = library.write_dataset(ROWS, str(tmp_path / library.__name__), max_rows_per_file=5)
        before = sorted(tmp_path.rglob("*.lance"))
        with pytest.raises(OSError, match=SAID[library is lance_ops]) as raised:
            ACTS[act](library, handle)
        if library is lance_ops:
            assert isinstance(raised.value, SchemaMismatch)
            assert isinstance(raised.value, ValueError)
            assert sorted(tmp_path.rglob("*.lance")) == before
        assert library.dataset(handle.uri).version == 1


MISSING: dict[str, Callable[[Any], object]] = {
    "add_columns": lambda handle: handle.add_columns({"x": "nope"}),
    "alter_columns": lambda handle: handle.alter_columns({"path": "nope", "name": "x"}),
    "delete": lambda handle: handle.delete("nope = 1"),
    "checkout_version": lambda handle: handle.checkout_version(99),
    "update": lambda handle: handle.update({"nope": "1"}),
    "to_table": lambda handle: handle.to_table(columns=["nope"]),
    "tags": lambda handle: handle.tags.create("x", 99),
}


@pytest.mark.parametrize("verb", MISSING)
def test_a_name_or_version_that_does_not_exist_is_a_value_error(tmp_path: Path, verb: str) -> None:
    missing = "nope|99"
    with pytest.raises((ValueError, OSError), match=missing):
        MISSING[verb](lance.write_dataset(ROWS, str(tmp_path / "theirs")))
    with pytest.raises(ValueError, match=missing):
        MISSING[verb](lance_ops.write_dataset(ROWS, tmp_path / "ours"))
