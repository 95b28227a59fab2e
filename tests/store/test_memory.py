from __future__ import annotations

import gc
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from lance_ops.core.errors import UnsafePath
from lance_ops.store import MemoryStore, open_store
from lance_ops.store import memory as memory_module

REPOSITORY = Path(__file__).parents[2]


def test_memory_stores_share_objects_only_by_name() -> None:
    MemoryStore("shared/a").put("x", b"1")
    assert MemoryStore("shared").get("a/x").to_pybytes() == b"1"
    assert open_store("memory://shared/a/").get("x").to_pybytes() == b"1"
    assert not MemoryStore().exists("a/x")
    assert MemoryStore("shared") == MemoryStore("shared") != MemoryStore("other")
    assert len({MemoryStore("shared"), MemoryStore("shared")}) == 1


def test_an_unnamed_memory_store_is_freed_with_its_last_handle() -> None:
    store = MemoryStore()
    name = store.uri.removeprefix("memory://")
    child = store.child("a")
    del store
    gc.collect()
    assert name in memory_module._TREES
    del child
    gc.collect()
    assert name not in memory_module._TREES


def test_a_memory_store_unpickled_in_another_process_says_what_to_do(tmp_path: Path) -> None:
    pickled = tmp_path / "store"
    pickled.write_bytes(pickle.dumps(MemoryStore("shared")))
    program = f"import pickle; pickle.loads(open({str(pickled)!r}, 'rb').read())"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=Path.cwd()
    )

    assert answer.returncode != 0
    assert "lives in the process that made it" in answer.stderr


@pytest.mark.parametrize("name", ["..", "a/../b", "a//b"])
def test_a_name_is_checked_as_a_path_is(name: str) -> None:
    with pytest.raises(UnsafePath):
        MemoryStore(name)
