"""page_lookup is decoded once in a process while its bytes stay as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import CorruptFile
from lance_ops.indices.btree import lookup_file as room
from lance_ops.indices.btree.layout import PAGE_LOOKUP
from lance_ops.indices.btree.lookup_file import LookupFile, LookupFileCache

ROWS = 20_000


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the root of each page_lookup that is decoded; the process remembers none at first."""
    room.LOOKUP_FILES.reset()
    roots: list[str] = []
    read = LookupFile.read

    def recorded(store: Any, *arguments: Any) -> LookupFile:
        roots.append(store.uri)
        return read(store, *arguments)

    monkeypatch.setattr(LookupFile, "read", recorded)
    return roots


def indexed(folder: Path, first: int = 0) -> str:
    rows = pa.table({"id": np.random.default_rng(3).permutation(ROWS) + first, "v": np.arange(ROWS)})
    dataset = lance_ops.write_dataset(rows, str(folder), max_rows_per_file=ROWS // 2)
    dataset.create_scalar_index("id", "BTREE")
    return str(folder)


def find(uri: str, key: int) -> list[int]:
    found: list[int] = lance_ops.dataset(uri).to_table(columns=["id"], filter=f"id = {key}")["id"].to_pylist()
    return found


def test_new_handles_share_the_lookup_of_an_index(tmp_path: Path, decoded: list[str]) -> None:
    uris = [indexed(tmp_path / name, first) for name, first in (("a", 0), ("b", ROWS))]
    for key in (5, 17, ROWS - 1):
        assert [find(uris[0], key), find(uris[1], key)] == [[key], []]
        assert [find(uris[0], ROWS + key), find(uris[1], ROWS + key)] == [[], [ROWS + key]]
    assert len(decoded) == len(set(decoded)) == 2


def test_a_lookup_whose_bytes_have_changed_is_decoded_again(tmp_path: Path, decoded: list[str]) -> None:
    uri = indexed(tmp_path / "a")
    assert find(uri, 5) == [5]
    [path] = (tmp_path / "a").glob(f"_indices/*/{PAGE_LOOKUP}")
    whole = path.read_bytes()
    path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    with pytest.raises(CorruptFile, match=PAGE_LOOKUP):
        find(uri, 5)
    path.write_bytes(whole[:-1])
    with pytest.raises(CorruptFile, match=PAGE_LOOKUP):
        find(uri, 5)
    path.write_bytes(whole)
    assert find(uri, 5) == [5]
    assert len(decoded) == 3


def test_a_long_lookup_is_not_kept(tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    uri = indexed(tmp_path / "a")
    monkeypatch.setattr(room, "_LONGEST_BYTES", 100)
    assert [find(uri, key) for key in (5, 6)] == [[5], [6]]
    assert len(decoded) == 2


def test_the_lookups_used_last_are_kept(tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_ops.indices.btree.index.LOOKUP_FILES", LookupFileCache(capacity=1))
    uris = [indexed(tmp_path / name) for name in ("a", "b")]
    for uri in (uris[0], uris[1], uris[1], uris[0]):
        assert find(uri, 5) == [5]
    assert len(decoded) == 3
