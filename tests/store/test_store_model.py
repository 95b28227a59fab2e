"""Any sequence of operations has the same result on a store and on a dict."""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from lance_ops.core.errors import CorruptFile, ObjectNotFound
from lance_ops.store import FaultyStore, LocalStore, MemoryStore, PutOutcome, Store, StoreWriter, When
from lance_ops.store.faulty import Fault
from lance_ops.store.paths import is_temporary
from tests.store.conftest import ObjectServer

# Few names, so that operations meet. None is a directory of another: a file system minds, an object store does not.
PATHS = st.sampled_from(["a", "b/c", "b/d", "b/e/f", "b2/g", "_versions/1", "_versions/2"])
DIRECTORIES = st.sampled_from(["", "b", "b/e", "b2", "_versions", "none"])
DATA = st.binary(max_size=40) | st.integers(4000, 9000).map(lambda size: bytes(index % 256 for index in range(size)))


class StoreMachine(RuleBasedStateMachine):
    """A store beside a dict of what it should hold."""

    writers = Bundle("writers")

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, bytes] = {}
        self.opened: list[StoreWriter] = []
        self.store = self.make_store()

    def make_store(self) -> Store:
        return MemoryStore()

    @rule(path=PATHS, data=DATA, durable=st.booleans())
    def put(self, path: str, data: bytes, durable: bool) -> None:
        self.store.put(path, data, durable=durable)
        self.model[path] = data

    @rule(path=PATHS, data=DATA)
    def put_if_absent(self, path: str, data: bytes) -> None:
        expected = PutOutcome.EXISTS if path in self.model else PutOutcome.CREATED
        assert self.store.put_if_absent(path, data) is expected
        self.model.setdefault(path, data)

    @rule(target=writers, path=PATHS, data=DATA)
    def open_writer(self, path: str, data: bytes) -> tuple[StoreWriter, str, bytes]:
        writer = self.store.open_writer(path)
        self.opened.append(writer)
        writer.write(data)
        return writer, path, data

    @rule(opened=consumes(writers), data=DATA)
    def close_writer(self, opened: tuple[StoreWriter, str, bytes], data: bytes) -> None:
        writer, path, before = opened
        writer.write(data)
        assert writer.tell() == len(before + data)
        writer.close()
        self.model[path] = before + data

    @rule(opened=consumes(writers))
    def abort_writer(self, opened: tuple[StoreWriter, str, bytes]) -> None:
        opened[0].abort()

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        self.store.delete(path)
        self.model.pop(path, None)

    @rule(source=PATHS, destination=PATHS)
    def copy(self, source: str, destination: str) -> None:
        if source in self.model:
            self.store.copy(source, destination)
            self.model[destination] = self.model[source]
        else:
            with pytest.raises(ObjectNotFound):
                self.store.copy(source, destination)

    @rule(path=PATHS)
    def get(self, path: str) -> None:
        if path in self.model:
            assert self.store.get(path).to_pybytes() == self.model[path]
            assert self.store.size(path) == len(self.model[path])
            self.store.make_durable(path)
        else:
            with pytest.raises(ObjectNotFound):
                self.store.get(path)
            with pytest.raises(ObjectNotFound):
                self.store.size(path)
        assert self.store.exists(path) is (path in self.model)

    @rule(path=PATHS, cuts=st.lists(st.tuples(st.integers(0, 9000), st.integers(0, 9000)).map(sorted), max_size=5))
    def get_ranges(self, path: str, cuts: list[list[int]]) -> None:
        ranges = [(start, end) for start, end in cuts]
        data = self.model.get(path)
        reaches = max((end for start, end in ranges if start < end), default=None)
        if reaches is None:
            return
        if data is None:
            with pytest.raises(ObjectNotFound):
                self.store.get_ranges(path, ranges)
        elif reaches > len(data):
            with pytest.raises(CorruptFile):
                self.store.get_ranges(path, ranges)
        else:
            found = self.store.get_ranges(path, ranges)
            assert [piece.to_pybytes() for piece in found] == [data[start:end] for start, end in ranges]

    @rule(directory=DIRECTORIES)
    def list(self, directory: str) -> None:
        start = f"{directory}/" if directory else ""
        below = {path: len(data) for path, data in self.model.items() if path.startswith(start)}
        assert {found.path: found.size_bytes for found in self.store.list(directory)} == below
        names = {path.removeprefix(start) for path in below}
        listed = [name for name in self.store.list_names(directory) if not is_temporary(name)]
        objects = [name for name in listed if self.store.exists(f"{start}{name}")]
        assert sorted(objects) == sorted(name for name in names if "/" not in name)

    @rule(directory=st.sampled_from(["b", "_versions"]))
    def child(self, directory: str) -> None:
        below = {path.removeprefix(f"{directory}/") for path in self.model if path.startswith(f"{directory}/")}
        assert {found.path for found in self.store.child(directory).list()} == below

    @invariant()
    def nothing_else_is_there(self) -> None:
        if isinstance(self.store, LocalStore | MemoryStore):
            assert {found.path for found in self.store.list()} == set(self.model)


def check(make_store: Any, max_examples: int, clean_up: Any = None) -> None:
    class Machine(StoreMachine):
        def make_store(self) -> Store:
            store: Store = make_store()
            return store

        def teardown(self) -> None:
            for writer in self.opened:
                writer.abort()
            if clean_up is not None:
                clean_up(self.store)

    run_state_machine_as_test(
        Machine, settings=settings(max_examples=max_examples, stateful_step_count=30, deadline=None)
    )


def test_a_memory_store_is_a_dict() -> None:
    check(MemoryStore, max_examples=60)


def test_a_local_store_is_a_dict() -> None:
    check(lambda: LocalStore(tempfile.mkdtemp()), 40, lambda store: shutil.rmtree(store.uri))


def test_a_faulty_store_without_a_fault_is_a_dict() -> None:
    never = Fault(call=1_000_000, when=When.AFTER)
    check(lambda: FaultyStore(MemoryStore(), never), max_examples=20)


def test_a_store_on_a_server_is_a_dict(object_server: ObjectServer) -> None:
    check(object_server.new_store, max_examples=5)
