"""Batches that are merged by key: as updates and inserts, and as histories."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_ops
from lance_ops.changing.merge_insert.by_tasks import prepare_distributed_merge
from lance_ops.core.schema import SchemaMode
from lance_ops.errors import InvalidInput, RawFileRefused, StoreError
from lance_ops.maintenance.ingest import (
    BadBatches,
    ChangedBatches,
    HistoryColumns,
    IngestBatch,
    IngestMode,
    IngestOptions,
    IngestResult,
    RawFile,
    ingest,
    plan_ingest,
)
from lance_ops.maintenance.ingest.by_key import staged_merge, staged_rows
from lance_ops.maintenance.ingest.by_key.history import HistoryTask, history_rows, write_history
from lance_ops.runners import InThreads
from lance_ops.store import LocalStore, Store
from tests.pickling_runner import PicklingRunner

UPSERT = IngestOptions(mode=IngestMode.UPSERT, keys=("id",), bad_batches=BadBatches.SET_ASIDE)
HISTORY = IngestOptions(mode=IngestMode.HISTORY, keys=("id",), bad_batches=BadBatches.SET_ASIDE)


@pytest.fixture(autouse=True)
def small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have several buckets for few rows."""
    monkeypatch.setattr(staged_rows, "_ROWS_PER_BUCKET", 2)


def land(folder: Path, key: str, **columns: list[Any]) -> IngestBatch:
    path = folder / f"{key}.parquet"
    table = pa.table(columns)
    pq.write_table(table, path)
    return IngestBatch(key, (RawFile(str(path), path.stat().st_size, str(table.to_pydict())),))


def rows(uri: str, *names: str) -> list[tuple[Any, ...]]:
    table = lance_ops.dataset(uri).to_table()
    return sorted(tuple(row[name] for name in names or table.schema.names) for row in table.to_pylist())


def leftovers(uri: str) -> list[str]:
    return [path.name for path in (Path(uri) / "data").iterdir() if path.is_dir()]


def put(uri: str, options: IngestOptions, *batches: IngestBatch) -> IngestResult:
    result = ingest(uri, batches, options=options, runner=PicklingRunner())
    assert not leftovers(uri), "what is staged is removed"
    return result


def test_an_upsert_is_one_version_exactly_once_and_the_last_row_of_a_key_counts(
    tmp_path: Path, dataset_uri: str
) -> None:
    one = land(tmp_path, "one", id=[1, 2, 3], v=["a", "b", "c"])
    two = land(tmp_path, "two", id=[3, 4, 4], v=["C", "d", "D"])
    first = put(dataset_uri, UPSERT, one, two)
    assert first.merged is not None and (first.merged.inserted, first.num_rows) == (4, 6)
    assert rows(dataset_uri) == [(1, "a"), (2, "b"), (3, "C"), (4, "D")]
    version = lance_ops.dataset(dataset_uri).version
    three = land(tmp_path, "three", id=[2, 9, 9, 2], v=["x", "y", "z", "B"])
    second = put(dataset_uri, UPSERT, one, three)
    assert (second.version, second.ingested, second.skipped) == (version + 1, ("three",), ("one",))
    assert second.merged is not None and (second.merged.inserted, second.merged.updated) == (1, 1)
    assert rows(dataset_uri) == [(1, "a"), (2, "B"), (3, "C"), (4, "D"), (9, "z")]
    assert put(dataset_uri, UPSERT, one, two, three).version is None


