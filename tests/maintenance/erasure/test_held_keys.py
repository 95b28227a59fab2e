"""Keys are in a file for workers, which hold them for a while and then forget them; a preview needs no file."""

from __future__ import annotations

import pickle
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import StoreError, WriteRefused
from lance_ops.maintenance.erasure import Subject, plan_erasure
from lance_ops.maintenance.erasure.subject import shared_table
from lance_ops.maintenance.erasure.subject.shared_table import SharedTable, shared
from lance_ops.store import LocalStore
from tests.pickling_runner import PicklingRunner

KEYS = pa.table({"id": np.arange(100_000)})


@pytest.fixture(autouse=True)
def nothing_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_table, "_HELD_TABLES", shared_table._HeldTables())


@pytest.fixture
def sent(dataset_uri: str) -> Iterator[bytes]:
    """What a task of a runner with workers gets of the keys."""
    main = lance_ops.write_dataset(pa.table({"id": [1]}), dataset_uri).snapshot
    with shared(main, KEYS, PicklingRunner()) as keys:
        yield pickle.dumps(keys)


def held_by_a_task(sent: bytes) -> weakref.ref[object]:
    there: SharedTable = pickle.loads(sent)
    assert there.derived(len) == len(KEYS)
    return weakref.ref(there._loaded())


def test_keys_are_forgotten_a_while_after_the_last_task_that_used_them(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_table, "_SECONDS_HELD", 0.5)
    first = held_by_a_task(sent)
    begun = time.monotonic()
    while first() is not None and time.monotonic() < begun + 60:
        time.sleep(0.05)
    assert first() is None
    assert time.monotonic() - begun >= 0.4
    assert held_by_a_task(sent)() is not None, "the next task reads the file again"


def test_each_use_keeps_the_keys_for_the_whole_time(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(shared_table, "time", SimpleNamespace(monotonic=lambda: now))
    first, tables = held_by_a_task(sent), shared_table._HELD_TABLES
    (place,) = tables._tables
    now += shared_table._SECONDS_HELD - 1
    assert held_by_a_task(sent)() is first()
    now += 2
    tables._forget_if_unused(place)
    assert first() is not None
    now += shared_table._SECONDS_HELD
    tables._forget_if_unused(place)
    assert first() is None


def test_at_most_the_keys_and_the_values_to_look_for_are_held(dataset_uri: str) -> None:
    main = lance_ops.write_dataset(pa.table({"id": [1]}), dataset_uri).snapshot
    found = []
    for _ in range(3):
        with shared(main, KEYS, PicklingRunner()) as keys:
            found.append(held_by_a_task(pickle.dumps(keys)))
    assert [each() is not None for each in found] == [False, True, True]


@pytest.mark.parametrize("error", [StoreError, WriteRefused])
def test_a_preview_needs_no_permission_to_write(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch, error: type[StoreError]
) -> None:
    def refuse(_: LocalStore, path: str, *__: Any, **___: Any) -> None:
        raise error(f"cannot write {path}")

    made = lance_ops.write_dataset(pa.table({"id": range(50)}), dataset_uri, max_rows_per_file=10)
    before = sorted(Path(dataset_uri).rglob("*"))
    for writes in ("put", "put_if_absent_with_callbacks", "open_writer"):
        monkeypatch.setattr(LocalStore, writes, refuse)
    runner = PicklingRunner()
    assert plan_erasure(made.snapshot, Subject.of_keys(KEYS), runner).num_live_rows == 50
    assert runner.jobs == []
    assert sorted(Path(dataset_uri).rglob("*")) == before
    with pytest.raises(error, match="cannot write _lance_ops/erasures/.*sealed"):
        made.erase(keys=KEYS, on="id", reason="request 12", runner=runner)
