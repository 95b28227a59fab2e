"""How many store calls and decoded fragments each verb needs, against fragments and versions.

A call is a request in an object store. Each verb runs on a new handle of a new table at one size, its double and its
fourfold, in a process that has forgotten every manifest. A verb is `constant` if the count stays, and `in proportion`
if the count is a constant and as much for each fragment or version; nothing else is allowed.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.file_names import DELETIONS_DIR
from lance_ops.maintenance.cleanup import version_removal
from lance_ops.maintenance.erasure import Subject
from lance_ops.maintenance.erasure.searching import Search
from lance_ops.reading import ScanRequest, bind_filter, plan_scan, scan_plan
from lance_ops.runners import InThreads
from lance_ops.snapshot import Snapshot, stored_sizes
from lance_ops.store import BytesLike, LocalStore, MemoryStore
from lance_ops.table import MANIFEST_CACHE, Fragment, Manifest
from lance_ops.table.fragments import fragment_list
from lance_ops.table.fragments.fragment_files import FragmentFiles, files_named_in
from lance_ops.transactions import TOKEN, find_token
from lance_ops.transactions.transaction import StoredTransaction
from tests.fragments_read import note_fragments_read

Verb = Callable[[str, int], object]

ROWS = 20
"""Rows in each fragment."""

COUNTED = (
    "get", "view", "get_ranges", "size", "exists", "put", "put_if_absent", "open_writer", "list", "list_names",
    "list_temporary", "delete", "copy",
)  # fmt: skip


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the calls of every memory store by method.

    Fragments that are decoded, or whose files' names are read, count under `decoded`.
    """
    made: Counter[str] = Counter()
    monkeypatch.setattr(type(MANIFEST_CACHE), "add", lambda *_: None)  # a check of this suite decodes what is added
    for name in COUNTED:
        monkeypatch.setattr(MemoryStore, name, _counted(getattr(MemoryStore, name), name, made))
    monkeypatch.setattr(Fragment, "from_pb", staticmethod(_counted(Fragment.from_pb, "decoded", made)))
    monkeypatch.setattr(fragment_list, "files_named_in", _counting_messages(files_named_in, made))
    return made


def _counting_messages(
    read: Callable[[Sequence[bytes], str], FragmentFiles], made: Counter[str]
) -> Callable[[Sequence[bytes], str], FragmentFiles]:
    def counting(messages: Sequence[bytes], path: str) -> FragmentFiles:
        made["decoded"] += len(messages)
        return read(messages, path)

    return counting


def _counted(call: Callable[..., object], name: str, made: Counter[str]) -> Callable[..., object]:
    def counting(*arguments: object, **options: object) -> object:
        made[name] += 1
        return call(*arguments, **options)

    return counting


