"""Scratch folders are cleared, or left to clean-up with a warning."""

from __future__ import annotations

import pytest

from lance_ops.store import Fault, FaultyStore, MemoryStore


def test_a_folder_is_cleared(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    store.put("data/scratch/a", b"x")
    store.put("data/kept", b"x")
    store.child("data/scratch").clear_or_leave()
    assert [info.path for info in store.list()] == ["data/kept"]
    assert not caplog.records


@pytest.mark.parametrize("operation", ["list", "delete"])
def test_what_a_store_keeps_is_logged_and_left(operation: str, caplog: pytest.LogCaptureFixture) -> None:
    inner = MemoryStore()
    inner.put("data/scratch/a", b"x")
    FaultyStore(inner, Fault(operation)).child("data/scratch").clear_or_leave()
    assert [info.path for info in inner.list()] == ["data/scratch/a"]
    (record,) = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "lance_ops")
    assert "data/scratch" in record.getMessage() and "simulated failure" in record.getMessage()
