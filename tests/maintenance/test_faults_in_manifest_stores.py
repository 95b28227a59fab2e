"""Fail every verb on a table with an external manifest store at every step of its commit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import pytest

import lance_ops
from lance_ops.committers import ExternalManifestCommitter, opening
from lance_ops.committers.manifest_stores import ManifestRow, ManifestStore
from lance_ops.core.file_names import VERSIONS_DIR
from lance_ops.errors import CommitStateUnknown, DatasetAlreadyExists, LanceOpsError
from lance_ops.store import MemoryStore, Store
from lance_ops.store.faulty import Call, Fault, FaultyStore, SimulatedCrash, When
from tests.maintenance.conftest import rows
from tests.maintenance.test_faults import (
    VERBS,
    WRITES,
    State,
    check_kept_version,
    check_nothing_stray,
    own_files,
    versions,
    without_waiting,
    write_template,
)

__all__ = ["without_waiting"]

ROWS = "manifest rows"
KINDS = [(when, False) for when in When] + [(When.BEFORE, True), (When.AFTER, True)]


@dataclass
class Rows(ManifestStore):
    """A manifest store in memory that shares a faulty store's count of calls, so that its calls fail too."""

    known: dict[int, ManifestRow] = field(default_factory=dict)
    steps: FaultyStore | None = None

    @classmethod
    def open(cls, url: str, dataset_uri: str, storage_options: Mapping[str, object]) -> Self:
        return cls()

    def newest(self) -> ManifestRow | None:
        self._read()
        return self.known[max(self.known)] if self.known else None

    def get(self, version: int) -> ManifestRow | None:
        self._read()
        return self.known.get(version)

    def insert(self, row: ManifestRow) -> bool:
        def insert() -> bool:
            return self.known.setdefault(row.version, row) is row

        return insert() if self.steps is None else self.steps._write("put_if_absent", ROWS, insert)

    def replace(self, row: ManifestRow) -> None:
        self._write(lambda: self.known.update({row.version: row}))

    def remove(self, version: int) -> None:
        self._write(lambda: self.known.pop(version, None))

    def _read(self) -> None:
        if self.steps is not None:
            self.steps._read("get", ROWS, lambda: None)

    def _write(self, do: object) -> None:
        assert callable(do)
        if self.steps is None:
            do()
        else:
            self.steps._write("put", ROWS, do)


@dataclass
class Table:
    """A dataset in memory that can be opened with or without faults."""

    store: MemoryStore
    rows: Rows

    def copy(self) -> Table:
        store = MemoryStore(f"faults-{uuid.uuid4().hex}")
        for info in self.store.list():
            store.put(info.path, self.store.get(info.path))
        return Table(store, Rows(dict(self.rows.known)))

    def use(self, patch: pytest.MonkeyPatch, store: Store, steps: FaultyStore | None) -> None:
        """Open the dataset through a store, and its manifest store rows through the same faults."""
        self.rows.steps = steps
        patch.setattr(opening, "open_store", lambda uri, options: store)
        patch.setattr(opening, "PutIfAbsentCommitter", lambda store, **_: ExternalManifestCommitter(store, self.rows))


@pytest.fixture(scope="module")
def template() -> Table:
    table = Table(MemoryStore(f"template-{uuid.uuid4().hex}"), Rows())
    with pytest.MonkeyPatch.context() as patch:
        table.use(patch, table.store, None)
        write_template(table.store.uri)
    return table


def run(table: Table, name: str, monkeypatch: pytest.MonkeyPatch, *faults: Fault) -> FaultyStore:
    """Run a verb over a store with faults."""
    faulty = FaultyStore(table.store, *faults)
    with monkeypatch.context() as patch:
        table.use(patch, faulty, faulty)
        VERBS[name][0](faulty.uri)
    return faulty


