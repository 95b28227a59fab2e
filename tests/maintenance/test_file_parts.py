"""A raw file longer than what a task reads is cut into parts by its row groups."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.errors import RawFileNotAsListed, RawFileRefused, RawFileTooLarge
from lance_ops.maintenance.ingest import (
    BadBatches,
    IngestBatch,
    IngestMode,
    IngestOptions,
    RawFile,
    RawReader,
    RawReading,
    found_file,
    ingest,
    plan_ingest,
    raw_copies,
    survey_ingest,
)
from lance_ops.maintenance.ingest.decoding import RawLimits, RowGroups
from lance_ops.maintenance.ingest.planning.file_parts import FilePart, parts_of, share_parts
from lance_ops.maintenance.ingest.raw_locations import StatedFile
from lance_ops.maintenance.ingest.running import commit_ingest, execute
from lance_ops.runners import InThreads, Job
from tests.pickling_runner import PicklingRunner

ROWS = 100
NUMBERS = pa.table({"x": range(4 * ROWS)})
OPTIONS = IngestOptions(reading=RawReading(isolated=False), bad_batches=BadBatches.SET_ASIDE)


def parquet(table: pa.Table = NUMBERS, num_rows: int = ROWS) -> bytes:
    with io.BytesIO() as file:
        pq.write_table(table, file, row_group_size=num_rows)
        return file.getvalue()


def ipc(table: pa.Table = NUMBERS, num_rows: int = ROWS) -> bytes:
    with io.BytesIO() as file:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, num_rows)
        return file.getvalue()


def orc(table: pa.Table) -> bytes:
    with io.BytesIO() as file:
        pyarrow.orc.write_table(table, file, stripe_size=64 * 1024, batch_size=1000)
        return file.getvalue()


def land(folder: Path, name: str, content: bytes) -> IngestBatch:
    (folder / name).write_bytes(content)
    return IngestBatch(Path(name).stem, (RawFile(str(folder / name), len(content), "t"),))


def in_parts(batch: IngestBatch, options: IngestOptions = OPTIONS, count: int = 3) -> IngestOptions:
    """Return the options with which a batch of one file takes about so many tasks."""
    return replace(options, max_bytes_per_task=batch.files[0].size_bytes // count)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.orc"])
def test_a_long_file_is_read_by_several_tasks_and_becomes_one_version(
    tmp_path: Path, dataset_uri: str, name: str
) -> None:
    # ORC begins a stripe after so many rows that Arrow does not compress well.
    table = NUMBERS if name != "a.orc" else pa.table({"x": np.random.default_rng(1).integers(0, 2**62, 40_000)})
    content = {"a.parquet": parquet, "a.arrow": ipc, "a.orc": orc}[name](table)
    runner = PicklingRunner()
    batches = [land(tmp_path, "small.parquet", parquet(pa.table({"x": [-1]}))), land(tmp_path, name, content)]
    options = in_parts(batches[1], replace(OPTIONS, reading=RawReading(isolated=name == "a.parquet")))
    found = ingest(dataset_uri, batches, options=options, runner=runner)
    assert (found.version, found.ingested) == (1, ("small", "a"))
    assert found.rows_by_batch == {"small": 1, "a": len(table)}
    assert next(count for verb, count in runner.jobs if verb == "ingest into") > 2
    assert lance_ops.dataset(dataset_uri).to_table()["x"].to_pylist() == [-1, *table["x"].to_pylist()]
    survey = survey_ingest(f"{dataset_uri}-new", batches, options=options)
    assert [each.key for each in survey.files] == ["small", "a"]
    again = ingest(dataset_uri, batches, options=replace(options, max_bytes_per_task=2**30))
    assert again.skipped == ("small", "a"), "the token of a batch is that of its files"


def test_rows_in_parts_are_merged_in_the_order_of_the_file(tmp_path: Path, dataset_uri: str) -> None:
    table = pa.table({"id": [*range(ROWS)] * 4, "v": range(4 * ROWS)})
    batch = land(tmp_path, "a.parquet", parquet(table))
    options = in_parts(batch, replace(OPTIONS, mode=IngestMode.UPSERT, keys=("id",)))
    found = ingest(dataset_uri, [batch], options=options)
    assert found.merged is not None and found.merged.inserted == ROWS
    kept = lance_ops.dataset(dataset_uri).to_table().sort_by("id")
    assert kept.equals(pa.table({"id": range(ROWS), "v": range(3 * ROWS, 4 * ROWS)}))


def test_a_bad_late_row_group_sets_the_whole_batch_aside_and_leaves_no_file(tmp_path: Path, dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"x": pa.array([-1], pa.int16())}), dataset_uri)
    wide = land(tmp_path, "wide.parquet", parquet(pa.table({"x": [*range(4 * ROWS - 1), 2**40]})))
    torn = bytearray(parquet())
    at = pq.ParquetFile(pa.BufferReader(bytes(torn))).metadata.row_group(3).column(0).data_page_offset
    torn[at : at + 64] = b"\xff" * 64
    batches = [wide, land(tmp_path, "torn.parquet", bytes(torn)), land(tmp_path, "good.parquet", parquet())]
    found = ingest(dataset_uri, batches, options=in_parts(wide), runner=PicklingRunner())
    assert (found.ingested, sorted(found.refused)) == (("good",), ["torn", "wide"])
    assert "wide.parquet (row groups 4 to 4): column 'x'" in found.refused["wide"]
    assert lance_ops.dataset(dataset_uri).to_table()["x"].to_pylist() == [-1, *range(4 * ROWS)]
    named = {file.path for fragment in lance_ops.dataset(dataset_uri).snapshot.fragments for file in fragment.files}
    assert {path.name for path in (Path(dataset_uri) / "data").iterdir()} == named


def test_a_file_with_other_row_groups_than_planned_is_refused(tmp_path: Path, dataset_uri: str) -> None:
    batch = land(tmp_path, "a.parquet", parquet())
    plan = plan_ingest(dataset_uri, [batch], options=in_parts(batch, replace(OPTIONS, bad_batches=BadBatches.REFUSE)))
    Path(batch.files[0].uri).write_bytes(parquet(num_rows=ROWS // 2))
    with pytest.raises(RawFileRefused, match="it has 8 row groups, and had 4"):
        commit_ingest(plan, [execute(task) for task in plan.tasks])


def test_a_refused_object_that_is_not_the_one_that_was_planned_is_not_as_listed(
    tmp_path: Path, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = {"a.parquet": parquet()}

    class FileSystem:
        def cat_file(self, path: str, start: int, end: int) -> bytes:
            return store[path][start:end]

        def open(self, path: str, _: str) -> io.BytesIO:
            return io.BytesIO(store[path])

        def info(self, path: str) -> dict[str, Any]:
            return {"size": len(store[path])}

    monkeypatch.setattr(raw_copies, "remote_file_system", lambda uri, _: (FileSystem(), uri.removeprefix("s3://in/")))
    size_bytes = len(store["a.parquet"])
    stated = StatedFile.of({"size": size_bytes})
    batch = IngestBatch("a", (RawFile("s3://in/a.parquet", size_bytes, "t", stated=stated),))
    plan = plan_ingest(dataset_uri, [batch], options=in_parts(batch, replace(OPTIONS, schema=NUMBERS.schema)))
    assert len(plan.tasks) > 1
    store["a.parquet"] = parquet(num_rows=ROWS // 2)
    outcome = execute(plan.tasks[0])
    assert outcome.not_as_listed == {"a"}, outcome.refused


def test_a_local_file_that_is_overwritten_while_it_is_read_is_not_as_listed(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes(ipc())
    with RawReader({}, RawReading(isolated=False)) as reader:
        batches = reader.batches(found_file(str(path), {}))
        assert next(batches).num_rows == ROWS
        path.write_bytes(bytes(path.stat().st_size - 1))
        with pytest.raises(RawFileNotAsListed):
            list(batches)


def test_the_limit_of_rows_holds_for_the_whole_file_where_its_footer_states_them(tmp_path: Path) -> None:
    reading = RawReading(RawLimits(rows=2 * ROWS), isolated=False)
    long, stream = land(tmp_path, "a.parquet", parquet()).files[0], land(tmp_path, "a.arrow", ipc()).files[0]
    with RawReader({}, reading) as reader:
        with pytest.raises(RawFileTooLarge, match="400 rows"):
            list(reader.batches(long, groups=RowGroups(0, 1, 4)))
        assert sum(batch.num_rows for batch in reader.batches(stream, groups=RowGroups(0, 2, 4))) == 2 * ROWS
        with pytest.raises(RawFileTooLarge, match="more than 200 rows"):
            list(reader.batches(stream, groups=RowGroups(0, 3, 4)))


def test_very_many_short_row_groups_are_few_parts(tmp_path: Path, dataset_uri: str) -> None:
    table = pa.table({"x": range(1000)})
    batch = land(tmp_path, "a.arrow", ipc(table, 1))
    options = in_parts(batch)
    files = [("a", batch.files[0])]
    parts = parts_of(files, options.max_bytes_per_task, options.reading, {}, InThreads(1), Job("look", "t"))
    plan = plan_ingest(dataset_uri, [batch], options=options)
    assert len(plan.tasks) == 4 and len(parts) <= 33 * len(plan.tasks)
    commit_ingest(plan, [execute(task) for task in plan.tasks])
    assert lance_ops.dataset(dataset_uri).to_table()["x"].to_pylist() == table["x"].to_pylist()


def test_a_task_copies_only_its_own_row_groups_from_a_store(
    tmp_path: Path, dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(7).integers(0, 2**62, 300_000)
    table = pa.table({"x": values, "y": pa.array(values % 7).dictionary_encode()})
    content, num_bytes = parquet(table, 50_000), 0

    class CountingFileSystem:
        def cat_file(self, _: str, start: int, end: int) -> bytes:
            nonlocal num_bytes
            num_bytes += end - start
            return content[start:end]

    monkeypatch.setattr(raw_copies, "remote_file_system", lambda uri, _: (CountingFileSystem(), uri))
    batch = IngestBatch("a", (RawFile("s3://in/a.parquet", len(content), "t"),))
    options = in_parts(batch, replace(OPTIONS, schema=pa.schema({"x": pa.int64(), "y": pa.int64()})))
    plan = plan_ingest(dataset_uri, [batch], options=options)
    footer = raw_copies._TAIL_BYTES
    assert len(plan.tasks) == 3 and num_bytes == footer
    commit_ingest(plan, [execute(task) for task in plan.tasks])
    assert num_bytes < len(content) + 4 * footer + len(plan.tasks) * 2048
    assert lance_ops.dataset(dataset_uri).to_table()["x"].to_numpy().tolist() == values.tolist()


@pytest.mark.parametrize("uri", ["https://in/a.parquet", "s3://in/a.orc", "s3://in/a.arrow", "/in/a.csv"])
def test_a_file_that_cannot_be_read_in_parts_is_not_looked_at(uri: str) -> None:
    with RawReader({}) as reader:
        assert reader.row_group_ranges(RawFile(uri, 2**40, "t"), 2**20) == []


def groups(key: str, *sizes: int) -> list[FilePart]:
    file = RawFile(f"/{key}.parquet", sum(sizes), "t")
    return [FilePart(key, file, size, RowGroups(n, n + 1, len(sizes))) for n, size in enumerate(sizes)]


SHARES: dict[str, tuple[list[FilePart], list[list[tuple[str, int, int]]]]] = {
    "equal tasks": (groups("a", *[10] * 12), [[("a", 0, 6)], [("a", 6, 12)]]),
    "one group too long": (groups("a", 10, 300, 10), [[("a", 0, 1)], [("a", 1, 2)], [("a", 2, 3)]]),
    "a task of two files": (
        groups("a", 90, 30) + groups("b", 60, 30),
        [[("a", 0, 1)], [("a", 1, 2), ("b", 0, 1)], [("b", 1, 2)]],
    ),
    "no size": (groups("a", *[0] * 99), [[("a", 0, 99)]]),
}


@pytest.mark.parametrize("name", SHARES)
def test_adjacent_row_groups_of_a_task_are_one_part(name: str) -> None:
    parts, expected = SHARES[name]
    shares = [[(part.key, *part.groups[:2]) for part in share if part.groups] for share in share_parts(parts, 100, 2)]
    assert shares == expected
    assert sum(part.size_bytes for part in parts) == sum(
        part.size_bytes for share in share_parts(parts, 100, 2) for part in share
    )
