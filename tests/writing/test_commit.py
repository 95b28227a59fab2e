"""Files of a commit that failed go when it is certain that no version names them, and only then."""

from __future__ import annotations

import pytest

from lance_ops.core.errors import CommitStateUnknown, RetryableConflict, StoreError
from lance_ops.store import MemoryStore
from lance_ops.transactions.pending_files import removing_unless_committed


@pytest.mark.parametrize(
    ("error", "stay"),
    [
        (StoreError("refused"), False),
        (RetryableConflict("lost"), False),
        (ZeroDivisionError(), False),
        (CommitStateUnknown("a", 2, "no answer"), True),
        (KeyboardInterrupt(), True),
        (SystemExit(), True),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, BaseException) else None,
)
def test_files_stay_unless_the_commit_failed_for_certain(error: BaseException, stay: bool) -> None:
    store, paths = MemoryStore("commit-files"), ["data/a.lance"]
    for path in ("data/a.lance", "data/b.lance", "data/other.lance"):
        store.put(path, b"x")

    def fail() -> None:
        with removing_unless_committed(store, paths):
            paths.append("data/b.lance")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert [store.exists(path) for path in paths] == [stay, stay]
    assert store.exists("data/other.lance")


def test_files_of_a_commit_that_landed_stay() -> None:
    store = MemoryStore("commit-files")
    store.put("data/a.lance", b"x")
    with removing_unless_committed(store, ["data/a.lance"]):
        pass
    assert store.exists("data/a.lance")
