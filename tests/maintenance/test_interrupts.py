"""An interrupt at any write of a verb leaves no file that no version names: the table is as it was, or as committed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.maintenance.cleanup import CleanupOptions, explain_cleanup_old_versions
from lance_ops.maintenance.erasure import ErasureOptions, Subject, erase
from lance_ops.maintenance.ingest import IngestBatch, IngestMode, IngestOptions, RawFile, RawReading, ingest
from lance_ops.refs import ERASURES_DIR
from lance_ops.runners import InThreads
from lance_ops.store.local import LocalStore, LocalWriter
from tests.maintenance.conftest import rows

ONE_THREAD = InThreads(1)
WRITES = ((LocalStore, "open_writer"), (LocalStore, "put"), (LocalWriter, "write"), (LocalWriter, "close"))
COMMITS = ((LocalStore, "put_if_absent_with_callbacks"),)
Make: TypeAlias = Callable[..., lance_ops.LanceDataset]
Verb: TypeAlias = Callable[[lance_ops.LanceDataset, Path], None]


def ingest_rows(data: lance_ops.LanceDataset, folder: Path, options: IngestOptions) -> None:
    path = folder / "new.parquet"
    pq.write_table(rows(70, 90), path)
    batch = IngestBatch("new", (RawFile(str(path), path.stat().st_size, "a"),))
    ingest(data.uri, [batch], options=options, runner=ONE_THREAD)


def append(data: lance_ops.LanceDataset, folder: Path) -> None:
    ingest_rows(data, folder, IngestOptions(reading=RawReading(isolated=False)))


def upsert(data: lance_ops.LanceDataset, folder: Path) -> None:
    reading = RawReading(isolated=False)
    ingest_rows(data, folder, IngestOptions(mode=IngestMode.UPSERT, keys=("id",), reading=reading))


def compact(data: lance_ops.LanceDataset, folder: Path) -> None:
    data.optimize.compact_files(runner=ONE_THREAD)


def add_columns(data: lance_ops.LanceDataset, folder: Path) -> None:
    data.add_columns({"twice": "id * 2"}, runner=ONE_THREAD)


def merge(data: lance_ops.LanceDataset, folder: Path) -> None:
    data.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(70, 90))


def update(data: lance_ops.LanceDataset, folder: Path) -> None:
    data.update({"text": "'new'"}, "id < 30")


def delete(data: lance_ops.LanceDataset, folder: Path) -> None:
    data.delete("id < 30")


def erase_a_row(data: lance_ops.LanceDataset, folder: Path) -> None:
    erase(data.snapshot, Subject("id = 7"), ErasureOptions("request 12"), ONE_THREAD)


VERBS = (append, upsert, compact, add_columns, merge, update, delete, erase_a_row)


@contextmanager
def interrupted_at(call: int, methods: Sequence[tuple[type[Any], str]], *, after: bool = False) -> Iterator[None]:
    """Raise `KeyboardInterrupt` at a call of these methods, counted from 1: before it is done, or after."""
    num_calls = 0

    def interrupting(method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            nonlocal num_calls
            num_calls += 1
            if num_calls != call:
                return method(*given, **named)
            if after:
                method(*given, **named)
            raise KeyboardInterrupt

        return called

    with pytest.MonkeyPatch.context() as patched:
        for owner, name in methods:
            patched.setattr(owner, name, interrupting(getattr(owner, name)))
        yield


def interrupted_tables(
    verb: Verb, template: lance_ops.LanceDataset, folder: Path, methods: Sequence[tuple[type[Any], str]], *, after: bool
) -> Iterator[lance_ops.LanceDataset]:
    """Interrupt the verb at each call of these methods, on a new copy of the table; yield the copies afterwards."""
    for call in count(1):
        root = folder / f"{call}.lance"
        shutil.copytree(template.uri, root)
        try:
            with interrupted_at(call, methods, after=after):
                verb(lance_ops.dataset(str(root)), folder)
        except KeyboardInterrupt:
            yield lance_ops.dataset(str(root))
        else:
            return


def counted_by_clean_up(data: lance_ops.LanceDataset) -> set[str]:
    """Return the files that no version names."""
    everything = CleanupOptions(versions=(), delete_unverified=True)
    return set(explain_cleanup_old_versions(data.snapshot, everything, include_files=True).candidate_files)


def files_of(data: lance_ops.LanceDataset) -> set[str]:
    """Return every file beneath the root, also those that a store began to write."""
    return {info.path for info in chain(data.snapshot.store.list(), data.snapshot.store.list_temporary())}


@pytest.mark.parametrize("verb", VERBS)
def test_an_interrupt_at_any_write_leaves_no_file_without_a_version(verb: Verb, make: Make, tmp_path: Path) -> None:
    template, num_interrupts = make(4), 0
    for data in interrupted_tables(verb, template, tmp_path, WRITES, after=False):
        num_interrupts += 1
        assert counted_by_clean_up(data) == set()
        assert not list(data.snapshot.store.list_temporary())
        if verb is not erase_a_row:  # which commits twice, and keeps its record
            assert files_of(data) == files_of(template)
    assert num_interrupts >= 1


def test_an_interrupt_while_indices_are_remapped_leaves_no_file_without_a_version(make: Make, tmp_path: Path) -> None:
    template, num_interrupts = make(4), 0
    template.create_scalar_index("id", "BTREE")
    for data in interrupted_tables(compact, template, tmp_path, WRITES, after=False):
        num_interrupts += 1
        assert counted_by_clean_up(data) == set()
        assert not list(data.snapshot.store.list_temporary())
        assert data.to_table() == template.to_table()
    assert num_interrupts >= 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("verb", VERBS)
def test_an_interrupt_of_a_commit_leaves_it_whole_or_files_that_clean_up_counts(
    verb: Verb, after: bool, make: Make, tmp_path: Path
) -> None:
    """Whoever interrupts a commit does not know whether the version is there, so no file of it may be removed."""
    template, num_interrupts = make(4), 0
    for data in interrupted_tables(verb, template, tmp_path, COMMITS, after=after):
        num_interrupts += 1
        new = {path for path in files_of(data) - files_of(template) if not path.startswith(ERASURES_DIR)}
        if data.version == template.version:
            assert counted_by_clean_up(data) == new
            assert data.to_table() == template.to_table()
        else:
            assert data.verify().ok
            assert counted_by_clean_up(data) < new
    assert num_interrupts >= 1
