import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, VersionNotFound
from lance_ops.maintenance.cleanup import named_files, paced_deletes, version_removal
from lance_ops.maintenance.cleanup.cleanup import execute, plan_cleanup
from lance_ops.maintenance.cleanup.cleanup_options import CleanupOptions
from lance_ops.maintenance.cleanup.cleanup_plan import CleanupPlan
from lance_ops.maintenance.cleanup.named_files import NamedFiles
from lance_ops.maintenance.cleanup.paced_deletes import Pace, delete_files, delete_in_place
from lance_ops.maintenance.cleanup.version_removal import RemovedVersions
from lance_ops.refs import UNVERIFIED_AGE
from lance_ops.refs.announced_removals import REMOVALS_DIR
from lance_ops.snapshot import Snapshot
from lance_ops.store import LocalStore, ObjectInfo, path_beneath
from lance_ops.store.paths import TEMPORARY_PREFIX
from lance_ops.table import ExternalFile, FragmentList
from lance_ops.table.fragments import fragment_list
from lance_ops.table.fragments.fragment_files import files_named_in
from lance_ops.transactions import TOKEN, CommittedVersion, decode_version
from tests.maintenance.conftest import rows

Make = Callable[..., lance_ops.LanceDataset]
NOW = timedelta(0)


def files(dataset: lance_ops.LanceDataset) -> set[str]:
    root = Path(dataset.uri)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_clean_up_keeps_only_the_files_of_the_newest_version(make: Make) -> None:
    dataset = make()
    dataset.create_scalar_index("key", "BTREE")
    dataset.delete("id < 10")
    dataset.optimize.compact_files()
    before = dataset.to_table()
    stats = dataset.cleanup_old_versions(NOW)
    assert stats.old_versions == dataset.version - 1
    assert (stats.data_files_removed, stats.deletion_files_removed, stats.index_files_removed) == (5, 1, 2)
    assert stats.failed_deletes == 0
    left = files(dataset)
    assert len([path for path in left if path.startswith("data/")]) == 1
    assert len([path for path in left if path.endswith(".manifest")]) == 1
    assert lance_ops.dataset(dataset.uri).to_table() == before
    dataset.validate()


def test_a_dry_run_names_the_files_and_removes_none(make: Make) -> None:
    dataset = make()
    dataset.optimize.compact_files()
    before = files(dataset)
    explained = dataset.explain_cleanup_old_versions(NOW, include_files=True)
    assert files(dataset) == before
    stats = dataset.cleanup_old_versions(NOW)
    assert explained.stats == stats
    assert set(explained.candidate_files) == before - files(dataset) - {"_versions/latest_version_hint.json"}
    truncated = make().explain_cleanup_old_versions(NOW, include_files=True, max_files=2)
    assert len(truncated.candidate_files) == 2 and truncated.candidate_files_truncated


def test_default_clean_up_keeps_versions_of_the_last_two_weeks(make: Make) -> None:
    dataset = make()
    before = files(dataset)
    assert dataset.cleanup_old_versions().old_versions == 0
    assert files(dataset) == before


def test_retained_versions_stay_readable(make: Make) -> None:
    dataset = make()
    dataset.optimize.compact_files()  # no version before it shares data files with the newest
    newest = dataset.version
    dataset.cleanup_old_versions(retain_versions=newest - 3)
    assert [version["version"] for version in dataset.versions()] == list(range(4, newest + 1))
    assert lance_ops.dataset(dataset.uri, version=4).to_table()["id"].to_pylist() == list(range(80))
    with pytest.raises(VersionNotFound, match="no version 3"):
        lance_ops.dataset(dataset.uri, version=3)


def test_a_tagged_old_version_is_kept_and_refuses_clean_up_by_default(make: Make) -> None:
    dataset = make()
    dataset.tags.create("audit", 2)
    dataset.optimize.compact_files()  # no version before it shares data files with the newest
    newest = dataset.version
    with pytest.raises(InvalidInput, match="audit .version 2."):
        dataset.cleanup_old_versions(NOW)
    assert len(dataset.versions()) == newest
    explained = dataset.explain_cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    assert "version 2" in explained.warnings[0]
    dataset.cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    assert lance_ops.dataset(dataset.uri, version="audit").to_table()["id"].to_pylist() == list(range(40))
    assert [version["version"] for version in dataset.versions()] == [2, newest]


