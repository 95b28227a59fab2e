"""Reads verify checksums in every verb that writes what it read, and everywhere if the user says so."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceDataset
from lance_ops.core.errors import ChecksumMismatch, CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.file import checksum_report
from lance_ops.snapshot import VERIFY_CHECKSUMS_KEY, ChecksumUse, Snapshot
from lance_ops.store import open_store
from tests.checksums import flipped_bits

ROWS = 30_000
KEYS = np.random.default_rng(1).permutation(ROWS)


def rows() -> pa.Table:
    values = np.random.default_rng(2).normal(size=ROWS)
    return pa.table({"key": KEYS, "value": values, "text": [f"text {key % 501}" for key in KEYS.tolist()]})


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    return lance_ops.write_dataset(rows(), str(tmp_path / "table"), max_rows_per_file=ROWS // 2)


def damage(dataset: LanceDataset, column: str = "value") -> int:
    """Flip a bit in the middle of a column's only page in the second fragment, and return the page's first byte."""
    (file,) = dataset.snapshot.fragments[1].files
    reader = dataset.snapshot.open_data_file(file)
    page = reader.column(reader.schema.names.index(column)).pages[0]
    middle = max(page.buffers, key=lambda buffer: buffer.size)
    path = Path(dataset.uri, "data", file.path)
    data = bytearray(path.read_bytes())
    data[middle.position + middle.size // 2] ^= 0x10
    path.unlink()  # maps of the old file keep its bytes
    path.write_bytes(data)
    return middle.position


VERBS: dict[str, Callable[[LanceDataset], object]] = {
    "update of a column beside it": lambda table: table.update({"text": "'new'"}, "key % 2 = 0"),
    "update by a filter": lambda table: table.update({"text": "'new'"}, "value > 0"),
    "delete": lambda table: table.delete("value > 0"),
    "compaction": lambda table: table.optimize.compact_files(target_rows_per_fragment=ROWS),
    "index": lambda table: table.create_scalar_index("value", "BTREE"),
    "computed column": lambda table: table.add_columns({"twice": "value * 2"}),
    "column by a function": lambda table: table.add_columns(
        lambda batch: pa.record_batch([batch.column("value")], ["other"]), ["value"]
    ),
    "cast column": lambda table: table.alter_columns({"path": "value", "data_type": pa.float32()}),
    "forbidden nulls": lambda table: table.alter_columns({"path": "value", "nullable": False}),
    "merge on it": lambda table: table.merge_insert("value").when_not_matched_insert_all().execute(rows().slice(0, 5)),
    "merge that keeps it": lambda table: (
        table.merge_insert("key")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(rows().select(["key", "text"]))
    ),
    "fragment's delete": lambda table: table.get_fragments()[1].delete("value > 0"),
    "fragment's columns": lambda table: table.get_fragments()[1].merge_columns({"twice": "value * 2"}),
    "deep clone": lambda table: table.deep_clone(f"{table.uri}-copy", table.version),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_writes_what_it_read_refuses_a_changed_page(dataset: LanceDataset, verb: str) -> None:
    damage(dataset)
    opened = lance_ops.dataset(dataset.uri)
    files = {path for path in Path(dataset.uri).rglob("*") if path.is_file()}
    with pytest.raises(ChecksumMismatch, match=r"\.lance: bytes \d+ to \d+: .*lance-ops verify"):
        VERBS[verb](opened)
    assert lance_ops.dataset(dataset.uri).version == dataset.version
    assert {path for path in Path(dataset.uri).rglob("*") if path.is_file()} == files
    assert not any(path.is_file() for path in Path(f"{dataset.uri}-copy").rglob("*"))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_succeeds_on_an_intact_table(dataset: LanceDataset, verb: str) -> None:
    VERBS[verb](lance_ops.dataset(dataset.uri))


READS: dict[str, Callable[[LanceDataset], object]] = {
    "scan": lambda table: table.to_table(),
    "filter": lambda table: table.to_table(columns=["key"], filter="value > 0"),
    "take": lambda table: table.take(list(range(0, ROWS, 50))),
    "take of few": lambda table: table.take([5, ROWS * 3 // 4]),
    "order": lambda table: table.to_table(order_by="value"),
    "fragment": lambda table: table.get_fragments()[1].to_table(),
    "pyarrow": lambda table: table.scanner(columns=["value"]).to_reader().read_all(),
}


@pytest.mark.parametrize("read", READS)
def test_a_read_verifies_pages_if_the_handle_or_the_table_says_so(dataset: LanceDataset, read: str) -> None:
    damage(dataset)
    READS[read](lance_ops.dataset(dataset.uri))  # by default the changed value is not noticed
    with pytest.raises(ChecksumMismatch):
        READS[read](lance_ops.dataset(dataset.uri, verify_checksums="always"))
    lance_ops.dataset(dataset.uri).update_config({VERIFY_CHECKSUMS_KEY: "always"})
    with pytest.raises(ChecksumMismatch):
        READS[read](lance_ops.dataset(dataset.uri))
    READS[read](lance_ops.dataset(dataset.uri, verify_checksums="maintenance"))


def test_a_handle_keeps_its_option_across_versions_branches_and_processes(dataset: LanceDataset) -> None:
    handle = lance_ops.dataset(dataset.uri, verify_checksums="always")
    handle.tags.create("first", 1)
    branch = handle.create_branch("branch")
    handle.delete("key = 3")
    for snapshot in (
        handle.snapshot,
        handle.checkout_version(1).snapshot,
        handle.checkout_version("first").snapshot,
        pickle.loads(pickle.dumps(handle.snapshot)),
        handle.snapshot.latest(),
        branch.snapshot,
    ):
        assert snapshot.verify_checksums is ChecksumUse.ALWAYS


def test_a_verb_does_not_change_what_later_reads_of_its_handle_verify(dataset: LanceDataset) -> None:
    handle = lance_ops.dataset(dataset.uri)
    handle.delete("key = 3")
    handle.update({"text": "'x'"}, "key = 4")
    handle.optimize.compact_files()
    assert handle.snapshot.verify_checksums is None
    assert not handle.snapshot.verifies_reads


def test_an_unknown_option_is_refused_with_the_known_ones(dataset: LanceDataset) -> None:
    with pytest.raises(InvalidInput, match="verify_checksums is 'never': set it to 'always' or 'maintenance'"):
        lance_ops.dataset(dataset.uri, verify_checksums="never")
    dataset.update_config({VERIFY_CHECKSUMS_KEY: "sometimes"})
    with pytest.raises(InvalidInput, match=r"table: the config key lance_ops\.verify_checksums is 'sometimes'"):
        lance_ops.dataset(dataset.uri).to_table()
    assert lance_ops.dataset(dataset.uri, verify_checksums="always").count_rows() == ROWS


def test_a_verifying_snapshot_shares_what_was_computed(dataset: LanceDataset) -> None:
    snapshot = Snapshot.open(dataset.uri)
    verifying = snapshot.verifying()
    assert verifying.verifies_reads
    assert verifying.fragments_by_id is snapshot.fragments_by_id
    assert verifying.read_cache is snapshot.read_cache
    assert verifying.verifying() is verifying


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("use", ["always", "maintenance"])
def test_a_blob_is_verified_with_its_file(tmp_path: Path, version: str, use: str) -> None:
    blobs = [np.random.default_rng(i).bytes(30_000) for i in range(8)]
    if version == "2.2":
        table = pa.table([lance_ops.blob_array(blobs)], schema=pa.schema([lance_ops.blob_field("blob")]))
    else:
        field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        table = pa.table([pa.array(blobs, pa.large_binary())], schema=pa.schema([field]))
    made = lance_ops.write_dataset(table, str(tmp_path / "blobs"), data_storage_version=version)
    (path,) = Path(made.uri, "data").glob("*.lance")
    data = bytearray(path.read_bytes())
    at = bytes(data).find(blobs[5])
    assert at >= 0
    data[at + 20_000] ^= 1
    path.write_bytes(data)

    def blob(row: int) -> bytes:
        (found,) = lance_ops.dataset(made.uri, verify_checksums=use).take_blobs("blob", indices=[row])
        assert found is not None
        content: bytes = found.readall()
        return content

    if use == "always":
        with pytest.raises(ChecksumMismatch):
            blob(5)
    else:
        assert blob(5) != blobs[5]
    assert blob(0) == blobs[0]


SIDECAR_VERBS: dict[str, Callable[[LanceDataset], object]] = {
    "compaction": lambda table: table.optimize.compact_files(),
    "update of a column beside it": lambda table: table.update({"id": "id + 100"}, "id < 5"),
    "deep clone": lambda table: table.deep_clone(f"{table.uri}-copy", table.version),
    "read": lambda table: [
        blob and blob.read()
        for blob in lance_ops.dataset(table.uri, verify_checksums="always").take_blobs("blob", indices=[0, 1, 2])
    ],
}


@pytest.mark.parametrize("size", [70_000, 4_300_000])
@pytest.mark.parametrize("verb", SIDECAR_VERBS)
def test_a_changed_sidecar_is_refused_wherever_its_blobs_are_written_again(
    tmp_path: Path, verb: str, size: int
) -> None:
    values = [np.random.default_rng(i).bytes(size) for i in range(3)]
    schema = pa.schema([pa.field("id", pa.int64()), lance_ops.blob_field("blob")])
    table = pa.table([pa.array(range(3)), lance_ops.blob_array(values)], schema=schema)
    uri = str(tmp_path / "blobs")
    for _ in range(2):  # small fragments, which a compaction merges
        made = lance_ops.write_dataset(table, uri, mode="append")
    SIDECAR_VERBS["read"](lance_ops.dataset(uri))
    (file,) = made.snapshot.fragments[0].files
    folder = Path(uri, "data", file.path).with_suffix("")
    path = next(path for path in folder.glob("*.blob") if values[1] in path.read_bytes())
    data = bytearray(path.read_bytes())
    data[data.find(values[1]) + 66_000] ^= 4
    path.write_bytes(data)
    damaged = lance_ops.dataset(uri)
    with pytest.raises(ChecksumMismatch, match=path.name):
        SIDECAR_VERBS[verb](damaged)
    assert lance_ops.dataset(uri).version == made.version


def index_survey(uri: str, count: int) -> Counter[str]:
    """Return how often a lookup in an index with a flipped bit gave the right rows, other rows, or an error."""
    outcomes: Counter[str] = Counter()
    wanted = [f"key = {ROWS // 3}", "key < 700", f"key >= {ROWS - 50}"]
    expected = [lance_ops.dataset(uri).to_table(filter=each, use_scalar_index=False) for each in wanted]
    for path in Path(uri, "_indices").rglob("*.lance"):
        intact = path.read_bytes()
        assert checksum_report(open_store(str(path.parent)), path.name).has_checksums
        for at, changed in flipped_bits(intact, count, seed=3):
            path.unlink()
            path.write_bytes(changed)
            try:
                handle = lance_ops.dataset(uri)
                found = [handle.to_table(filter=each) for each in wanted]
                outcomes["right" if found == expected else f"silent at {at}"] += 1
            except (CorruptFile, UnsupportedFeature) as error:
                outcomes["error" if path.name in str(error) else f"unnamed: {error}"] += 1
        path.unlink()
        path.write_bytes(intact)
    return outcomes


def test_a_flipped_bit_in_an_index_gives_the_right_rows_or_a_typed_error(dataset: LanceDataset) -> None:
    dataset.create_scalar_index("key", "BTREE")
    assert "ScalarIndexQuery" in dataset.scanner(filter="key = 5").explain_plan()
    outcomes = index_survey(dataset.uri, 20)
    assert set(outcomes) <= {"right", "error"} and outcomes["error"] > 5, outcomes


@pytest.mark.soak
def test_many_flipped_bits_in_an_index_give_the_right_rows_or_a_typed_error(dataset: LanceDataset) -> None:
    dataset.create_scalar_index("key", "BTREE")
    assert set(index_survey(dataset.uri, 200)) <= {"right", "error"}