@pytest.mark.parametrize("options", [IngestOptions(), UPSERT, HISTORY], ids=["append", "upsert", "history"])
def test_relative_paths_begin_in_the_caller_s_folder_also_where_a_task_has_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: IngestOptions
) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(here)
    for number in range(2):
        found = land(Path(), str(number), id=[number], valid_from=[day(1)])
        ingest("t.lance", [found], options=options, runner=PicklingRunner(folder=elsewhere))
    assert rows(str(here / "t.lance"), "id") == [(0,), (1,)]
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("options", [UPSERT, HISTORY], ids=["upsert", "history"])
def test_the_stage_of_a_table_with_a_manifest_store_is_beneath_the_table(options: IngestOptions) -> None:
    schema = pa.schema({"id": pa.int64(), "valid_from": pa.date32()})
    batches = [IngestBatch("a", (RawFile("/a.parquet", 1, "t"),))]
    uri = "s3+ddb://bucket/t.lance?ddbTableName=locks"
    plan = plan_ingest(uri, batches, options=replace(options, schema=schema), version=0)
    assert (plan.uri, plan.storage_options) == ("s3://bucket/t.lance", {"manifest_store": "dynamodb://locks"})
    (task,) = plan.tasks
    assert plan.stage is not None and task.uri == plan.stage.uri
    assert task.uri.startswith("s3://bucket/t.lance/data/merge-") and "?" not in task.uri
    assert not task.storage_options


