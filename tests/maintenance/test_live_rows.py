"""Live rows that a compaction reads: in order, small files together, deleted rows never."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import Schema
from lance_ops.errors import CorruptFile, ReadTooLarge
from lance_ops.file import Budget
from lance_ops.file.several_files import FileRows
from lance_ops.maintenance.compaction import live_rows as room
from lance_ops.maintenance.compaction.live_rows import live_rows
from lance_ops.reading import joined_fragments

Make = Callable[..., lance_ops.LanceDataset]


def read(dataset: lance_ops.LanceDataset) -> pa.Table:
    return pa.concat_tables(live_rows(dataset.snapshot, dataset.snapshot.fragments)).combine_chunks()


def test_small_files_are_read_together_without_deleted_rows(make: Make, joined: list[int]) -> None:
    dataset = make()
    dataset.delete("id % 3 = 0 or id between 40 and 59")
    dataset = lance_ops.dataset(dataset.uri)
    assert len(dataset.snapshot.fragments) == 4
    assert read(dataset).equals(dataset.to_table().combine_chunks())
    assert joined == [4]
    before = dataset.to_table()
    dataset.optimize.compact_files()
    assert joined == [4, 4]
    assert dataset.to_table() == before


def test_files_are_read_together_up_to_a_size(make: Make, joined: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make()
    size = dataset.snapshot.fragments[0].files[0].file_size_bytes
    monkeypatch.setattr(room, "_JOINED_BYTES", 2 * size - 50)
    assert read(dataset).equals(dataset.to_table().combine_chunks())
    assert sorted(joined) == [1, 2, 2]  # the groups are read in several threads
    monkeypatch.setattr(room, "_SMALL_BYTES", 10)
    assert read(dataset).equals(dataset.to_table().combine_chunks())
    assert sorted(joined) == [1, 2, 2]  # the groups are read in several threads


def test_fragments_of_several_files_are_read_separately_in_order(make: Make, joined: list[int]) -> None:
    dataset = make(num_fragments=2)
    dataset.add_columns({"more": "id * 2"})
    lance_ops.write_dataset(dataset.to_table(), dataset.uri, mode="append", max_rows_per_file=7)
    dataset = lance_ops.dataset(dataset.uri)
    assert read(dataset).equals(dataset.to_table().combine_chunks())
    assert joined == [len(dataset.snapshot.fragments) - 2]


def test_a_column_missing_in_a_file_is_null(make: Make, joined: list[int]) -> None:
    dataset = make()
    dataset.add_columns(pa.schema({"nothing": pa.string()}))
    dataset = lance_ops.dataset(dataset.uri)
    assert read(dataset).equals(dataset.to_table().combine_chunks())
    assert joined == []


def test_files_too_large_for_one_read_are_read_separately(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(files: Sequence[FileRows], schema: Schema, budget: Budget | None = None) -> pa.Table:
        raise ReadTooLarge("too much")

    monkeypatch.setattr(joined_fragments, "read_files_together", refusing)
    dataset = make()
    assert read(dataset).equals(dataset.to_table().combine_chunks())


def test_a_corrupt_file_among_files_read_together_is_named(make: Make) -> None:
    dataset = make()
    place = Path(dataset.uri) / "data" / dataset.snapshot.fragments[2].files[0].path
    data = bytearray(place.read_bytes())
    data[:64] = bytes([0xFF]) * 64
    place.write_bytes(data)
    with pytest.raises(CorruptFile, match=place.name):
        dataset.optimize.compact_files()
    assert dataset.version == lance_ops.dataset(dataset.uri).version
