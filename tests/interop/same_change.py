"""Make one change with each library, each on its own copy of a table, and compare what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import LanceOpsError
from tests.interop.transactions import shape_of

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")

__all__ = ["DIFFERENCES", "Change", "Difference", "Made", "check_change", "check_same", "make_change"]

Change = Callable[[Any, Any], Any]
"""Changes a dataset (first argument) with its library (second argument), and returns the verb's result."""
DIFFERENCES = " ".join((Path(__file__).parents[2] / "docs" / "differences.md").read_text().split())


@dataclass(frozen=True)
class Difference:
    """A case in which the libraries differ on purpose; `docs/differences.md` contains the words `documented`.

    Where only this library succeeds, `rows` are those of its table then, in any order.
    """

    documented: str
    ours_succeeds: bool = True
    theirs_succeeds: bool = False
    rows: pa.Table | None = None


@dataclass(frozen=True)
class Made:
    """What one library made of a change; `rows` and `schema` are as both libraries read them, if they can."""

    error: str | None
    result: Any
    version: int
    schema: pa.Schema | None
    metadata: Mapping[bytes, bytes] | None
    rows: list[str]
    operation: object

    @property
    def succeeds(self) -> bool:
        return self.error is None


def make_change(root: Path, rows: pa.Table, change: Change, **options: Any) -> tuple[Made, Made]:
    """Return what this library and the reference made of a table in files of three rows.

    Both libraries must be able to read what this one made.
    """
    ours, theirs = (
        _made(library, str(root / library.__name__), rows, change, options) for library in (lance_ops, lance)
    )
    return ours, theirs


def check_change(root: Path, rows: pa.Table, change: Change, known: Difference | None = None, **options: Any) -> None:
    """Make the change with both libraries, and check it as `check_same` does."""
    check_same(*make_change(root, rows, change, **options), known)


def check_same(ours: Made, theirs: Made, known: Difference | None = None) -> None:
    """Check that both libraries made the same table and transaction, or both failed, unless a difference is `known`."""
    said = f"ours: {ours.error}; theirs: {theirs.error}"
    if known is not None:
        assert known.documented in DIFFERENCES
        assert (ours.succeeds, theirs.succeeds) == (known.ours_succeeds, known.theirs_succeeds), said
        assert ours != theirs, "the difference is gone: remove it"
        if ours.succeeds and not theirs.succeeds:
            assert known.rows is not None, f"say which rows there are: {ours.rows}"
            assert ours.rows == _shown(known.rows)
        return
    assert ours.succeeds == theirs.succeeds, said
    assert ours.result == theirs.result
    assert ours.version == theirs.version
    assert ours.schema is not None and theirs.schema is not None and ours.schema.equals(theirs.schema, True)
    assert ours.rows == theirs.rows
    assert ours.operation == theirs.operation


def _made(library: Any, uri: str, rows: pa.Table, change: Change, options: Mapping[str, Any]) -> Made:
    lance.write_dataset(rows, uri, max_rows_per_file=3, **options)
    error, result = None, None
    try:
        result = change(library.dataset(uri), library)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as raised:  # the reference's panics derive from it
        if library is lance_ops and not isinstance(raised, LanceOpsError | TypeError | ValueError):
            raise
        error = f"{type(raised).__name__}: {raised}"
        result = None
    try:
        return _read(uri, error, result)
    except Exception:
        if library is lance_ops:
            raise
        return Made(error, result, -1, None, None, [], None)  # the reference made a table that cannot be read


def _read(uri: str, error: str | None, result: Any) -> Made:
    mine = lance_ops.dataset(uri)
    mine.validate()
    table, read = mine.to_table(), lance.dataset(uri).to_table()
    assert read.schema.equals(table.schema, True) and read.equals(table)
    transaction = mine.read_transaction(mine.version)
    assert transaction is not None
    shape = shape_of(transaction.operation) if mine.version > 1 else None
    return Made(error, result, mine.version, table.schema, table.schema.metadata, _shown(table), shape)


def _shown(table: pa.Table) -> list[str]:
    """Return the rows as text, sorted."""
    return sorted(map(str, table.to_pylist()))
