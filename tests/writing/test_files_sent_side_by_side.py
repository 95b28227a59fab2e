"""A writer of fragments goes on while a store receives its files, and leaves none behind if one cannot be written."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lance_ops.core.errors import StoreError
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.store import BytesLike, MemoryStore, StoreWriter
from lance_ops.writing import FragmentLimits, FragmentWriter

TABLE = pa.table({"a": range(100)})


class _Later(StoreWriter):
    """A file that comes into being when somebody waits for it."""

    def __init__(self, store: SlowStore, file: StoreWriter) -> None:
        self._store = store
        self._file = file

    def write(self, data: BytesLike) -> None:
        self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def begin_close(self) -> Callable[[], object]:
        number = self._store.begun = self._store.begun + 1
        self._store.most_waiting = max(self._store.most_waiting, number - self._store.ended)

        def wait() -> None:
            self._store.ended += 1
            self._file.close()
            if number == self._store.failing:
                raise StoreError("the answer was lost")  # and the file is there

        return wait

    def abort(self) -> None:
        self._file.abort()


class SlowStore(MemoryStore):
    """Counts the files that are on their way; the answer to one of them can be lost."""

    def __init__(self, failing: int = 0) -> None:
        super().__init__()
        self.failing = failing
        self.begun = self.ended = self.most_waiting = 0

    def open_writer(self, path: str, *, durable: bool = True) -> StoreWriter:
        return _Later(self, super().open_writer(path, durable=durable))


def write(store: SlowStore) -> int:
    limits = FragmentLimits(max_rows_per_file=10)
    with FragmentWriter(store, Schema.from_arrow(TABLE.schema), FileVersion.V2_2, limits) as writer:
        writer.write(TABLE)
        return len(writer.finish())


def test_few_files_are_on_their_way_and_all_are_there_in_the_end() -> None:
    store = SlowStore()
    assert write(store) == 10
    assert store.most_waiting == 5  # four, and the one just finished
    assert len(list(store.list())) == 10


@pytest.mark.parametrize("failing", [1, 6, 10])
def test_no_file_is_left_if_one_may_not_have_been_written(failing: int) -> None:
    store = SlowStore(failing)
    with pytest.raises(StoreError, match="answer was lost"):
        write(store)
    assert store.ended == store.begun
    assert list(store.list()) == []
