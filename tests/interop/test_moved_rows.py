"""`remap_row_addrs` finds rows after compactions that deferred the index remap."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop


def test_row_addresses_are_remapped_over_compactions_that_deferred_the_index_remap(tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    theirs = lance.write_dataset(pa.table({"k": range(40)}), uri, max_rows_per_file=10)
    addresses = [(fragment << 32) + row for fragment in (0, 1, 3, 4, 9) for row in range(0, 10, 3)]
    asked = pa.array([*addresses, None], pa.uint64())
    assert lance_ops.dataset(uri).remap_row_addrs(asked) is theirs.remap_row_addrs(asked) is None
    theirs.delete("k IN (3, 12, 30)")
    theirs.create_scalar_index("k", "BTREE")
    for more in (0, 1):
        theirs.optimize.compact_files(defer_index_remap=True, target_rows_per_fragment=1000 * (1 + more))
        ours = lance_ops.dataset(uri).remap_row_addrs(asked)
        assert ours is not None and ours.equals(theirs.remap_row_addrs(asked)) and ours.null_count > 1
        theirs.delete("k IN (1, 20)")
        theirs = lance.write_dataset(pa.table({"k": range(60, 80)}), uri, mode="append", max_rows_per_file=5)
    for wrong in (pa.array([0, 1]), [0], pa.chunked_array([asked])):
        with pytest.raises(InvalidInput, match="uint64|addrs must be Array"):
            lance_ops.dataset(uri).remap_row_addrs(wrong)
