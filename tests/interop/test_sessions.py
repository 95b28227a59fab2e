"""A session's caches are shared by the handles that have it, and bounded by its sizes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import Session
from lance_ops.errors import IndexNotFound, InvalidInput, UnsupportedFeature, WrongType
from lance_ops.file import FileReader
from lance_ops.fragment import write_fragments
from lance_ops.indices.btree.lookup_file import LookupFileCache

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

FRAGMENTS = 10


@pytest.fixture
def uri(tmp_path: Any) -> str:
    """Return a table of ten fragments with an index on `a`, in two versions."""
    table = pa.table({"a": range(1000), "b": range(1000)})
    made = lance_ops.write_dataset(table, tmp_path / "t", max_rows_per_file=1000 // FRAGMENTS)
    made.create_scalar_index("a", "BTREE")
    return made.uri


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which each opened file adds its name; each index that is opened reads its page_lookup."""
    monkeypatch.setattr("lance_ops.indices.btree.index.LOOKUP_FILES", LookupFileCache(capacity=0))
    paths: list[str] = []
    open_file = FileReader.__init__

    def counted(self: FileReader, *arguments: object, **options: object) -> None:
        open_file(self, *arguments, **options)  # type: ignore[arg-type]  # as they come
        paths.append(self.path)

    monkeypatch.setattr(FileReader, "__init__", counted)
    return paths


def indices(opened: list[str]) -> list[str]:
    return [path for path in opened if path.endswith("/page_lookup.lance")]


def data_files(opened: list[str]) -> list[str]:
    return [path for path in opened if "/t/data/" in path]


Reads = Callable[[lance_ops.LanceDataset], Any]
READS: dict[str, Reads] = {
    "takes": lambda dataset: pa.concat_tables([dataset.take([row]) for row in range(0, 1000, 50)]),
    "a scan with a limit": lambda dataset: dataset.to_table(limit=1000),
}
"""Reads that open files one by one. Scans and takes of many small files read them together, and keep none open."""


@pytest.mark.parametrize("read", READS)
def test_handles_of_one_session_open_each_data_file_once(uri: str, opened: list[str], read: str) -> None:
    session = Session()
    first = lance_ops.dataset(uri, session=session)
    found = READS[read](first)
    assert len(data_files(opened)) == len(set(data_files(opened))) == FRAGMENTS
    assert READS[read](lance_ops.dataset(uri, session=session)).equals(found)
    assert READS[read](first.checkout_version(1)).equals(found)
    assert len(data_files(opened)) == FRAGMENTS
    assert READS[read](lance_ops.dataset(uri)).equals(found)
    assert len(data_files(opened)) == 2 * FRAGMENTS


def test_handles_of_one_session_open_an_index_once(uri: str, opened: list[str]) -> None:
    session = Session()
    for _ in range(3):
        assert lance_ops.dataset(uri, session=session).to_table(filter="a = 5")["b"].to_pylist() == [5]
    assert len(indices(opened)) == 1
    assert session.index_cache_size_bytes() > 0
    assert lance_ops.dataset(uri).to_table(filter="a = 5").num_rows == 1
    assert len(indices(opened)) == 2


def test_an_index_of_which_a_later_version_uses_less_is_opened_again(uri: str) -> None:
    session = Session()
    before = lance_ops.dataset(uri, session=session)
    assert before.to_table(filter="a = 5").num_rows == 1
    lance_ops.dataset(uri).update({"a": "5"}, "a = 950")
    for dataset, rows in ((lance_ops.dataset(uri, session=session), [5, 950]), (before, [5])):
        assert sorted(dataset.to_table(filter="a = 5")["b"].to_pylist()) == rows
        assert dataset.to_table(filter="a = 950").num_rows == (len(rows) == 1)


def test_a_prewarmed_index_is_not_opened_by_the_first_query(uri: str, opened: list[str]) -> None:
    dataset = lance_ops.dataset(uri)
    (segment,) = dataset.snapshot.manifest.indices
    for names in (None, [segment.uuid], [str(segment.uuid)]):
        dataset.prewarm_index("a_idx", index_segments=names)
    assert dataset.session().index_cache_size_bytes() > 0
    assert dataset.to_table(filter="a = 5").num_rows == 1
    assert len(indices(opened)) == 1
    lance.dataset(uri).prewarm_index("a_idx")
    wrong: list[tuple[str, dict[str, Any], type[Exception]]] = [
        ("other", {}, IndexNotFound),
        ("a_idx", {"index_segments": ["x"]}, InvalidInput),
        ("a_idx", {"index_segments": [UUID(int=1)]}, InvalidInput),
        ("a_idx", {"with_position": True}, UnsupportedFeature),
    ]
    for name, options, error in wrong:
        with pytest.raises(error):
            dataset.prewarm_index(name, **options)


