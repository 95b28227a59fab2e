"""`commit_lock` is held around the same commits as in the reference, and conflicts have the reference's error."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.commit import CommitConflictError
from lance_ops.errors import (
    CommitStateUnknown,
    IncompatibleTransaction,
    RetryableConflict,
    TooManyConcurrentWriters,
    WriteRefused,
    WrongType,
)

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

THEIR_CONFLICT = import_module("lance.commit").CommitConflictError
LIBRARIES = [lance_ops, lance]
ROWS = pa.table({"id": range(4)})


class Lock:
    """A lock that records the versions that it was held for."""

    def __init__(self) -> None:
        self.held: list[int] = []
        self.open = 0

    @contextmanager
    def __call__(self, version: int) -> Iterator[None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1
            self.held.append(version)


def fragment(library: Any, uri: str) -> Any:
    rows = library.dataset(uri).to_table()
    return library.LanceOperation.Append([library.LanceFragment.create(uri, rows)])


def upsert(library: Any, dataset: Any, uri: str) -> None:
    dataset.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [2]}))


VERBS: dict[str, Callable[[Any, Any, str], Any]] = {
    "delete": lambda library, dataset, uri: dataset.delete("id = 1"),
    "update": lambda library, dataset, uri: dataset.update({"id": "id + 10"}, "id = 1"),
    "insert": lambda library, dataset, uri: dataset.insert(ROWS),
    "write_dataset to a handle": lambda library, dataset, uri: library.write_dataset(ROWS, dataset, mode="append"),
    "merge_insert": upsert,
    "commit to a handle": lambda library, dataset, uri: library.LanceDataset.commit(
        dataset, fragment(library, uri), read_version=dataset.version
    ),
    "add_columns": lambda library, dataset, uri: dataset.add_columns({"x": "id + 1"}),
    "alter_columns": lambda library, dataset, uri: dataset.alter_columns({"path": "id", "name": "key"}),
    "drop_columns": lambda library, dataset, uri: dataset.drop_columns(["v"]),
    "update_config": lambda library, dataset, uri: dataset.update_config({"a": "b"}),
    "restore": lambda library, dataset, uri: dataset.checkout_version(1).restore(),
    "compact_files": lambda library, dataset, uri: dataset.optimize.compact_files(),
    "create_scalar_index": lambda library, dataset, uri: dataset.create_scalar_index("id", "BTREE"),
    "a tag": lambda library, dataset, uri: dataset.tags.create("t", 1),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_handle_s_commits_hold_its_lock_as_in_the_reference(tmp_path: Path, verb: str) -> None:
    held = []
    for library in LIBRARIES:
        uri, lock = str(tmp_path / library.__name__), Lock()
        library.write_dataset(ROWS.append_column("v", ROWS["id"]), uri, max_rows_per_file=2)
        VERBS[verb](library, library.dataset(uri, commit_lock=lock), uri)
        held.append((lock.held, lock.open, library.dataset(uri).version))
    assert held[0] == held[1]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_lock_given_to_one_write_is_held_for_its_version(tmp_path: Path, library: Any) -> None:
    uri, lock = str(tmp_path / "table"), Lock()
    library.write_dataset(ROWS, uri, commit_lock=lock)
    library.write_dataset(ROWS, uri, mode="append", commit_lock=lock)
    library.LanceDataset.commit(uri, fragment(library, uri), read_version=2, commit_lock=lock)
    pending = library.Transaction(3, fragment(library, uri))
    library.LanceDataset.commit_batch(uri, [pending], commit_lock=lock)
    assert lock.held == [1, 2, 3, 4]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_pickled_handle_commits_without_the_lock(tmp_path: Path, library: Any) -> None:
    uri, lock = library.write_dataset(ROWS, str(tmp_path / "table")).uri, Lock()
    pickle.loads(pickle.dumps(library.dataset(uri, commit_lock=lock))).delete("id = 1")
    assert lock.held == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_lock_that_is_no_function_is_a_type_error(tmp_path: Path, library: Any) -> None:
    with pytest.raises(TypeError, match="commit_lock"):
        library.write_dataset(ROWS, str(tmp_path / "table"), commit_lock=3)
    uri = library.write_dataset(ROWS, str(tmp_path / "table")).uri
    with pytest.raises(TypeError, match="commit_lock"):
        library.LanceDataset.commit(uri, library.LanceOperation.Restore(1), commit_lock="x")
    assert issubclass(WrongType, TypeError)


@pytest.mark.parametrize("error", [CommitConflictError("busy"), THEIR_CONFLICT("busy"), KeyError("x")])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_lock_that_cannot_be_acquired_fails_the_write_and_leaves_the_table(
    tmp_path: Path, library: Any, error: Exception
) -> None:
    def lock(version: int) -> Any:
        raise error

    uri = library.write_dataset(ROWS, str(tmp_path / "table")).uri
    files = set(tmp_path.rglob("*"))
    with pytest.raises(OSError, match=r"busy|'x'") as raised:
        library.write_dataset(ROWS, uri, mode="append", commit_lock=lock)
    assert library.dataset(uri).version == 1
    if library is lance_ops:
        assert isinstance(raised.value, WriteRefused if isinstance(error, KeyError) else RetryableConflict)
        assert set(tmp_path.rglob("*")) == files


def test_a_busy_lock_is_tried_again_by_verbs_that_plan_again(tmp_path: Path) -> None:
    attempts = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        attempts.append(version)
        if len(attempts) < 3:
            raise CommitConflictError("busy")
        yield

    dataset = lance_ops.write_dataset(ROWS, tmp_path / "table")
    dataset = lance_ops.dataset(dataset.uri, commit_lock=lock)
    assert dataset.delete("id = 1") == {"num_deleted_rows": 1}
    assert attempts == [2, 2, 2] and dataset.version == 2
    dataset.validate()


def test_a_lock_that_is_not_released_leaves_the_files_of_the_version(tmp_path: Path) -> None:
    @contextmanager
    def lock(version: int) -> Iterator[None]:
        yield
        raise RuntimeError("stuck")

    uri = lance_ops.write_dataset(ROWS, tmp_path / "table").uri
    with pytest.raises(CommitStateUnknown, match="stuck") as raised:
        lance_ops.write_dataset(ROWS, uri, mode="append", commit_lock=lock)
    dataset = lance_ops.dataset(uri)
    assert dataset.resolve(raised.value.uuid) == dataset.version == 2 and dataset.count_rows() == 8
    dataset.validate()


def delete_twice(library: Any, uri: str) -> None:
    pending = [library.dataset(uri).get_fragments()[0].delete("id = 1") for _ in range(2)]
    for updated in pending:
        library.LanceDataset.commit(uri, library.LanceOperation.Delete([updated], [], "id = 1"), read_version=1)


def delete_from_replaced(library: Any, uri: str) -> None:
    library.write_dataset(ROWS, uri, mode="overwrite")
    library.LanceDataset.commit(uri, library.LanceOperation.Delete([], [0], "true"), read_version=1)


@pytest.mark.parametrize(
    ("conflict", "retryable", "error"),
    [(delete_twice, True, RetryableConflict), (delete_from_replaced, False, IncompatibleTransaction)],
)
def test_a_conflict_is_the_reference_s_error_and_says_whether_to_retry(
    tmp_path: Path, conflict: Callable[[Any, str], None], retryable: bool, error: type[Exception]
) -> None:
    for library, kind in ((lance_ops, CommitConflictError), (lance, THEIR_CONFLICT)):
        uri = library.write_dataset(ROWS, str(tmp_path / library.__name__)).uri
        with pytest.raises(kind) as raised:
            conflict(library, uri)
        assert raised.value.retryable is retryable and isinstance(raised.value, OSError)
        copy = pickle.loads(pickle.dumps(raised.value))
        assert (copy.retryable, str(copy)) == (retryable, str(raised.value))
        assert library is lance or isinstance(raised.value, error)


def test_every_error_of_a_conflict_is_made_as_the_reference_s_is() -> None:
    for ours in (CommitConflictError, RetryableConflict, IncompatibleTransaction, TooManyConcurrentWriters):
        for arguments in ((), ("text",), ("text", False), ("text", True)):
            mine, other = ours(*arguments), THEIR_CONFLICT(*arguments)
            assert str(mine) == str(other)
            assert ours is IncompatibleTransaction or mine.retryable == other.retryable