def test_clean_up_removes_given_versions_but_never_the_newest(make: Make) -> None:
    dataset = make()
    dataset.cleanup_old_versions(versions=[2, 3])
    assert [version["version"] for version in dataset.versions()] == [1, 4, 5]
    with pytest.raises(InvalidInput, match="version 5 cannot be removed"):
        dataset.cleanup_old_versions(versions=[5])


def test_clean_up_of_versions_that_do_not_exist_is_refused_and_removes_nothing(make: Make) -> None:
    dataset = make()
    dataset.cleanup_old_versions(versions=[2])
    for clean_up in (dataset.cleanup_old_versions, dataset.explain_cleanup_old_versions):
        with pytest.raises(VersionNotFound, match="has no version 2, 999 to remove: it has 1 to 5"):
            clean_up(versions=[999, 3, 2])
    assert [version["version"] for version in dataset.versions()] == [1, 3, 4, 5]


def test_recent_files_that_no_version_names_are_kept(make: Make) -> None:
    dataset = make()
    stray = Path(dataset.uri) / "data" / ("0" * 24 + "ab" * 13 + ".lance")
    stray.write_bytes(b"not committed yet")
    dataset.cleanup_old_versions(NOW)
    assert stray.exists()
    dataset.cleanup_old_versions(NOW, delete_unverified=True)
    assert not stray.exists()


STRAYS = [
    "data/0.lance",
    "data/0/1.blob",
    "_deletions/0-1-2.arrow",
    "_indices/7f1c6a4e-0000-4000-8000-000000000000/page_data.lance",
    "_transactions/1-x.txn",
    f"_versions/{TEMPORARY_PREFIX}1",
    f"data/{TEMPORARY_PREFIX}2",
]


@pytest.mark.parametrize(
    ("age", "stays"), [(UNVERIFIED_AGE - timedelta(hours=1), True), (UNVERIFIED_AGE + timedelta(minutes=1), False)]
)
def test_orphaned_files_are_removed_when_old_by_the_store_clock(
    make: Make, monkeypatch: pytest.MonkeyPatch, age: timedelta, stays: bool
) -> None:
    dataset = make(1)
    kept = files(dataset)
    for stray in STRAYS:
        path = Path(dataset.uri, stray)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left by a crash")
    clock = LocalStore.now
    monkeypatch.setattr(LocalStore, "now", lambda store: clock(store) + age)
    explained = dataset.explain_cleanup_old_versions(NOW, include_files=True)
    assert sorted(explained.candidate_files) == ([] if stays else sorted(STRAYS))
    num_orphan_bytes = 0 if stays else 15 * len(STRAYS)
    assert explained.stats.orphan_bytes == num_orphan_bytes
    stats = dataset.cleanup_old_versions(NOW)
    assert files(dataset) - kept == (set(STRAYS) if stays else set())
    assert kept <= files(dataset) and stats.bytes_removed == num_orphan_bytes
    assert stats.orphan_bytes == 0 and not dataset.explain_cleanup_old_versions(NOW).stats.orphan_bytes


def test_blob_sidecars_of_a_base_path_within_the_data_folder_stay(dataset_uri: str) -> None:
    hot = f"{dataset_uri}/data/hot"
    blobs = pa.table({"b": lance_ops.blob_array([b"x" * 200_000, b"y" * 5_000_000])})
    base = lance_ops.DatasetBasePath(hot, "hot", False)
    dataset = lance_ops.write_dataset(
        blobs, dataset_uri, data_storage_version="2.2", initial_bases=[base], target_bases=["hot"]
    )
    sidecars = sorted(Path(hot).rglob("*.blob"))
    orphan = Path(hot, "0", "1.blob")
    orphan.parent.mkdir()
    orphan.write_bytes(b"left by a crash")
    assert sidecars
    dataset.cleanup_old_versions(NOW, delete_unverified=True)
    assert sorted(Path(hot).rglob("*.blob")) == sidecars