def test_a_merge_that_has_committed_succeeds_even_if_its_stage_cannot_be_removed(
    tmp_path: Path, dataset_uri: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(store: Store) -> None:
        raise StoreError(f"cannot list {store.uri}")

    monkeypatch.setattr(LocalStore, "clear", refuse)
    result = ingest(dataset_uri, [land(tmp_path, "a", id=[1], v=["x"])], options=UPSERT)
    assert (result.ingested, rows(dataset_uri)) == (("a",), [(1, "x")])
    assert len(leftovers(dataset_uri)) == len({record.getMessage() for record in caplog.records}) == 2
    missing = IngestBatch("b", (RawFile(str(tmp_path / "b.parquet"), 1, "t"),))
    with pytest.raises(RawFileRefused, match="b.parquet"):
        ingest(dataset_uri, [missing], options=replace(UPSERT, bad_batches=BadBatches.REFUSE))


def test_a_batch_that_changes_no_row_is_recorded_too(tmp_path: Path, dataset_uri: str) -> None:
    put(dataset_uri, UPSERT, land(tmp_path, "a", id=[1], v=["x"]))
    none = replace(UPSERT, schema=pa.schema({"id": pa.int64(), "v": pa.string()}))
    empty = land(tmp_path, "empty", id=pa.array([], pa.int64()), v=pa.array([], pa.string()))
    assert put(dataset_uri, none, empty).ingested == ("empty",)
    assert put(dataset_uri, none, empty).skipped == ("empty",)
    assert rows(dataset_uri) == [(1, "x")]


@pytest.mark.parametrize("options", [UPSERT, HISTORY], ids=["upsert", "history"])
def test_a_batch_without_a_key_or_a_moment_is_set_aside_alone(
    tmp_path: Path, dataset_uri: str, options: IngestOptions
) -> None:
    good = land(tmp_path, "good", id=[1], valid_from=[date(2026, 1, 1)])
    null = land(tmp_path, "null", id=[4, None], valid_from=[date(2026, 1, 1)] * 2)
    lacking = land(tmp_path, "lacking", valid_from=[date(2026, 1, 1)])
    result = put(dataset_uri, options, good, null, lacking)
    assert result.ingested == ("good",)
    assert "null.parquet: row 2: column 'id' is null" in result.refused["null"]
    assert "lacking.parquet: there is no column 'id'" in result.refused["lacking"]
    assert rows(dataset_uri, "id") == [(1,)]


def test_a_changed_batch_is_merged_again_and_its_other_rows_leave(tmp_path: Path, dataset_uri: str) -> None:
    options = replace(UPSERT, batch_column="batch", changed_batches=ChangedBatches.REPLACE)
    put(
        dataset_uri, options, land(tmp_path, "a", id=[1, 2], v=["a", "a"]), land(tmp_path, "b", id=[2, 3], v=["b", "b"])
    )
    version = lance_ops.dataset(dataset_uri).version
    result = put(dataset_uri, options, land(tmp_path, "a", id=[4], v=["A"]))
    assert (result.version, result.replaced) == (version + 1, ("a",))
    assert rows(dataset_uri, "id", "batch") == [(2, "b"), (3, "b"), (4, "a")], "row 2 has been b's since b wrote it"
    left = put(dataset_uri, UPSERT, land(tmp_path, "b", id=[7], v=["b"]), land(tmp_path, "c", id=[8], v=["c"]))
    assert left.ingested == ("c",) and "'b' was ingested in version" in left.refused["b"]


def test_columns_are_added_before_the_merge(tmp_path: Path, dataset_uri: str) -> None:
    put(dataset_uri, UPSERT, land(tmp_path, "a", id=[1, 2], v=["a", "a"]))
    added = replace(UPSERT, schema_mode=SchemaMode.ADD)
    put(dataset_uri, added, land(tmp_path, "b", id=[2], v=["b"], more=[7]))
    assert rows(dataset_uri, "id", "v", "more") == [(1, "a", None), (2, "b", 7)]


def test_of_two_runs_that_merge_by_one_key_the_second_begins_again(
    tmp_path: Path, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(dataset_uri, UPSERT, land(tmp_path, "a", id=[1], v=["a"]))
    real, others = prepare_distributed_merge, [land(tmp_path, "other", id=[5], v=["first"])]

    def prepare(plan: Any, runner: Any) -> Any:
        prepared = real(plan, runner)
        if others:
            ingest(dataset_uri, [others.pop()], options=UPSERT)
        return prepared

    monkeypatch.setattr(staged_merge, "prepare_distributed_merge", prepare)
    put(dataset_uri, UPSERT, land(tmp_path, "ours", id=[5], v=["second"]))
    assert rows(dataset_uri) == [(1, "a"), (5, "second")], "the key is there once"


def day(number: int) -> date:
    return date(2026, 1, number)


def test_changes_become_histories_also_late_ones_and_corrections(tmp_path: Path, dataset_uri: str) -> None:
    put(dataset_uri, HISTORY, land(tmp_path, "a", id=[7, 8], price=[1.0, None], valid_from=[day(1)] * 2))
    moments = [day(5), day(6), day(7), day(5), day(5)]
    changes = land(tmp_path, "b", id=[7, 7, 7, 8, 9], price=[2.0, 2.0, 1.0, None, 4.0], valid_from=moments)
    result = put(dataset_uri, HISTORY, changes)
    assert result.merged is not None and (result.merged.inserted, result.merged.updated) == (3, 1)
    names = ("id", "valid_from", "price", "valid_to", "current")
    first = [(7, day(1), 1.0, day(5), False), (7, day(5), 2.0, day(7), False), (7, day(7), 1.0, None, True)]
    others = [(8, day(1), None, None, True), (9, day(5), 4.0, None, True)]
    assert rows(dataset_uri, *names) == [*first, *others]
    late = land(tmp_path, "late", id=[7, 9], price=[3.0, 5.0], valid_from=[day(6), day(5)])
    put(dataset_uri, HISTORY, late)
    assert rows(dataset_uri, *names) == [
        (7, day(1), 1.0, day(5), False),
        (7, day(5), 2.0, day(6), False),
        (7, day(6), 3.0, day(7), False),
        (7, day(7), 1.0, None, True),
        (8, day(1), None, None, True),
        (9, day(5), 5.0, None, True),
    ]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 2)), max_size=12), st.integers(0, 12))
