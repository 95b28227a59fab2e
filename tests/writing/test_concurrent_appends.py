"""Several processes append at the same time: the table has every row once, and versions without gaps."""

import multiprocessing
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops

PROCESSES, APPENDS, ROWS = 4, 8, 5


def append(uri: str, writer: int) -> None:
    for at in range(APPENDS):
        ids = [(writer * APPENDS + at) * ROWS + row for row in range(ROWS)]
        lance_ops.write_dataset(pa.table({"id": ids}), uri, mode="append")


@pytest.mark.parametrize("exists", [True, False], ids=["existing table", "racing to create it"])
def test_concurrent_appends_of_four_processes_keep_every_row_once(dataset_uri: str, exists: bool) -> None:
    if exists:
        lance_ops.write_dataset(pa.table({"id": pa.array([], pa.int64())}), dataset_uri, enable_stable_row_ids=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # otherwise each process imports the library
    writers = [context.Process(target=append, args=(dataset_uri, writer)) for writer in range(PROCESSES)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * PROCESSES
    dataset = lance_ops.dataset(dataset_uri)
    table = dataset.to_table(with_row_id=True)
    ids = table.column("id").to_pylist()
    assert sorted(ids) == list(range(PROCESSES * APPENDS * ROWS))
    if exists:
        assert table.column("_rowid").to_pylist() == list(range(PROCESSES * APPENDS * ROWS))
    versions = [version["version"] for version in dataset.versions()]
    assert versions == list(range(1, PROCESSES * APPENDS + 1 + exists))
    for version in versions:
        assert dataset.read_transaction(version) is not None
    assert len(list((Path(dataset_uri) / "data").iterdir())) == PROCESSES * APPENDS