def test_orphans_are_counted_apart_from_the_files_of_old_versions_and_while_they_cannot_be_removed(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make()
    dataset.optimize.compact_files()
    orphan = Path(dataset.uri, "data", "orphan.lance")
    orphan.write_bytes(b"left by a crash")
    os.utime(orphan, (0, 0))
    explained = dataset.explain_cleanup_old_versions(NOW).stats
    assert explained.orphan_bytes == 15 < explained.bytes_removed
    delete_several = LocalStore.delete_several

    def keep_orphan(store: LocalStore, paths: Sequence[str]) -> set[str]:
        kept = {path for path in paths if path.endswith("orphan.lance")}
        return kept | delete_several(store, [path for path in paths if path not in kept])

    monkeypatch.setattr(LocalStore, "delete_several", keep_orphan)
    stats = dataset.cleanup_old_versions(NOW)
    assert (stats.failed_deletes, stats.orphan_bytes) == (1, 15)
    assert stats.bytes_removed == explained.bytes_removed - 15


def test_delete_rate_limit_is_kept(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [0.0]
    deleted: list[float] = []
    delete, delete_several = LocalStore.delete, LocalStore.delete_several

    def note(store: LocalStore, path: str) -> None:
        note_times([path])
        delete(store, path)

    def note_each(store: LocalStore, paths: Sequence[str]) -> set[str]:
        note_times(paths)
        return delete_several(store, paths)

    def note_times(paths: Sequence[str]) -> None:
        # the announcement is not paced
        deleted.extend(passed[0] for path in paths if not path.startswith(REMOVALS_DIR))

    dataset = make(4)
    dataset.insert(rows(0, 1), mode="overwrite")
    monkeypatch.setattr(time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: passed.__setitem__(0, passed[0] + seconds))
    monkeypatch.setattr(LocalStore, "delete", note)
    monkeypatch.setattr(LocalStore, "delete_several", note_each)
    stats = dataset.cleanup_old_versions(NOW, delete_rate_limit=4)
    assert stats.old_versions == stats.data_files_removed == 4 and len(deleted) >= 12
    waited = [later - earlier for earlier, later in pairwise(deleted)]
    assert min(waited) == max(waited) == 0.25


@pytest.mark.parametrize("at_once", [1, 3])
def test_delete_concurrency_is_kept(make: Make, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    running, most, lock, together = 0, 0, threading.Lock(), threading.Event()
    delete_several = LocalStore.delete_several

    def count(store: LocalStore, paths: Sequence[str]) -> set[str]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == at_once:
                together.set()
        if paths[0].startswith("data/"):  # of which there are enough
            assert together.wait(60)
            time.sleep(0.002)  # a thread too many would come in now
        failed = delete_several(store, paths)
        with lock:
            running -= 1
        return failed

    dataset = make(5)
    dataset.insert(rows(0, 1), mode="overwrite")
    monkeypatch.setattr(LocalStore, "deleted_at_once", 1)
    monkeypatch.setattr(LocalStore, "delete_several", count)
    assert dataset.cleanup_old_versions(NOW, delete_concurrency=at_once).data_files_removed == 5
    assert most == at_once


@pytest.mark.parametrize(("size_bytes", "requests"), [(1 << 10, 3), (128 << 20, 20)])
def test_short_files_are_removed_by_the_calling_thread_and_large_ones_by_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size_bytes: int, requests: int
) -> None:
    asked: list[tuple[int, Sequence[str]]] = []

    def note(_: LocalStore, paths: Sequence[str]) -> set[str]:
        asked.append((threading.get_ident(), paths))
        return set()

    monkeypatch.setattr(LocalStore, "delete_several", note)
    store = LocalStore(str(tmp_path))
    infos = [ObjectInfo(f"data/{number}.lance", size_bytes, store.now()) for number in range(40)]
    assert delete_files(store, infos, Pace(None), 16) == (infos, [])
    assert sorted(path for _, paths in asked for path in paths) == sorted(info.path for info in infos)
    assert len(asked) == requests
    assert (threading.get_ident() == asked[0][0]) == (requests == 3)


def test_a_single_file_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = list[None]()
    monkeypatch.setattr(Pace, "wait", lambda _: waits.append(None))
    store = LocalStore(str(tmp_path))
    store.put("data/a.lance", b"a")
    infos = [*store.list()]
    assert delete_files(store, infos, Pace(10), 16) == (infos, [])
    assert waits == [None]


@pytest.mark.parametrize(
    ("rate", "disabled", "batches"), [(None, "", [4]), (1000, "", [2, 2]), (None, "file-mapping", [2, 2])]
)
def test_few_versions_are_removed_at_once_if_it_takes_long_or_holds_descriptors(
    make: Make, monkeypatch: pytest.MonkeyPatch, rate: int | None, disabled: str, batches: list[int]
) -> None:
    dataset, removed, remove = make(), list[int](), version_removal._remove_batch

    def noting(snapshot: Snapshot, plan: CleanupPlan, batch: Sequence[int], *others: Any) -> RemovedVersions:
        removed.append(len(batch))
        return remove(snapshot, plan, batch, *others)

    monkeypatch.setattr(version_removal, "_remove_batch", noting)
    monkeypatch.setattr(version_removal, "_VERSIONS_AT_ONCE", 2)
    monkeypatch.setenv("LANCE_OPS_DISABLE", disabled)
    assert dataset.cleanup_old_versions(NOW, delete_rate_limit=rate).old_versions == 4
    assert removed == batches


def test_few_decoded_versions_are_held_while_a_batch_is_removed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make(1)
    for number in range(9):
        properties = {TOKEN: f"{number}"}
        dataset = lance_ops.write_dataset(rows(0, 1), dataset.uri, mode="append", transaction_properties=properties)
    remove = version_removal._remove_several
    decoded, alive = list[weakref.ref[CommittedVersion]](), list[int]()

    def noting(*arguments: Any) -> CommittedVersion:
        committed = decode_version(*arguments)
        decoded.append(weakref.ref(committed))
        return committed

    def counting(*arguments: Any) -> dict[int, bool]:
        alive.append(sum(each() is not None for each in decoded))
        return remove(*arguments)

    monkeypatch.setattr(version_removal, "decode_version", noting)
    monkeypatch.setattr(version_removal, "_remove_several", counting)
    assert dataset.cleanup_old_versions(NOW).old_versions == 9
    assert len(decoded) >= 9 and len(alive) == 1 and alive[0] <= 2


@pytest.mark.parametrize("waits", [False, True])
def test_short_files_are_removed_by_several_threads_once_two_parts_have_waited_for_the_disk(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    monkeypatch.setattr(paced_deletes, "_LONG_WAIT_SECONDS", 0.01 if waits else math.inf)
    threads: list[int] = []

    def delete(part: Sequence[int]) -> Sequence[int]:
        threads.append(threading.get_ident())
        time.sleep(0.02)
        return part

    pace = Pace(None)
    for first in (0, 100):
        items = range(first, first + 60)  # four parts, since this thread deletes a single one that is left
        assert [item for part in delete_in_place(delete, items, pace, 4) for item in part] == [*items]
    ours = [thread == threading.get_ident() for thread in threads]
    assert ours == ([True, True, *[False] * 6] if waits else [True] * 8)


def test_a_version_committed_after_the_plan_keeps_its_files(make: Make) -> None:
    dataset = make()
    old = dataset.checkout_version(2)
    dataset.optimize.compact_files()
    newest = dataset.snapshot
    plan = plan_cleanup(newest, CleanupOptions(NOW))
    old.restore()
    execute(newest, plan)
    again = lance_ops.dataset(dataset.uri)
    again.validate()
    assert again.count_rows() == 40


def test_a_stale_writer_cannot_commit_a_removed_version_again(make: Make) -> None:
    dataset = make()
    stale = dataset.checkout_version(2)
    dataset.cleanup_old_versions(NOW)
    assert stale.delete("id = 1") == {"num_deleted_rows": 1}
    assert stale.version == 6
    assert [version["version"] for version in dataset.versions()] == [5, 6]


@pytest.mark.parametrize("options", [{"retain_versions": 0}, {"older_than": timedelta(-1)}, {"delete_rate_limit": 0}])
def test_invalid_clean_up_options_are_refused(make: Make, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        make(1).cleanup_old_versions(**options)


def test_clean_up_keeps_files_of_row_id_sequences(make: Make) -> None:
    manifest = make().snapshot.manifest
    first, *others = manifest.fragments
    outside = first.with_sequences(row_ids=ExternalFile("data/sequences", 0, 4))
    named = NamedFiles("memory://here")
    named.add(replace(manifest, fragments=FragmentList([outside, *others])))
    assert "data/sequences" in named


def test_of_versions_with_the_same_fragments_only_the_first_is_read_for_names(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = make()
    first = dataset.version
    for number in range(5):
        dataset.update_config({"number": str(number)})
    manifests = [Snapshot.open(dataset.uri, version).manifest for version in range(first, dataset.version + 1)]
    alone = set[str]()
    for manifest in manifests:
        named = NamedFiles(dataset.uri)
        named.add(manifest)
        alone |= named.paths

    reads, locates = Mock(wraps=files_named_in), Mock(wraps=path_beneath)
    monkeypatch.setattr(fragment_list, "files_named_in", reads)
    monkeypatch.setattr(named_files, "path_beneath", locates)
    named = NamedFiles(dataset.uri)
    for manifest in manifests:
        named.add(manifest)
    assert (reads.call_count, locates.call_count) == (1, 1)
    assert named.paths == alone
    assert len([path for path in alone if path.startswith("_transactions/")]) == len(manifests) == 6
