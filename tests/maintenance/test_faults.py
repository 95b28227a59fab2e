"""Fail every verb at every store call: rows are neither lost nor doubled, and no files are left behind."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_ops
from lance_ops.core.file_names import TRANSACTIONS_DIR
from lance_ops.errors import CommitStateUnknown, LanceOpsError, StoreError
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from lance_ops.maintenance.health import index_coverage
from lance_ops.refs.version_pins import PINS_DIR
from lance_ops.runners import InThreads
from lance_ops.store import MemoryStore, Store
from lance_ops.store.faulty import Fault, FaultyStore, SimulatedCrash, When
from tests.maintenance.conftest import rows

Verb = Callable[[str], None]
Rows = list[int]

OWN_FOLDERS = ("data", "_deletions", "_indices")
WRITES = {"put", "put_hint", "put_if_absent", "open_writer", "write", "close", "delete", "make_durable", "copy"}
BEFORE = list(range(12))
KEPT = 2
"""The version that has a tag, which reads files of its own."""


def append(uri: str) -> None:
    lance_ops.write_dataset(rows(12, 20), uri, mode="append", max_rows_per_file=5)


def delete(uri: str) -> None:
    lance_ops.dataset(uri).delete("id >= 2 AND id < 10", runner=InThreads(1), conflict_retries=0)


def update(uri: str) -> None:
    lance_ops.dataset(uri).update({"id": "id + 100"}, "id > 5", conflict_retries=0, runner=InThreads(1))


def merge(uri: str) -> None:
    builder = lance_ops.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder = builder.when_not_matched_by_source_delete("id < 2").conflict_retries(0)
    builder.execute(rows(10, 14), runner=InThreads(1))


def add_columns(uri: str) -> None:
    lance_ops.dataset(uri).add_columns({"doubled": "id * 2"}, runner=InThreads(1))


def compact(uri: str) -> None:
    lance_ops.dataset(uri).optimize.compact_files(num_threads=1)


def index(uri: str) -> None:
    lance_ops.dataset(uri).create_scalar_index("id", "BTREE")


def reindex(uri: str) -> None:
    lance_ops.dataset(uri).optimize.optimize_indices()


def restore(uri: str) -> None:
    lance_ops.dataset(uri, version=KEPT).restore()


def clean_up(uri: str) -> None:
    stats = lance_ops.dataset(uri).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    if stats.failed_deletes:
        raise StoreError(f"{stats.failed_deletes} files could not be deleted")


VERBS: dict[str, tuple[Verb, Rows]] = {
    "append": (append, list(range(20))),
    "delete": (delete, [0, 1, 10, 11]),
    "update": (update, [*range(6), *range(106, 112)]),
    "merge": (merge, list(range(2, 14))),
    "add columns": (add_columns, BEFORE),
    "compact": (compact, BEFORE),
    "index": (index, BEFORE),
    "reindex": (reindex, BEFORE),
    "restore": (restore, list(range(8))),
    "clean up": (clean_up, BEFORE),
}
"""Each verb, and the ids of the rows after it."""


@dataclass(frozen=True)
class State:
    """What a version shows: its rows in the order of `id`, its fragments, and how many of them each index covers."""

    rows: pa.Table
    num_fragments: int
    indexed: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, uri: str) -> State:
        """Return the state of the newest version."""
        dataset = lance_ops.dataset(uri)
        indexed = tuple((each.name, each.num_indexed_fragments) for each in index_coverage(dataset.snapshot))
        return cls(dataset.to_table().sort_by("id"), len(dataset.get_fragments()), indexed)

    @property
    def ids(self) -> Rows:
        ids: Rows = self.rows.column("id").to_pylist()
        return ids


def versions(uri: str) -> list[int]:
    return [version["version"] for version in lance_ops.dataset(uri).versions()]


def write_template(uri: str) -> None:
    """Write a table of three fragments, an index on two of them, a tagged version, and one that clean-up removes.

    No two of these versions read the same data files.
    """
    lance_ops.write_dataset(rows(0, 4), uri)
    dataset = lance_ops.write_dataset(rows(4, 8), uri, mode="append")
    dataset.tags.create("kept", KEPT)
    lance_ops.write_dataset(rows(300, 301), uri, mode="overwrite")
    dataset = lance_ops.write_dataset(rows(0, 8), uri, mode="overwrite", max_rows_per_file=4)
    dataset.create_scalar_index("key", "BTREE")
    lance_ops.write_dataset(rows(8, 12), uri, mode="append")


def check_kept_version(uri: str) -> None:
    """Check that the files of the tagged version are there."""
    assert lance_ops.dataset(uri, version="kept").to_table().column("id").to_pylist() == list(range(8))


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture(scope="module")
def template() -> MemoryStore:
    uri = f"memory://template-{uuid.uuid4().hex}"
    write_template(uri)
    return MemoryStore(uri.removeprefix("memory://"))


def copy_of(template: MemoryStore) -> MemoryStore:
    store = MemoryStore(f"faults-{uuid.uuid4().hex}")
    for info in template.list():
        store.put(info.path, template.get(info.path))
    return store


def own_files(store: Store) -> set[str]:
    return {info.path for folder in OWN_FOLDERS for info in store.list(folder)}


def attempts(
    template: MemoryStore, verb: Verb, monkeypatch: pytest.MonkeyPatch, when: When, *, crash: bool
) -> Iterator[tuple[MemoryStore, FaultyStore, BaseException | None]]:
    """Run the verb once for each store call, which fails; yield the resulting dataset and the error."""
    for step in steps(template, verb, monkeypatch, when):
        plain = copy_of(template)
        faulty = FaultyStore(plain, Fault(call=step, when=when, crash=crash))
        error: BaseException | None = None
        try:
            run_over(faulty, verb, monkeypatch)
        except (LanceOpsError, SimulatedCrash) as raised:
            error = raised
        yield plain, faulty, error


def steps(template: MemoryStore, verb: Verb, monkeypatch: pytest.MonkeyPatch, when: When) -> list[int]:
    """Return the numbers of the calls at which a fault of this kind has an effect."""
    watched = FaultyStore(copy_of(template))
    run_over(watched, verb, monkeypatch)
    calls = enumerate(watched.calls, 1)
    return [step for step, call in calls if when is When.BEFORE or call.operation in WRITES]


def run_over(store: FaultyStore, verb: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("lance_ops.committers.opening.open_store", lambda uri, options: store)
        verb(store.uri)


def check_nothing_stray(uri: str, store: MemoryStore) -> None:
    dataset = lance_ops.dataset(uri)
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False)
    named = NamedFiles(uri)
    for version in dataset.versions():
        named.add(dataset.checkout_version(version["version"]).snapshot.manifest)
    left = [info.path for folder in (*OWN_FOLDERS, TRANSACTIONS_DIR, PINS_DIR) for info in store.list(folder)]
    assert [path for path in left if path not in named] == [] and list(store.list_temporary()) == []


def check_next_writer_succeeds(uri: str) -> None:
    before = lance_ops.dataset(uri)
    after = lance_ops.write_dataset(rows(200, 201), uri, mode="append")
    assert (after.version, after.count_rows()) == (before.version + 1, before.count_rows() + 1)


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize(
    ("when", "crash"),
    [(when, False) for when in When] + [(When.BEFORE, True), (When.AFTER, True)],
    ids=lambda value: value.value if isinstance(value, When) else "crash" * value,
)
def test_a_verb_that_fails_at_any_step_leaves_all_or_nothing(
    template: MemoryStore, monkeypatch: pytest.MonkeyPatch, name: str, when: When, crash: bool
) -> None:
    verb, ids = VERBS[name]
    whole = copy_of(template)
    verb(whole.uri)
    before, after = State.of(template.uri), State.of(whole.uri)
    assert after.ids == ids and (after == before) == (name == "clean up")
    files_before = own_files(template)
    assert own_files(whole) < files_before or name != "clean up"
    for store, faulty, error in attempts(template, verb, monkeypatch, when, crash=crash):
        where = f"{faulty!r}: {error!r}"
        found = State.of(store.uri)
        if error is None:
            assert found == after, where
            assert versions(store.uri) == versions(whole.uri), where
        elif isinstance(error, CommitStateUnknown | SimulatedCrash):
            assert found in (before, after), where
        else:
            assert found == before, where
            if when is not When.LATE and name != "clean up":
                assert own_files(store) == files_before, where
        faulty.deliver_late()
        dataset = lance_ops.dataset(store.uri)
        dataset.validate()
        if not isinstance(error, CommitStateUnknown):
            assert State.of(store.uri) == found, where
        assert dataset.to_table(filter="key >= 0") == dataset.to_table().filter(pc.field("key") >= 0), where
        check_next_writer_succeeds(store.uri)
        check_nothing_stray(store.uri, store)
        check_kept_version(store.uri)


@pytest.mark.parametrize("when", When)
def test_a_creation_that_fails_at_any_step_leaves_all_or_nothing(monkeypatch: pytest.MonkeyPatch, when: When) -> None:
    def verb(uri: str) -> None:
        lance_ops.write_dataset(rows(0, 8), uri, mode="append", max_rows_per_file=5)

    for store, faulty, error in attempts(MemoryStore(), verb, monkeypatch, when, crash=False):
        if error is None:
            assert lance_ops.dataset(store.uri).to_table().num_rows == 8
            check_next_writer_succeeds(store.uri)
            check_nothing_stray(store.uri, store)
        elif not isinstance(error, CommitStateUnknown) and when is not When.LATE:
            assert own_files(store) == set(), f"{faulty!r}: {error!r}"
