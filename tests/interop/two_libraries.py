"""Shared tables and reads for tests in which one library starts a table and the other continues it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_ops

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")

LIBRARIES = [
    pytest.param(lance_ops, lance, id="ours-then-theirs"),
    pytest.param(lance, lance_ops, id="theirs-then-ours"),
]
"""For `library` and `other`."""


def rows(start: int, stop: int) -> pa.Table:
    """Return rows whose ids are the numbers of a range."""
    return pa.table({"id": range(start, stop), "s": [str(i) for i in range(start, stop)]})


def thinned(library: Any, uri: str) -> Any:
    """Return a table at version 2 with three fragments and the ids 5 to 99; the first fragment has deleted rows."""
    library.write_dataset(rows(0, 100), uri, max_rows_per_file=40)
    dataset = library.dataset(uri)
    dataset.delete("id < 5")
    return dataset


def ids_read_by_both(ours: Any, theirs: Any) -> list[int]:
    """Return the ids that both libraries read, by a scan and through an index if there is one, in order."""
    ours.validate()
    theirs.validate()
    assert ours.version == theirs.version
    found: list[int] = ours.to_table().column("id").to_pylist()  # compaction beside an index may change their order
    assert found == theirs.to_table().column("id").to_pylist()
    assert ours.count_rows("id = 50") == theirs.count_rows("id = 50") == found.count(50)
    return sorted(found)
