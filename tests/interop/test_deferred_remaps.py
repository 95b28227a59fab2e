"""Indices whose remap the reference deferred, when it compacted, to a fragment-reuse index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import UnsupportedFeature

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

FILTER = "a = 2"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table whose index has row addresses from before a compaction, but covers the fragment that it wrote."""
    made = lance_ops.write_dataset(
        pa.table({"id": range(8), "a": [0, 1, 2, 3] * 2}), tmp_path / "t", max_rows_per_file=2
    )
    made.create_scalar_index("a", "BTREE", name="i")
    lance.dataset(made.uri).optimize.compact_files(defer_index_remap=True)
    lance.dataset(made.uri).delete("id = 0")  # this commit records that the new fragment is covered
    metadata = {index.name: index for index in lance_ops.dataset(made.uri).snapshot.manifest.indices}
    assert metadata.keys() == {"i", "__lance_frag_reuse"}
    assert metadata["i"].covers(lance_ops.dataset(made.uri).snapshot.fragments_by_id)
    return made.uri


def found(library: Any, uri: str) -> list[int]:
    dataset = library.dataset(uri)
    ids: list[int] = sorted(dataset.to_table(filter=FILTER).column("id").to_pylist())
    assert dataset.count_rows(FILTER) == len(ids)
    return ids


def uses_the_index(library: Any, uri: str) -> bool:
    return "ScalarIndexQuery" in library.dataset(uri).scanner(filter=FILTER).explain_plan()


def test_rows_that_a_deferred_index_no_longer_finds_are_scanned(uri: str) -> None:
    assert found(lance_ops, uri) == found(lance, uri) == [2, 6]
    assert uses_the_index(lance, uri) and not uses_the_index(lance_ops, uri)
    assert lance_ops.dataset(uri).index_statistics("i")["num_indexed_rows"] == 0


def test_optimizing_rebuilds_a_deferred_index_for_both(uri: str) -> None:
    lance_ops.dataset(uri).optimize.optimize_indices()
    assert lance_ops.dataset(uri).index_statistics("i")["num_indexed_rows"] == 7
    for library in (lance_ops, lance):
        assert found(library, uri) == [2, 6]
        assert uses_the_index(library, uri)


def test_compaction_remaps_a_deferred_index_only_after_it_is_rebuilt(uri: str) -> None:
    lance.write_dataset(pa.table({"id": [8], "a": [2]}), uri, mode="append")
    with pytest.raises(UnsupportedFeature, match="optimize_indices"):
        lance_ops.dataset(uri).optimize.compact_files()
    assert lance_ops.dataset(uri).version == lance.dataset(uri).version == 6

    lance_ops.dataset(uri).optimize.optimize_indices()
    lance_ops.dataset(uri).optimize.compact_files()
    for library in (lance_ops, lance):
        assert found(library, uri) == [2, 6, 8]
        assert uses_the_index(library, uri)


def test_the_reference_loses_rows_when_it_remaps_a_deferred_index(uri: str) -> None:
    lance.write_dataset(pa.table({"id": [8], "a": [2]}), uri, mode="append")
    lance.dataset(uri).optimize.compact_files()
    assert found(lance_ops, uri) == [2, 6, 8]
    assert found(lance, uri) == [8]