def test_a_history_is_one_chain_for_each_key_and_says_at_every_moment_what_the_changes_say(
    changes: list[tuple[int, int, int]], split: int
) -> None:
    schema = pa.schema({"id": pa.int64(), "valid_from": pa.int64(), "v": pa.int64()})
    table = schema.append(pa.field("valid_to", pa.int64())).append(pa.field("current", pa.bool_())).empty_table()
    for part in (changes[:split], changes[split:]):
        new = pa.table(list(map(list, zip(*part, strict=True))) or [[], [], []], schema=schema)
        known = table.filter(pa.compute.is_in(table["id"], value_set=new["id"].combine_chunks()))
        written = history_rows(known, new, ("id",), HistoryColumns())
        keys = {(row["id"], row["valid_from"]): row for row in [*table.to_pylist(), *written.to_pylist()]}
        table = pa.Table.from_pylist(list(keys.values()), schema=table.schema)
    said = {(key, moment): value for key, moment, value in changes}
    for key in range(3):
        chain = sorted((row for row in table.to_pylist() if row["id"] == key), key=lambda row: int(row["valid_from"]))
        assert [row["valid_to"] for row in chain] == [*(row["valid_from"] for row in chain[1:]), None][: len(chain)]
        assert [row["current"] for row in chain] == [row["valid_to"] is None for row in chain]
        for moment in range(6):
            told = [said[key, at] for at in range(moment + 1) if (key, at) in said]
            true = [row["v"] for row in chain if row["valid_from"] <= moment < (row["valid_to"] or np.inf)]
            assert true == told[-1:]


def test_a_key_that_comes_back_after_its_row_has_ended_gets_a_row(tmp_path: Path, dataset_uri: str) -> None:
    put(dataset_uri, HISTORY, land(tmp_path, "a", id=[1, 2], v=[1.0, np.nan], valid_from=[day(1)] * 2))
    lance_ops.dataset(dataset_uri).update({"valid_to": "date '2026-01-05'", "current": "false"}, "id = 1")
    for number in range(2):  # the second time it is a replay
        again = land(tmp_path, f"b{number}", id=[1, 1, 2], v=[1.0, 1.0, np.nan], valid_from=[day(10), day(11), day(9)])
        result = put(dataset_uri, HISTORY, again)
        assert result.merged is not None and result.merged.inserted == 1 - number
        found = rows(dataset_uri, "id", "valid_from", "valid_to", "current")
        assert found == [(1, day(1), day(5), False), (1, day(10), None, True), (2, day(1), None, True)]


KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "double": (pa.float64(), [1.0, 2.0, np.nan, None]),
    "half": (pa.float16(), [np.float16(1), np.float16(2), np.float16(np.nan), None]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "c", None]),
    "list": (pa.list_(pa.float32()), [[1.0], [1.0, np.nan], [np.nan], None]),
    "struct": (pa.struct({"x": pa.list_(pa.float64())}), [{"x": [np.nan]}, {"x": [np.nan, None]}, {"x": None}, None]),
    "null": (pa.null(), [None] * 4),
    "map": (pa.map_(pa.string(), pa.float64()), [[("a", np.nan)], [("a", 1.0)], [], None]),
}
KNOWN = st.dictionaries(
    st.tuples(st.integers(0, 1), st.integers(0, 7)),
    st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(1, 4))),
    max_size=6,
)
CHANGES = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 7), st.integers(0, 3)), max_size=10)
Written = dict[tuple[int, int], tuple[int, int | None]]


def expected(known: Written, changes: list[tuple[int, int, int]]) -> Written:
    """Return the rows to write, by key and moment, as a value and an end; value by value, in plain Python."""
    said = {(key, moment): value for key, moment, value in changes}
    written: Written = {}
    for key in {key for key, _ in said}:
        chain: list[tuple[int, int, int | None, bool]] = []
        last, until = -1, None
        for moment in sorted(at for other, at in {*known, *said} if other == key):
            if (key, moment) in known:
                last, until = known[key, moment]
                chain.append((moment, last, until, False))
            value = said.get((key, moment), -1)
            if value >= 0 and not (value == last and (until is None or moment < until)):
                chain = [row for row in chain if row[0] != moment]
                chain.append((moment, value, None, True))
                last, until = value, None
        for row, after in zip_longest(chain, chain[1:]):
            moment, value, end, is_change = row
            following = None if after is None else after[0]
            is_shortened = after is not None and after[3] and (end is None or after[0] < end)
            if is_change or is_shortened:
                written[key, moment] = value, following
    return written