def makes_a_version(call: Call) -> bool:
    return call.path == ROWS or call.path.startswith(VERSIONS_DIR)


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize(("when", "crash"), KINDS, ids=[f"{when.value}{'-crash' * crash}" for when, crash in KINDS])
def test_a_verb_that_fails_in_its_commit_leaves_all_or_nothing(
    template: Table, monkeypatch: pytest.MonkeyPatch, name: str, when: When, crash: bool
) -> None:
    whole = template.copy()
    calls = run(whole, name, monkeypatch).calls
    (before, _), (after, kept) = seen(template, monkeypatch), seen(whole, monkeypatch)
    assert after.ids == VERBS[name][1] and (after == before) == (name == "clean up")
    assert any(call == Call("put_if_absent", ROWS) for call in calls) or name == "clean up"
    for step, call in enumerate(calls, 1):
        if not makes_a_version(call) or not (when is When.BEFORE or call.operation in WRITES):
            continue
        table, error = template.copy(), None
        faulty = FaultyStore(table.store, Fault(call=step, when=when, crash=crash))
        try:
            with monkeypatch.context() as patch:
                table.use(patch, faulty, faulty)
                VERBS[name][0](faulty.uri)
        except (LanceOpsError, SimulatedCrash) as raised:
            error = raised
        with monkeypatch.context() as patch:
            table.use(patch, table.store, None)
            where = f"{name} at {call}, {when}: {error!r}"
            assert error is not None or versions(table.store.uri) == kept, where
            check(table, faulty, error, before, after, where)


def seen(table: Table, monkeypatch: pytest.MonkeyPatch) -> tuple[State, list[int]]:
    """Return the state of the newest version, and the versions."""
    with monkeypatch.context() as patch:
        table.use(patch, table.store, None)
        return State.of(table.store.uri), versions(table.store.uri)


def check(
    table: Table, faulty: FaultyStore, error: BaseException | None, before: State, after: State, where: str
) -> None:
    found = State.of(table.store.uri)
    if error is None:
        assert found == after, where
    elif isinstance(error, CommitStateUnknown | SimulatedCrash):
        assert found in (before, after), where
    else:
        assert found == before, where
    faulty.deliver_late()
    if not isinstance(error, CommitStateUnknown):
        assert State.of(table.store.uri) == found, where
    ids, version = State.of(table.store.uri).ids, lance_ops.dataset(table.store.uri).version
    made = lance_ops.write_dataset(rows(900, 901), table.store.uri, mode="append")
    assert made.version == version + 1 and State.of(table.store.uri).ids == [*ids, 900], where
    made.validate()
    check_nothing_stray(table.store.uri, table.store)
    check_kept_version(table.store.uri)
    names = [info.path for info in table.store.list(VERSIONS_DIR) if not info.path.endswith(".manifest")]
    assert names == [], f"{where}: staged manifests are left"
    assert own_files(table.store)


@pytest.mark.parametrize(("when", "crash"), KINDS, ids=[f"{when.value}{'-crash' * crash}" for when, crash in KINDS])
def test_a_creation_after_a_failed_one_succeeds_unless_the_first_did(
    monkeypatch: pytest.MonkeyPatch, when: When, crash: bool
) -> None:
    def create(store: Store, steps: FaultyStore | None, first: int) -> None:
        with monkeypatch.context() as patch:
            table.use(patch, store, steps)
            lance_ops.write_dataset(rows(first, first + 4), store.uri, mode="create")

    table = Table(MemoryStore(f"creation-{uuid.uuid4().hex}"), Rows())
    whole = FaultyStore(table.store)
    create(whole, whole, 0)
    for step, call in enumerate(whole.calls, 1):
        if when is not When.BEFORE and call.operation not in WRITES:
            continue
        table, where = Table(MemoryStore(f"creation-{uuid.uuid4().hex}"), Rows()), f"{call}, {when}, crash {crash}"
        faulty = FaultyStore(table.store, Fault(call=step, when=when, crash=crash))
        error: BaseException | None = None
        try:
            create(faulty, faulty, 0)
        except (LanceOpsError, SimulatedCrash) as raised:
            error = raised
        landed = True
        try:
            create(table.store, None, 10)
            landed = False
        except DatasetAlreadyExists:
            pass
        if error is None:
            assert landed, where
        elif not isinstance(error, CommitStateUnknown | SimulatedCrash):
            assert not landed, where
        faulty.deliver_late()
        with monkeypatch.context() as patch:
            table.use(patch, table.store, None)
            made = lance_ops.write_dataset(rows(20, 21), table.store.uri, mode="append")
            first = 0 if landed else 10
            assert (made.version, made.to_table().column("id").to_pylist()) == (2, [*range(first, first + 4), 20]), (
                where
            )
            check_nothing_stray(table.store.uri, table.store)
        assert [info.path for info in table.store.list(VERSIONS_DIR) if not info.path.endswith(".manifest")] == [], (
            where
        )
