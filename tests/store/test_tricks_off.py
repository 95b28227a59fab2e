"""Stores and datasets with each trick of ADR 19 switched off: they work, and files and answers are the same."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.tricks import Trick
from lance_ops.store import LocalStore
from lance_ops.store.local.memory_map_cache import MAPPED_FILES
from tests.store.conftest import open_files

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["", *(trick.value for trick in Trick), ",".join(trick.value for trick in Trick)])
def disabled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Switch off no trick, each trick alone, and all tricks."""
    monkeypatch.setenv("LANCE_OPS_DISABLE", request.param)
    MAPPED_FILES.reset()
    return str(request.param)


def test_a_switch_is_read_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Trick.AIO.is_on()
    monkeypatch.setenv("LANCE_OPS_DISABLE", "reserve,aio")
    assert not Trick.AIO.is_on() and not Trick.RESERVE.is_on() and Trick.SEALS.is_on()
    monkeypatch.delenv("LANCE_OPS_DISABLE")
    assert Trick.AIO.is_on()


def test_a_long_file_has_the_same_bytes_with_any_trick_off(store: LocalStore, disabled: str) -> None:
    pieces = [os.urandom(3 << 20) for _ in range(4)]
    with store.open_writer("long") as writer:
        for piece in pieces:
            writer.write(piece)
    assert store.get("long").to_pybytes() == b"".join(pieces)
    (part,) = store.get_ranges("long", [(5 << 20, 7 << 20)])
    assert part.to_pybytes() == b"".join(pieces)[5 << 20 : 7 << 20]
    store.put("long", pieces[0])
    assert store.get("long").to_pybytes() == pieces[0]


def test_a_dataset_is_written_and_read_with_any_trick_off(tmp_path: Path, disabled: str) -> None:
    uri = str(tmp_path / "table")
    rows = pa.table({"id": list(range(5000)), "text": [f"row {number}" for number in range(5000)]})
    for mode in ("create", "append", "append"):
        lance_ops.write_dataset(rows, uri, mode=mode)
    opened = lance_ops.dataset(uri)
    assert opened.version == 3
    assert opened.to_table() == pa.concat_tables([rows] * 3).combine_chunks()
    assert opened.take([4999, 5000]).to_pydict() == {"id": [4999, 0], "text": ["row 4999", "row 0"]}


def test_files_without_the_mapping_trick_are_mapped_and_not_kept(
    root: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_OPS_DISABLE", "file-mapping")
    store.put("a", b"0123456789" * 20_000)
    buffers = [store.get("a") for _ in range(3)]
    assert len({buffer.address for buffer in buffers}) == 3
    assert open_files(root)
    del buffers
    assert open_files(root) == []


def test_a_directory_has_neither_stamp_nor_seal_with_seals_off(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("folder/a", b"x")
    monkeypatch.setenv("LANCE_OPS_DISABLE", "seals")
    assert store.directory_stamp("folder") is store.seal_directory("folder") is None


def test_the_decision_lists_every_trick_and_its_module() -> None:
    text = (ROOT / "docs" / "adr" / "0019-tricks-of-the-system.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| `([a-z0-9_/.]+)` ", text, re.MULTILINE))
    assert set(rows) == {trick.value for trick in Trick}
    sources = "".join(path.read_text() for path in (ROOT / "lance_ops").rglob("*.py"))
    for trick in Trick:
        assert f"LANCE_OPS_DISABLE={trick.value}`" in (ROOT / "lance_ops" / rows[trick.value]).read_text()
        assert f"Trick.{trick.name}.is_on()" in sources