@pytest.mark.parametrize("kind", KINDS)
@given(KNOWN, CHANGES)
def test_a_history_follows_from_its_rows_and_the_changes_and_a_replay_adds_nothing(
    kind: str, lengths: Written, said: list[tuple[int, int, int]]
) -> None:
    of_type, values = KINDS[kind]
    shown = list(map(repr, pa.array(values, of_type).to_pylist()))
    firsts = list(map(shown.index, shown))
    changes = [(key, moment, firsts[value]) for key, moment, value in said]
    schema = pa.schema({"id": pa.int64(), "valid_from": pa.int64(), "v": of_type})
    stored = schema.append(pa.field("valid_to", pa.int64())).append(pa.field("current", pa.bool_()))

    def table(of: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
        columns = list(zip(*rows, strict=True)) or [()] * len(of)
        return pa.table([pa.array(column, field.type) for column, field in zip(columns, of, strict=True)], schema=of)

    def history(known: Written) -> Written:
        rows = [(*at, values[value], end, end is None) for at, (value, end) in known.items() if at[0] in changed]
        new = table(schema, [(key, moment, values[value]) for key, moment, value in changes])
        found = history_rows(table(stored, rows), new, ("id",), HistoryColumns()).to_pylist()
        assert all(row["current"] == (row["valid_to"] is None) for row in found)
        return {(row["id"], row["valid_from"]): (shown.index(repr(row["v"])), row["valid_to"]) for row in found}

    changed = {key for key, _, _ in changes}
    known = {(key, at): (firsts[value], length and at + length) for (key, at), (value, length) in lengths.items()}
    written = history(known)
    assert written == expected(known, changes)
    assert not history({**known, **written}), "a replay"


def test_of_a_wide_table_a_history_reads_the_keys_and_the_rows_of_the_changed_keys(
    tmp_path: Path, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_rows = 100_000
    monkeypatch.setattr(staged_rows, "_ROWS_PER_BUCKET", num_rows)
    wide = {f"c{number}": np.random.default_rng(number).random(num_rows) for number in range(30)}
    first = {"id": np.arange(num_rows), **wide, "valid_from": [day(1)] * num_rows}
    ingest(dataset_uri, [land(tmp_path, "a", **first)], options=HISTORY)  # type: ignore[arg-type]  # arrays
    size_bytes = sum(path.stat().st_size for path in (Path(dataset_uri) / "data").iterdir())
    task_bytes: list[int] = []

    def counted(task: HistoryTask) -> Any:
        before = lance_ops.bytes_read_counter()
        done = write_history(task)
        task_bytes.append(lance_ops.bytes_read_counter() - before)
        return done

    staged = land(tmp_path, "b", id=[7], **{name: [0.0] for name in wide}, valid_from=[day(2)])
    monkeypatch.setattr(staged_merge, "write_history", counted)
    result = ingest(dataset_uri, [staged], options=HISTORY, runner=InThreads(1))
    assert result.merged is not None and (result.merged.inserted, result.merged.updated) == (1, 1)
    assert len(task_bytes) == 1 and task_bytes[0] < size_bytes / 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": IngestMode.UPSERT}, "'upsert' needs keys"),
        ({"keys": ("id",)}, "takes no keys"),
        ({"mode": IngestMode.UPSERT, "keys": ("id",), "schema_mode": SchemaMode.OVERWRITE}, "replaces all of them"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        IngestOptions(**options)


def test_a_table_that_lacks_what_a_mode_needs_is_named(tmp_path: Path, dataset_uri: str) -> None:
    plain = land(tmp_path, "a", id=[1], v=["x"])
    with pytest.raises(InvalidInput, match="the raw files have no column 'valid_from'"):
        put(dataset_uri, HISTORY, plain)
    ingest(dataset_uri, [plain])
    for options, name in ((HISTORY, "valid_from"), (replace(UPSERT, keys=("key",)), "key")):
        with pytest.raises(InvalidInput, match=f"the table has no column '{name}', which mode"):
            put(dataset_uri, options, land(tmp_path, "b", id=[2], v=["y"]))
