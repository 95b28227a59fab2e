"""Takes: rows of many fragments are read together, and open files are cached."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_ops
from lance_ops.core.errors import CorruptFile, InvalidInput
from lance_ops.file import FileReader
from lance_ops.reading import joined_fragments
from lance_ops.reading import take as room
from lance_ops.snapshot import Snapshot
from lance_ops.snapshot.caches import OpenFiles, open_file_cache
from lance_ops.table.manifest.file_locations import ObjectLocation

ROWS = 1200
FRAGMENTS = 12


def table() -> pa.Table:
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1 << 40, ROWS)
    lists = [None if at % 13 == 0 else list(range(at % 5)) for at in range(ROWS)]
    return pa.table(
        {
            "id": np.arange(ROWS),
            "number": pa.array(numbers, mask=rng.random(ROWS) < 0.1),
            "text": [f"row {number}" for number in numbers.tolist()],
            "list": pa.array(lists, pa.list_(pa.int32())),
            "struct": [{"a": at, "b": str(at % 7)} for at in range(ROWS)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=ROWS * 4), pa.float32()), 4),
            "same": pa.array(["one"] * ROWS),
            "matrix": pa.FixedSizeListArray.from_arrays(
                pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=ROWS * 6), pa.float32()), 3), 2
            ),
        }
    )


def dataset(uri: str, rows: pa.Table, **options: object) -> lance_ops.LanceDataset:
    made: lance_ops.LanceDataset = lance_ops.write_dataset(
        rows,
        uri,
        max_rows_per_file=ROWS // FRAGMENTS,
        **options,  # type: ignore[arg-type]  # as they come
    )
    return made


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_rows_of_many_fragments_are_taken_together_in_the_given_order(
    dataset_uri: str, joined: list[int], version: str
) -> None:
    rows = table()
    taken_of = dataset(dataset_uri, rows, data_storage_version=version)
    positions = np.random.default_rng(1).integers(0, ROWS, 90)
    for _ in range(2):
        assert taken_of.take(positions.tolist()).combine_chunks() == rows.take(positions).combine_chunks()
    assert joined == [FRAGMENTS] * 2
    some = taken_of.take(positions.tolist(), columns=["vector", "id"])
    assert some.combine_chunks() == rows.select(["vector", "id"]).take(positions).combine_chunks()


@pytest.mark.parametrize("stable", [False, True])
def test_rows_taken_together_have_their_row_columns(dataset_uri: str, joined: list[int], stable: bool) -> None:
    rows = table().select(["id"])
    taken_of = dataset(dataset_uri, rows, enable_stable_row_ids=stable)
    taken_of.delete("id % 10 = 3")
    scanned = taken_of.to_table(with_row_id=True, with_row_address=True)
    wanted = scanned.take(np.random.default_rng(2).integers(0, scanned.num_rows, 40))
    columns = ["id", "_rowid", "_rowaddr"]
    taken = taken_of._take_rows(wanted["_rowid"].to_pylist(), columns=columns)
    assert taken.combine_chunks().select(columns) == wanted.combine_chunks().select(columns)
    assert joined == [len(pc.unique(pc.divide(wanted["id"], ROWS // FRAGMENTS)))]


@pytest.mark.parametrize("version", ["0.1", "2.0"])
def test_older_file_versions_are_taken_separately(dataset_uri: str, joined: list[int], version: str) -> None:
    rows = table().select(["id", "text"])
    taken_of = dataset(dataset_uri, rows, data_storage_version=version)
    assert taken_of.take([1100, 3, 500])["id"].to_pylist() == [1100, 3, 500]
    assert joined == []


@pytest.mark.parametrize("versions", [("2.0", "2.2"), ("2.2", "2.0")])
def test_files_of_mixed_versions_are_taken_separately(
    dataset_uri: str, joined: list[int], versions: tuple[str, str]
) -> None:
    rows = table().select(["id"])
    dataset(dataset_uri, rows, data_storage_version=versions[0])
    grown = lance_ops.write_dataset(rows, dataset_uri, mode="append", data_storage_version=versions[1])
    assert grown.take([3, 5, ROWS + 7])["id"].to_pylist() == [3, 5, 7]
    assert joined == []


def test_fragments_of_several_files_and_dictionaries_are_taken_separately(dataset_uri: str, joined: list[int]) -> None:
    rows = table().select(["id"]).append_column("kind", pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode())
    taken_of = dataset(dataset_uri, rows)
    assert taken_of.take([1100, 3])["kind"].to_pylist() == ["a", "b"]
    assert joined == []
    taken_of.add_columns({"more": "id * 2"})
    assert taken_of.take([1100, 3], columns=["id", "more"]).to_pydict() == {"id": [1100, 3], "more": [2200, 6]}
    assert joined == []
    assert taken_of.take([1100, 3], columns=["more"]).to_pydict() == {"more": [2200, 6]}
    assert joined == [2]


def test_many_rows_of_one_fragment_are_taken_separately(
    dataset_uri: str, joined: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_MAX_JOINED_ROWS", 5)
    taken_of = dataset(dataset_uri, table())
    assert taken_of.take([0, 1, 2, 3, 4, 600])["id"].to_pylist() == [0, 1, 2, 3, 4, 600]
    assert joined == [2]
    assert taken_of.take([0, 1, 2, 3, 4, 5, 600])["id"].to_pylist() == [0, 1, 2, 3, 4, 5, 600]
    assert joined == [2]


def test_a_corrupt_file_among_files_taken_together_is_named(dataset_uri: str) -> None:
    taken_of = dataset(dataset_uri, table().select(["text"]))
    place = Path(dataset_uri) / "data" / taken_of.snapshot.fragments[7].files[0].path
    data = bytearray(place.read_bytes())
    data[:1024] = bytes([0xFF]) * 1024
    place.write_bytes(data)
    with pytest.raises(CorruptFile, match=place.name):
        lance_ops.dataset(dataset_uri).take([5, 100 * 7 + 1, 1100])


def test_files_that_are_taken_from_again_are_opened_once(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_fragments, "WHOLE_FILE_BYTES", 0)
    rows = pa.table({"id": np.arange(300)})
    taken_of = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=1)
    opened: list[str] = []
    open_file = FileReader.__init__

    def counted(self: FileReader, *arguments: object, **options: object) -> None:
        open_file(self, *arguments, **options)  # type: ignore[arg-type]  # as they come
        opened.append(self.path)

    monkeypatch.setattr(FileReader, "__init__", counted)
    for times in range(4):
        assert taken_of.take(list(range(300)))["id"].to_pylist() == list(range(300))
        assert len(opened) == len(set(opened)) == (0 if times == 0 else 300)
    assert taken_of.take([299, 0])["id"].to_pylist() == [299, 0]
    assert len(opened) == 300

    forgetful = lance_ops.dataset(dataset_uri, metadata_cache_size_bytes=10 * 64 << 10)
    opened.clear()
    for _ in range(3):
        assert forgetful.take(list(range(300)))["id"].to_pylist() == list(range(300))
    assert len(opened) == 600
    with pytest.raises(InvalidInput, match="metadata_cache_size_bytes must not be negative"):
        lance_ops.dataset(dataset_uri, metadata_cache_size_bytes=-1)


def test_short_files_are_not_opened_one_by_one(dataset_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_of = lance_ops.write_dataset(pa.table({"id": np.arange(300)}), dataset_uri, max_rows_per_file=1)
    monkeypatch.setattr(FileReader, "__init__", None)  # which cannot be called
    for _ in range(3):
        assert taken_of.take(list(range(300)))["id"].to_pylist() == list(range(300))


def test_names_of_files_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_file_cache, "_MAX_NAMES", 2)
    files = OpenFiles(0)
    assert [files.are_read_again(names) for names in ("a", "a", "ab", "ba", "c", "c", "abc")] == [
        False, True, False, True, False, False, False
    ]  # fmt: skip


def test_the_least_recently_read_files_are_evicted_above_the_capacity(dataset_uri: str) -> None:
    snapshot = lance_ops.write_dataset(pa.table({"id": np.arange(6)}), dataset_uri, max_rows_per_file=1).snapshot
    places = [ObjectLocation(snapshot.store, path) for fragment in snapshot.fragments for path in fragment.data_paths()]
    files = OpenFiles(3 * FileReader(snapshot.store, places[0].path).memory_bytes)
    first, second, third = (files.open(place, 0) for place in places[:3])
    assert files.open(places[0], 0) is first
    files.open(places[3], 0)
    assert files.open(places[2], 0) is third
    assert files.open(places[0], 0) is first
    assert files.open(places[1], 0) is not second
    small = OpenFiles(1)
    assert small.open(places[0], 0) is small.open(places[0], 0)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_positions_among_live_rows_are_found_without_listing_the_live_rows(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    rng = np.random.default_rng(7)
    deleted = np.flatnonzero(rng.random(ROWS) < share)
    made = lance_ops.write_dataset(pa.table({"id": np.arange(ROWS)}), dataset_uri, max_rows_per_file=ROWS // 2)
    made.delete(f"id in ({', '.join(map(str, deleted))})")
    live = np.setdiff1d(np.arange(ROWS), deleted)
    reopened = lance_ops.dataset(dataset_uri)

    def listed(*_: object) -> None:
        raise AssertionError("all live rows were listed")

    monkeypatch.setattr(Snapshot, "live_offsets", listed)
    every = np.arange(len(live))
    positions = np.concatenate([every[::-1], every])
    assert reopened.take(positions.tolist())["id"].to_pylist() == live[positions].tolist()
    for offset in {0, 1, len(live) // 2, len(live) - 3}:
        assert reopened.to_table(offset=offset, limit=3)["id"].to_pylist() == live[offset : offset + 3].tolist()
    first, *_ = reopened.get_fragments()
    rows = (live < ROWS // 2).sum()
    assert first.take(list(range(rows)))["id"].to_pylist() == live[:rows].tolist()
    with pytest.raises(InvalidInput, match=f"has {rows} rows"):
        first.take([int(rows)])