@pytest.fixture
def uris(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield the URIs of tables that do not exist yet."""
    return (f"memory://growth/{request.node.name.replace(' ', '_')}/{number}.lance" for number in count())


def _table(fragments: int) -> pa.Table:
    rows = np.arange(fragments * ROWS)
    return pa.table({"id": rows, "v": rows / 2})


def _measure(
    verb: Verb, make: Callable[[int], str], sizes: tuple[int, int, int], counts: Counter[str]
) -> tuple[list[int], list[int]]:
    """Return the store calls and the decoded fragments of the verb at each size."""
    calls, decoded = [], []
    for size in sizes:
        uri = make(size)
        MANIFEST_CACHE.reset()
        counts.clear()
        verb(uri, size)
        decoded.append(counts.pop("decoded", 0))
        calls.append(counts.total())
    return calls, decoded


def _order(numbers: list[int]) -> str:
    """Return how numbers at a size, its double and its fourfold grow."""
    first, second, third = numbers
    if first == second == third:
        return "constant"
    return "in proportion" if third - second == 2 * (second - first) else f"neither: {numbers}"


BY_FRAGMENTS: dict[str, tuple[Verb, str, str]] = {
    "open": (lambda uri, _: lance_ops.dataset(uri).schema, "constant", "constant"),
    "count": (lambda uri, _: lance_ops.dataset(uri).count_rows(), "constant", "constant"),
    "versions": (lambda uri, _: lance_ops.dataset(uri).versions(), "constant", "constant"),
    "append": (lambda uri, _: lance_ops.dataset(uri).insert(_table(1)), "constant", "constant"),
    "take": (lambda uri, _: lance_ops.dataset(uri).take([5]), "constant", "constant"),
    "scan": (lambda uri, _: lance_ops.dataset(uri).to_table(), "in proportion", "in proportion"),
    "scan of the first rows": (lambda uri, _: lance_ops.dataset(uri).to_table(limit=5), "constant", "constant"),
    "offset near the end": (
        lambda uri, size: lance_ops.dataset(uri).to_table(limit=5, offset=(size - 2) * (ROWS - 1)),
        "constant",
        "constant",
    ),
    "filter": (lambda uri, _: lance_ops.dataset(uri).to_table(filter="v > 2"), "in proportion", "in proportion"),
    "look-up": (lambda uri, _: lance_ops.dataset(uri).to_table(filter="id = 25"), "constant", "constant"),
    "delete of one row": (lambda uri, _: lance_ops.dataset(uri).delete("id = 25"), "constant", "constant"),
    "update of one row": (
        lambda uri, _: lance_ops.dataset(uri).update({"v": "7"}, where="id = 25"),
        "constant",
        "constant",
    ),
    "delete in every fragment": (
        lambda uri, _: lance_ops.dataset(uri).delete(f"id % {ROWS} = 7"),
        "in proportion",
        "in proportion",
    ),
    "clean-up": (
        lambda uri, _: lance_ops.dataset(uri).cleanup_old_versions(timedelta(0)),
        "constant",
        "in proportion",
    ),
}
"""For each verb: how its store calls grow, and how the fragments that it decodes do."""


@pytest.mark.parametrize("verb", BY_FRAGMENTS)
def test_calls_and_decoded_fragments_grow_with_the_fragments_as_stated(
    verb: str, uris: Iterator[str], counts: Counter[str]
) -> None:
    def make(fragments: int) -> str:
        dataset = lance_ops.write_dataset(_table(fragments), next(uris), max_rows_per_file=ROWS)
        dataset.create_scalar_index("id", "BTREE")
        dataset.delete(f"id % {ROWS} = 3")
        return dataset.uri

    act, calls, decoded = BY_FRAGMENTS[verb]
    measured = _measure(act, make, (20, 40, 80), counts)
    assert (_order(measured[0]), _order(measured[1])) == (calls, decoded), measured


READ_DELETIONS: dict[str, Verb] = {
    "range by index": lambda uri, size: lance_ops.dataset(uri).to_table(filter=f"id >= 5 and id < {ROWS * size - 5}"),
    "take": lambda uri, size: lance_ops.dataset(uri).take(range(0, size * (ROWS - 1), ROWS - 1)),
    "scan": lambda uri, _: lance_ops.dataset(uri).to_table(),
}


@pytest.mark.parametrize("verb", READ_DELETIONS)
def test_short_deletion_files_are_read_together(
    verb: str, uris: Iterator[str], counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fragments = 20
    dataset = lance_ops.write_dataset(_table(fragments), next(uris), max_rows_per_file=ROWS)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete(f"id % {ROWS} = 3")
    read_alone: list[str] = []
    get = MemoryStore.get

    def noting(store: MemoryStore, path: str) -> pa.Buffer:
        read_alone.append(path)
        return get(store, path)

    monkeypatch.setattr(MemoryStore, "get", noting)
    READ_DELETIONS[verb](dataset.uri, fragments)
    assert not [path for path in read_alone if path.startswith(DELETIONS_DIR)]


def test_clean_up_decodes_each_fragment_a_few_times_however_many_versions_have_it(
    uris: Iterator[str], counts: Counter[str]
) -> None:
    def make(versions: int) -> str:
        dataset = lance_ops.write_dataset(_table(10), next(uris), max_rows_per_file=ROWS)
        for number in range(versions - 1):
            dataset.update_config({"number": str(number)})
        return dataset.uri

    act = BY_FRAGMENTS["clean-up"][0]
    _, decoded = _measure(act, make, (8, 16, 32), counts)
    assert _order(decoded) == "constant", decoded


def test_clean_up_decodes_no_fragment_that_a_delete_names(uris: Iterator[str], counts: Counter[str]) -> None:
    fragments, deletes = 10, 6
    dataset = lance_ops.write_dataset(_table(fragments), next(uris), max_rows_per_file=ROWS)
    for row in range(deletes):
        dataset.delete(f"id % {ROWS} = {row}")
    MANIFEST_CACHE.reset()
    counts.clear()
    assert dataset.cleanup_old_versions(timedelta(0)).old_versions == deletes
    assert counts["decoded"] == fragments * (deletes + 1)


def test_an_erasure_reads_the_texts_of_each_version_once_however_often_it_searches(
    uris: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_ops.write_dataset(_table(2), next(uris), max_rows_per_file=ROWS)
    for row in range(5):
        dataset.delete(f"id = {row}")
    reads: Counter[str] = Counter()
    predicate_of = _counted(lambda transaction: f"id = {transaction.uuid}", "predicate", reads)
    monkeypatch.setattr(StoredTransaction, "delete_predicate", property(predicate_of))
    search = Search(Subject("id < 3"), InThreads())
    for _ in range(3):
        search.run(dataset.snapshot)
    assert reads == {"predicate": 6}


@pytest.mark.parametrize(("in_place", "threads"), [(True, 1), (False, 4)])
def test_one_thread_writes_all_deletion_files_where_a_write_is_no_request(
    in_place: bool, threads: int, uris: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fragments = 60
    dataset = lance_ops.write_dataset(_table(fragments), next(uris), max_rows_per_file=ROWS)
    monkeypatch.setattr("lance_ops.writing.deletion_files._SLOW_SECONDS", math.inf)
    monkeypatch.setattr(MemoryStore, "reads_in_place", in_place)
    monkeypatch.setattr(Snapshot, "calls_at_once", 4)
    writers: list[int] = []
    all_at_once = threading.Barrier(threads, timeout=60)
    put = MemoryStore.put

    def noting(store: MemoryStore, path: str, data: BytesLike, *, durable: bool = True) -> None:
        if path.startswith(f"{DELETIONS_DIR}/"):
            writers.append(threading.get_ident())
            all_at_once.wait()
        put(store, path, data, durable=durable)

    monkeypatch.setattr(MemoryStore, "put", noting)
    assert dataset.delete(f"id % {ROWS} = 7")["num_deleted_rows"] == fragments
    assert len(writers) == fragments
    assert len(set(writers)) == threads
    assert (threading.get_ident() in writers) is in_place
    assert dataset.count_rows() == fragments * (ROWS - 1)


def test_threads_write_deletion_files_where_the_first_ones_are_slow(
    uris: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, timed, fragments = 4, 8, 60
    dataset = lance_ops.write_dataset(_table(fragments), next(uris), max_rows_per_file=ROWS)
    monkeypatch.setattr("lance_ops.writing.deletion_files._SLOW_SECONDS", -1)
    monkeypatch.setattr("lance_ops.writing.deletion_files._TIMED_FILES", timed)
    monkeypatch.setattr("lance_ops.writing.deletion_files._SLOW_WRITERS", threads)
    writers: list[int] = []
    all_at_once = threading.Barrier(threads, timeout=60)
    put = MemoryStore.put

    def noting(store: MemoryStore, path: str, data: BytesLike, *, durable: bool = True) -> None:
        if path.startswith(f"{DELETIONS_DIR}/"):
            writers.append(threading.get_ident())
            if len(writers) > timed:
                all_at_once.wait()
        put(store, path, data, durable=durable)

    monkeypatch.setattr(MemoryStore, "put", noting)
    dataset.delete(f"id % {ROWS} = 7")
    assert writers[:timed] == [threading.get_ident()] * timed
    assert (len(writers), len({*writers[timed:]} - {threading.get_ident()})) == (fragments, threads)
    assert dataset.count_rows() == fragments * (ROWS - 1)


BY_VERSIONS: dict[str, tuple[Verb, str]] = {
    "open": (lambda uri, _: lance_ops.dataset(uri).schema, "constant"),
    "open a numbered version": (lambda uri, _: lance_ops.dataset(uri, version=3).schema, "constant"),
    "scan": (lambda uri, _: lance_ops.dataset(uri).to_table(), "constant"),
    "filter": (lambda uri, _: lance_ops.dataset(uri).to_table(filter="v > 2"), "constant"),
    "look-up": (lambda uri, _: lance_ops.dataset(uri).to_table(filter="id = 5"), "constant"),
    "append": (lambda uri, _: lance_ops.dataset(uri).insert(_table(1)), "constant"),
    "take": (lambda uri, _: lance_ops.dataset(uri).take([5]), "constant"),
    "delete": (lambda uri, _: lance_ops.dataset(uri).delete("id = 5"), "constant"),
    "versions": (lambda uri, _: lance_ops.dataset(uri).versions(), "in proportion"),
    "clean-up": (lambda uri, _: lance_ops.dataset(uri).cleanup_old_versions(timedelta(0)), "in proportion"),
}


@pytest.mark.parametrize("verb", BY_VERSIONS)
def test_calls_grow_with_the_versions_as_stated(verb: str, uris: Iterator[str], counts: Counter[str]) -> None:
    def make(versions: int) -> str:
        dataset = lance_ops.write_dataset(_table(1), next(uris))
        dataset.create_scalar_index("id", "BTREE")
        for number in range(versions - 2):
            dataset.update_config({"number": str(number)})
        return dataset.uri

    act, calls = BY_VERSIONS[verb]
    measured, _ = _measure(act, make, (8, 16, 32), counts)
    assert _order(measured) == calls, measured


@pytest.mark.parametrize("verb", ["open", "open a numbered version", "append", "take", "delete"])
def test_on_a_local_disk_no_version_is_listed(
    verb: str, tmp_path: Path, counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = lance_ops.write_dataset(_table(1), tmp_path / "table.lance").uri
    for number in range(20):
        lance_ops.dataset(uri).update_config({"number": str(number)})
    with LocalStore(uri).watch_directory("_versions") as names:
        if names() is None and verb in ("append", "delete"):
            pytest.skip("this file system does not tell which names come and go, so a commit lists them")
    for name in ("list", "list_names", "put_if_absent_with_callbacks"):
        monkeypatch.setattr(LocalStore, name, _counted(getattr(LocalStore, name), name, counts))
    act, _ = BY_VERSIONS[verb]
    counts.clear()
    for _ in range(3):
        act(uri, 20)
    assert (counts["list"], counts["list_names"]) == (0, 0)
    assert counts["put_if_absent_with_callbacks"] == {"append": 3, "delete": 1}.get(verb, 0)


def test_clean_up_lists_the_versions_equally_often_however_many_there_are(
    tmp_path: Path, counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_removal, "_IN_PLACE_AT_ONCE", 4)
    list_names = LocalStore.list_names

    def recording(store: LocalStore, directory: str, limit: int | None = None) -> Sequence[str]:
        counts[directory] += 1
        return list_names(store, directory, limit)

    monkeypatch.setattr(LocalStore, "list_names", recording)
    listings = []
    for versions in (11, 22, 44):
        dataset = lance_ops.write_dataset(_table(1), tmp_path / f"{versions}.lance")
        for number in range(versions - 1):
            dataset.update_config({"number": str(number)})
        counts.clear()
        assert dataset.cleanup_old_versions(timedelta(0)).old_versions == versions - 1
        listings.append(counts["_versions"])
    assert listings[0] == listings[1] == listings[2] > 0, listings


def test_clean_up_removes_many_manifests_by_one_request(
    uris: Iterator[str], counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_ops.write_dataset(_table(1), next(uris))
    for number in range(9):
        dataset.update_config({"number": str(number)})
    delete_several = MemoryStore.delete_several

    def counting(store: MemoryStore, paths: Sequence[str]) -> set[str]:
        counts["requests"] += any(path.startswith("_versions/") for path in paths)
        return delete_several(store, paths)

    monkeypatch.setattr(MemoryStore, "reads_in_place", False)
    monkeypatch.setattr(MemoryStore, "deleted_at_once", 100)
    monkeypatch.setattr(MemoryStore, "delete_several", counting)
    assert dataset.cleanup_old_versions(timedelta(0)).old_versions == 9
    assert counts["requests"] == 1


@pytest.mark.parametrize("tokens", [0, 1])
def test_clean_up_decodes_each_manifest_once(
    tokens: int, uris: Iterator[str], counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_ops.write_dataset(_table(1), next(uris))
    for number in range(39):
        dataset.update_config({"number": str(number)})
    for _ in range(tokens):
        dataset = lance_ops.write_dataset(_table(1), dataset.uri, mode="append", transaction_properties={TOKEN: "t"})
    for number in range(39):
        dataset.update_config({"number": str(number)})
    MANIFEST_CACHE.reset()
    monkeypatch.setattr(Manifest, "from_pb", staticmethod(_counted(Manifest.from_pb, "manifests", counts)))
    assert dataset.cleanup_old_versions(timedelta(0)).old_versions == 78 + tokens
    # the version with the token, and the next, which proves that the token's is one of the table's history
    assert counts["manifests"] == 79 + tokens + 2 * tokens
    snapshot = dataset.snapshot
    assert find_token(snapshot.store, snapshot.committer, "t") == (41 if tokens else None)


@pytest.mark.parametrize("in_place", [True, False])
def test_a_list_of_versions_decodes_no_manifest_but_the_newest(
    in_place: bool, uris: Iterator[str], counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = lance_ops.write_dataset(_table(3), next(uris), max_rows_per_file=ROWS)
    for row in range(9):
        dataset.delete(f"id = {row}")
    monkeypatch.setattr(MemoryStore, "reads_in_place", in_place)
    MANIFEST_CACHE.reset()
    monkeypatch.setattr(Manifest, "from_pb", staticmethod(_counted(Manifest.from_pb, "manifests", counts)))
    listed = lance_ops.dataset(dataset.uri).versions()
    assert [version["metadata"]["total_rows"] for version in listed] == [str(3 * ROWS - row) for row in range(10)]
    assert counts["manifests"] == 1


REMOTE_READS: dict[str, tuple[Verb, int]] = {
    "scan": (lambda uri, _: lance_ops.dataset(uri).to_table(), 1),
    "filter": (lambda uri, _: lance_ops.dataset(uri).to_table(filter="id % 1000 = 7"), 1),
    "scan of one column": (lambda uri, _: lance_ops.dataset(uri).to_table(columns=["id"]), 2),
}
"""For each verb: how many requests it makes for a file of 0.6 MB in a store that reads by requests."""


@pytest.mark.parametrize("verb", REMOTE_READS)
def test_a_small_remote_file_is_read_by_one_request_if_most_of_it_is_needed(
    verb: str, uris: Iterator[str], counts: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(1).integers(0, 1 << 62, (4, 3 * 20_000))
    table = pa.table({"id": np.arange(rows.shape[1]), **{f"v{number}": values for number, values in enumerate(rows)}})
    uri = lance_ops.write_dataset(table, next(uris), max_rows_per_file=20_000).uri
    monkeypatch.setattr(MemoryStore, "reads_in_place", False)
    act, requests = REMOTE_READS[verb]
    counts.clear()
    act(uri, 0)
    assert counts["get_ranges"] == 3 * requests


@pytest.mark.parametrize("kept", ["one of the columns", "all that a drop left"])
def test_planning_a_scan_opens_no_more_files_however_many_large_ones_there_are(
    kept: str, uris: Iterator[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_plan, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(stored_sizes, "_NOT_WORTH_OPENING", 1 << 14)
    random = np.random.default_rng(1)
    wide = pa.table({"x": np.arange(40_000), **{f"y{number}": random.random(40_000) for number in range(4)}})
    dataset = lance_ops.write_dataset(wide, next(uris), max_rows_per_file=1_000)
    if kept == "all that a drop left":
        dataset.drop_columns([f"y{number}" for number in range(4)])
    opened = note_fragments_read(monkeypatch)
    snapshot = lance_ops.dataset(dataset.uri).snapshot
    request = ScanRequest(snapshot.schema.project(["x"]), bind_filter(snapshot, "x >= 0"), limit=1)
    plan = plan_scan(snapshot, request)
    assert 0 < len(opened) <= 16 < len(plan.blocks.parts) == 40
    assert len(plan.blocks) == 40, "a fragment's 8,000 bytes of x are one block, though its file is larger"
