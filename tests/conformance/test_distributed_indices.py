"""Conformance tests of index types that tasks build: what tasks make is what one process makes."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import FrozenBitMap

from lance_ops.core.addresses import TOMBSTONE_ROW
from lance_ops.core.errors import StoreError
from lance_ops.indices import (
    ALL_INDEX_TYPES,
    INDEX_ROW,
    DistributedIndexType,
    IndexQuery,
    LoadedIndex,
    PartialIndex,
    claimed_fragments,
)
from lance_ops.store import MemoryStore, Store
from lance_ops.store.faulty import Fault, FaultyStore
from lance_ops.table import IndexFile
from tests.conformance.test_indices import (
    VALUES,
    Built,
    Rows,
    batches_of,
    can_index,
    check,
    field_of,
    predicates_on,
    rewrites,
    rows_of,
    small,
    train,
)

Kind = DistributedIndexType[IndexQuery]

KINDS: list[Kind] = [kind for each in ALL_INDEX_TYPES if isinstance(kind := small(each), DistributedIndexType)]
KINDS_AND_TYPES = [
    pytest.param(kind, value_type, id=f"{kind.name}-{value_type}")
    for kind in KINDS
    for value_type in VALUES
    if can_index(kind, value_type)
]


def test_some_index_types_are_built_by_tasks() -> None:
    """One of them merges sorted files, the other puts messages together."""
    assert {"BTREE", "ZONEMAP"} <= {kind.name for kind in KINDS}


def sent(message: Any) -> Any:
    """A message as it arrives in another process."""
    return pickle.loads(pickle.dumps(message))


def assembled(
    kind: Kind, partials: Sequence[PartialIndex], value_type: pa.DataType, scratch: Store, share_rows: int = 7
) -> tuple[Store, tuple[IndexFile, ...]]:
    """Merge partials in tasks, and write the index that they make."""
    field, store = field_of(value_type), MemoryStore()
    shares = [sent(share) for share in kind.plan_merge(partials, share_rows)]
    merged = [sent(kind.merge_partials(share, field, scratch)) for share in shares]
    return store, kind.assemble(merged if shares else partials, field, scratch, store)


def cut(rows: Rows, fragments: Iterable[int]) -> list[Rows]:
    """The rows of each fragment."""
    return [{address: value for address, value in rows.items() if address >> 32 == each} for each in fragments]


def copied_partials(kind: Kind, segment: LoadedIndex[IndexQuery], scratch: Store, **how: Any) -> list[PartialIndex]:
    num_entries = kind.num_entries(segment)
    ranges = [(start, min(start + 9, num_entries)) for start in range(0, num_entries, 9)]
    return [sent(kind.copy_partial(segment, start, stop, scratch, **how)) for start, stop in ranges]


def entries(index: LoadedIndex[IndexQuery]) -> list[Any]:
    return [row for batch in index.entries() for row in batch.to_pylist()]


@pytest.mark.parametrize(("kind", "value_type"), KINDS_AND_TYPES)
@settings(max_examples=12)
@given(data=st.data())
def test_tasks_build_the_index_that_one_process_builds(
    kind: Kind, value_type: pa.DataType, data: st.DataObject
) -> None:
    rows = data.draw(rows_of(value_type))
    scratch, field = MemoryStore(), field_of(value_type)
    parts = cut(rows, range(3))
    partials = [sent(kind.train_partial(batches_of(part, value_type), field, scratch)) for part in parts]
    store, files = assembled(kind, partials, value_type, scratch)

    whole = train(kind, rows, value_type, range(3))
    built = whole.rewritten(store, files, range(3))
    assert built.loaded.statistics() == whole.loaded.statistics()
    assert [file.path for file in files] == [file.path for file in whole.metadata.files]
    assert [store.size(file.path) for file in files] == [file.size_bytes for file in files]
    check(built, rows, data.draw(predicates_on(value_type)))
    if kind.name == "BTREE":
        assert repr(entries(built.loaded)) == repr(entries(whole.loaded))
        assert store.get("page_lookup.lance") == whole.store.get("page_lookup.lance")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=40)
@given(data=st.data())
def test_tasks_merge_segments_and_new_rows(kind: Kind, data: st.DataObject) -> None:
    value_type = data.draw(st.sampled_from([each for each in VALUES if can_index(kind, each)]))
    parts = [data.draw(rows_of(value_type, range(start, start + 2))) for start in (0, 2, 4)]
    segments = [train(kind, parts[at], value_type, range(2 * at, 2 * at + 2)) for at in range(2)]
    live = data.draw(st.sets(st.integers(0, 3)))
    scratch, opened = MemoryStore(), [segment.loaded for segment in segments]
    partials = [
        partial
        for segment, claimed in zip(opened, claimed_fragments(opened, live), strict=True)
        for partial in copied_partials(kind, segment, scratch, fragments=FrozenBitMap(claimed))
    ]
    partials.append(sent(kind.train_partial(batches_of(parts[2], value_type), field_of(value_type), scratch)))
    store, files = assembled(kind, partials, value_type, scratch)
    merged = segments[0].rewritten(store, files, live | {4, 5})
    kept = {address: value for part in parts for address, value in part.items() if address >> 32 in live | {4, 5}}
    check(merged, kept, data.draw(predicates_on(value_type)))

    wanted = MemoryStore()
    alone = opened[0].merge(opened[1:], batches_of(parts[2], value_type), wanted, live_fragments=live)
    by_one = segments[0].rewritten(wanted, alone, live | {4, 5})
    assert merged.loaded.statistics() == by_one.loaded.statistics()
    if kind.name == "BTREE":
        assert repr(entries(merged.loaded)) == repr(entries(by_one.loaded))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=40)
@given(data=st.data())
def test_tasks_remap_a_segment(kind: Kind, data: st.DataObject) -> None:
    value_type = data.draw(st.sampled_from([each for each in VALUES if can_index(kind, each)]))
    rows = data.draw(rows_of(value_type))
    built = train(kind, rows, value_type, fragments=range(3))
    moves, scratch = data.draw(rewrites()), MemoryStore()
    store, files = assembled(kind, copied_partials(kind, built.loaded, scratch, moves=sent(moves)), value_type, scratch)
    fragments = {0, 1, 2, 10, 11} - moves.old_fragment_ids
    remapped = built.rewritten(store, files, fragments)
    survivors = {int(moves.remap(np.array([address], np.uint64))[0]): value for address, value in rows.items()}
    survivors.pop(TOMBSTONE_ROW, None)
    check(remapped, survivors, data.draw(predicates_on(value_type)))
    if kind.names_rows:
        assert {row[INDEX_ROW] for row in entries(remapped.loaded)} == survivors.keys()
    else:
        alone = MemoryStore()
        by_one = built.rewritten(alone, built.loaded.remap(moves, alone), fragments)
        assert remapped.loaded.statistics() == by_one.loaded.statistics()
        for batch in batches_of(survivors, value_type):
            assert not len(remapped.loaded.contradicted(batch))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_store_that_fails_at_any_step_is_left_without_half_written_files(kind: Kind) -> None:
    value_type = next(each for each in VALUES if can_index(kind, each))
    rows = {fragment << 32 | offset: VALUES[value_type][offset % 2] for fragment in range(2) for offset in range(9)}
    field = field_of(value_type)

    def build(scratch: Store, store: Store) -> None:
        parts = cut(rows, range(2))
        partials = [kind.train_partial(batches_of(part, value_type), field, scratch) for part in parts]
        shares = kind.plan_merge(partials, 7)
        merged = [kind.merge_partials(share, field, scratch) for share in shares]
        kind.assemble(merged if shares else partials, field, scratch, store)

    rehearsal = FaultyStore(MemoryStore())
    build(MemoryStore(), rehearsal)
    for call in range(1, len(rehearsal.calls) + 1):
        store = FaultyStore(MemoryStore(), Fault(call=call))
        with pytest.raises(StoreError):
            build(MemoryStore(), store)
        assert not list(store.list()), f"after step {call} of {rehearsal.calls}"

    tasks = FaultyStore(MemoryStore())
    build(tasks, MemoryStore())
    for call in range(1, len(tasks.calls) + 1):
        target = MemoryStore()
        if tasks.calls[call - 1].operation == "delete":  # what stays is the caller's to remove
            build(FaultyStore(MemoryStore(), Fault(call=call)), target)
            assert list(target.list())
            continue
        with pytest.raises(StoreError):
            build(FaultyStore(MemoryStore(), Fault(call=call)), target)
        assert not list(target.list()), f"after step {call} of {tasks.calls}"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name == "BTREE"], ids=lambda kind: kind.name)
def test_a_repeated_task_writes_another_file_and_changes_nothing(kind: Kind) -> None:
    rows: Rows = {offset: offset % 5 for offset in range(40)}
    scratch, field = MemoryStore(), field_of(pa.int64())
    first, second = (kind.train_partial(batches_of(rows, pa.int64()), field, scratch) for _ in range(2))
    assert first.path != second.path and len(list(scratch.list())) == 2
    assert scratch.get(first.path) == scratch.get(second.path)
    for chosen in (first, second):
        store, files = assembled(kind, [chosen], pa.int64(), scratch)
        whole = train(kind, rows, pa.int64())
        built: Built = whole.rewritten(store, files, [0])
        assert entries(built.loaded) == entries(whole.loaded)