@pytest.mark.parametrize(("size_bytes", "loads"), [(0, 3), (None, 1)])
def test_the_index_cache_is_bounded(uri: str, opened: list[str], size_bytes: int | None, loads: int) -> None:
    dataset = lance_ops.dataset(uri, index_cache_size_bytes=size_bytes)
    for _ in range(3):
        assert dataset.to_table(filter="a = 5").num_rows == 1
    assert len(indices(opened)) == loads
    assert (dataset.session().index_cache_size_bytes() == 0) == (size_bytes == 0)


def test_two_indices_compete_for_the_bound(uri: str, opened: list[str]) -> None:
    lance_ops.dataset(uri).create_scalar_index("b", "BTREE")
    opened.clear()
    probe = lance_ops.dataset(uri)
    probe.to_table(filter="a = 5")
    room_for_one = probe.session().index_cache_size_bytes() * 3 // 2
    opened.clear()
    narrow = lance_ops.dataset(uri, index_cache_size_bytes=room_for_one)
    for column in ("a", "b", "b", "a"):
        assert narrow.to_table(filter=f"{column} = 5").num_rows == 1
        assert 0 < narrow.session().index_cache_size_bytes() <= room_for_one
    assert len(indices(opened)) == 3


def test_the_metadata_cache_is_bounded(uri: str) -> None:
    wide, narrow = Session(), Session(metadata_cache_size_bytes=1)
    for session in (wide, narrow):
        lance_ops.dataset(uri, session=session).to_table(limit=1000)
    one_file = narrow.size_bytes()
    assert one_file > 0 and wide.size_bytes() == FRAGMENTS * one_file
    assert repr(narrow) == f"Session(index_cache_size_bytes=0, metadata_cache_size_bytes={one_file})"


@pytest.mark.parametrize("library", [lance_ops, lance])
def test_what_one_handle_makes_has_its_session(uri: str, library: Any) -> None:
    session = library.Session()
    dataset = library.dataset(uri, session=session)
    assert session.size_bytes() >= 0 and session.index_cache_size_bytes() >= 0
    assert dataset.session().is_same_as(session) and not dataset.session().is_same_as(library.Session())
    dataset.tags.create("first", 1)
    dataset.create_branch("work")
    for reference in (1, "first", ("work", None)):
        assert dataset.checkout_version(reference).session().is_same_as(session)
    assert not library.dataset(uri).session().is_same_as(library.dataset(uri).session())
    assert library.LanceDataset(uri, session=session).session().is_same_as(session)
    assert library.dataset(uri, session=session, index_cache_size_bytes=5).session().is_same_as(session)
    more = pa.table({"a": [1], "b": [1]})
    assert library.write_dataset(more, dataset, mode="append").session().is_same_as(session)
    dataset.checkout_latest()
    assert dataset.session().is_same_as(session)
    assert library.write_dataset(more, f"{uri}2", session=session).session().is_same_as(session)
    with pytest.raises(TypeError):
        pickle.dumps(session)


def test_a_pickled_handle_begins_a_session(uri: str) -> None:
    dataset = lance_ops.dataset(uri)
    again = pickle.loads(pickle.dumps(dataset))
    assert again.to_table().equals(dataset.to_table()) and not again.session().is_same_as(dataset.session())


def test_a_commit_keeps_the_session(uri: str, opened: list[str]) -> None:
    dataset = lance_ops.dataset(uri)
    session = dataset.session()
    dataset.to_table()
    opened.clear()
    dataset.delete("a = 3")
    assert dataset.to_table().num_rows == 999 and dataset.session().is_same_as(session)
    assert data_files(opened) == []


def test_fragments_are_written_with_a_session_too(uri: str) -> None:
    rows, session = pa.table({"a": [1], "b": [1]}), Session()
    made = write_fragments(rows, uri, session=session)
    assert isinstance(made, list) and len(made) == 1
    assert lance_ops.LanceFragment.create(uri, rows, session=session).physical_rows == 1


def test_sizes_and_backends_that_cannot_be_are_refused(uri: str) -> None:
    for sizes in ((-1,), (None, -1)):
        with pytest.raises(InvalidInput, match="must not be negative"):
            Session(*sizes)
    with pytest.raises(WrongType, match="index_cache_size_bytes"):
        Session("1 GiB")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeature, match="backend"):
        Session(index_cache_backend="moka://?capacity=5")
    with pytest.raises(WrongType, match="session"):
        lance_ops.dataset(uri, session=3)  # type: ignore[arg-type]
