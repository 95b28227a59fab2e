"""Keep objects in a dict, for tests and for datasets that need not outlive the process.

Each step is one call of a dict method, which CPython runs atomically, so threads need no lock. `setdefault` is the
atomic create. A forked child has its own copy.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from weakref import WeakValueDictionary

import pyarrow as pa

from lance_ops.core.errors import ObjectNotFound, StoreError
from lance_ops.core.records import dataclass
from lance_ops.store.contract import Buffers, ByteRange, BytesLike, ObjectInfo, PutOutcome, Store, StoreWriter, View
from lance_ops.store.counted_view import CountedView
from lance_ops.store.io_counters import IoCounters
from lance_ops.store.paths import check_directory, check_path, is_temporary
from lance_ops.store.ranges import check_ranges, slice_ranges

__all__ = ["MemoryStore"]


@dataclass(frozen=True, slots=True, eq=False)
class _Object:
    data: pa.Buffer
    modified: datetime


class _Tree(dict[str, _Object]):
    """All objects under one name. It is a class because a plain dict cannot be referenced weakly."""

    __slots__ = ("__weakref__",)


_PROCESS = uuid.uuid4().hex
_NAMED: dict[str, _Tree] = {}
_TREES: WeakValueDictionary[str, _Tree] = WeakValueDictionary()


class MemoryStore(Store):
    """Objects of this process beneath `memory://name`. Without a name, the objects are freed with their last store.

    Unpickled in the same process, a store has the same objects. In another process it raises `StoreError`, because an
    empty dataset would be a worse surprise.
    """

    reads_in_place = True

    def __init__(self, root: str | None = None) -> None:
        self._counters = IoCounters()
        name, _, self._prefix = check_path(uuid.uuid4().hex if root is None else root).partition("/")
        tree = _TREES.get(name)
        if tree is None:
            tree = _TREES.setdefault(name, _Tree())
        if root is not None:
            _NAMED.setdefault(name, tree)
        self._name = name
        self._tree = tree

    def __repr__(self) -> str:
        return f"MemoryStore({self.uri!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryStore) and self.uri == other.uri

    def __hash__(self) -> int:
        return hash(self.uri)

    def __reduce__(self) -> tuple[Callable[[str, str], MemoryStore], tuple[str, str]]:
        return _attach, (_PROCESS, self.uri.removeprefix("memory://"))

    @property
    def lists_in_order(self) -> bool:
        return True

    @property
    def counters(self) -> IoCounters:
        return self._counters

    def counted_by(self, counters: IoCounters) -> MemoryStore:
        return _open(self._name, self._prefix, self._tree, counters)

    @property
    def uri(self) -> str:
        return f"memory://{self._name}/{self._prefix}".removesuffix("/")

    def child(self, prefix: str) -> MemoryStore:
        return _open(self._name, self._key(prefix), self._tree, self._counters)

    def get(self, path: str) -> pa.Buffer:
        data = self._object(path).data
        self._counters.add_reads(1, data.size)
        return data

    def view(self, path: str) -> View:
        return CountedView(View(self._object(path).data), self._counters)

    def get_ranges(self, path: str, ranges: Sequence[ByteRange]) -> Buffers:
        check_ranges(path, ranges)
        found = slice_ranges(self.uri_of(path), self._object(path).data, ranges)
        self._counters.add_reads(len(found), sum(part.size for part in found))
        return found

    def size(self, path: str) -> int:
        return int(self._object(path).data.size)

    def exists(self, path: str) -> bool:
        return self._key(path) in self._tree

    def put(self, path: str, data: BytesLike, *, durable: bool = True) -> None:
        ours = self._tree[self._key(path)] = self._copied(data)
        self._counters.add_write(ours.data.size)

    def put_if_absent(self, path: str, data: BytesLike, *, after: Iterable[str] = ()) -> PutOutcome:
        ours = self._copied(data)
        if self._tree.setdefault(self._key(path), ours) is not ours:
            return PutOutcome.EXISTS
        self._counters.add_write(ours.data.size)
        return PutOutcome.CREATED

    def make_durable(self, *paths: str) -> None:
        for path in paths:
            self._object(path)

    def open_writer(self, path: str, *, durable: bool = True) -> StoreWriter:
        check_path(path)
        return _MemoryWriter(self, path)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return (found for found in self._walk(prefix) if not is_temporary(found.path))

    def list_temporary(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return (found for found in self._walk(prefix) if is_temporary(found.path))

    def list_names(self, directory: str, limit: int | None = None) -> Sequence[str]:
        start = f"{check_directory(directory)}/".lstrip("/")
        names = (found.path.removeprefix(start) for found in self.list(directory))
        return [name for name in names if "/" not in name][:limit]

    def delete(self, path: str) -> None:
        self._tree.pop(self._key(path), None)

    def copy(self, source: str, target: str) -> None:
        key = self._key(target)
        self._tree[key] = _Object(self._object(source).data, self.now())

    def now(self) -> datetime:
        return datetime.now(UTC)

    def _walk(self, prefix: str) -> Iterator[ObjectInfo]:
        directory = check_directory(prefix)
        root = f"{self._prefix}/" if self._prefix else ""
        start = f"{root}{directory}/" if directory else root
        for key, found in sorted(self._tree.copy().items()):
            if key.startswith(start):
                yield ObjectInfo(key.removeprefix(root), found.data.size, found.modified)

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{check_path(path)}" if self._prefix else check_path(path)

    def _object(self, path: str) -> _Object:
        found = self._tree.get(self._key(path))
        if found is None:
            raise ObjectNotFound(self.uri_of(path))
        return found

    def _copied(self, data: BytesLike) -> _Object:
        return _Object(pa.py_buffer(bytes(data)), self.now())


class _MemoryWriter(StoreWriter):
    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._data: bytearray | None = bytearray()
        self._num_bytes = 0

    def write(self, data: BytesLike) -> None:
        if self._data is None:
            raise ValueError("write to a closed writer")
        self._data += memoryview(data)
        self._num_bytes = len(self._data)

    def tell(self) -> int:
        return self._num_bytes

    def close(self) -> None:
        if self._data is not None:
            self._store.put(self._path, self._data)
            self._data = None

    def abort(self) -> None:
        self._data = None


def _open(name: str, prefix: str, tree: _Tree, counters: IoCounters) -> MemoryStore:
    store = MemoryStore.__new__(MemoryStore)
    store._name, store._prefix, store._tree, store._counters = name, prefix, tree, counters
    return store


def _attach(process: str, root: str) -> MemoryStore:
    name, _, prefix = root.partition("/")
    tree = _TREES.get(name)
    if process != _PROCESS or tree is None:
        raise StoreError(f"memory://{root} lives in the process that made it; use a location every process can reach")
    return _open(name, prefix, tree, IoCounters())
