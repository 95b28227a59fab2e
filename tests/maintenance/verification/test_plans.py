"""The tasks of a verification cover every part once, are small, and hold a bounded amount in memory."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_ops
from lance_ops.core.errors import CorruptFile, InvalidInput, StoreError
from lance_ops.core.schema import Schema
from lance_ops.maintenance.verification import (
    DamageKind,
    FindingSeverity,
    VerificationLevel,
    VerificationOptions,
    VerificationReport,
    execute,
    plan_verification,
    verify,
)
from lance_ops.maintenance.verification.checks import data_file_checks, index_entry_checks
from lance_ops.maintenance.verification.verification_plan import FragmentsTask, IndexEntriesTask, IndexTask, RowsTask
from lance_ops.runners import InThreads
from lance_ops.snapshot import FragmentReader, Snapshot
from lance_ops.store import LocalStore
from lance_ops.table import FragmentList
from tests.maintenance.verification.planted_damages import ALL_DAMAGES, ROWS_PER_FRAGMENT, make_dataset


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Three fragments of 600 rows under one index."""
    return make_dataset(tmp_path_factory.mktemp("planned") / "data.lance").snapshot


@given(limit=st.integers(1, 2000), size=st.integers(1, 100_000))
def test_every_row_of_an_index_and_every_fragment_is_in_one_task(snapshot: Snapshot, limit: int, size: int) -> None:
    options = VerificationOptions(max_entries_per_task=limit, max_bytes_per_task=size)
    plan = plan_verification(snapshot, options)
    spans = [task.spans for task in plan.tasks if isinstance(task, IndexEntriesTask)]
    assert all(sum(span.stop - span.start for span in part) <= limit for part in spans)
    rows = Counter((span.fragment_id, row) for part in spans for span in part for row in range(span.start, span.stop))
    assert rows == {(fragment, row): 1 for fragment in range(3) for row in range(ROWS_PER_FRAGMENT)}
    positions = [task.positions for task in plan.tasks if isinstance(task, FragmentsTask)]
    assert sorted(at for part in positions for at in part) == [0, 1, 2]
    assert [task.size_bytes for task in plan.tasks] == sorted((task.size_bytes for task in plan.tasks), reverse=True)


def test_the_rows_of_a_large_fragment_are_decoded_once_by_several_tasks(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = snapshot.fragments[0].files[0].file_size_bytes
    options = VerificationOptions(max_bytes_per_task=size // 13)  # 13 / 4 is three tasks
    plan = plan_verification(snapshot, options)
    ranges = [(task.start, task.stop) for task in plan.tasks if isinstance(task, RowsTask) and task.position == 0]
    assert sorted(ranges) == [(0, 200), (200, 400), (400, 600)]
    decoded, column_windows = Counter[tuple[str, int]](), data_file_checks.column_windows

    def damaged(reader: FragmentReader, schema: Schema, start: int, stop: int) -> Iterator[tuple[int, pa.Table]]:
        if reader.fragment.id == 0:
            decoded.update((schema.names[0], row) for row in range(start, stop))
            if schema.names == ["text"] and start <= 450 < stop:
                raise CorruptFile("file", "page", "bits")
        return column_windows(reader, schema, start, stop)

    monkeypatch.setattr(data_file_checks, "column_windows", damaged)
    (damage,) = verify(snapshot, options).damages
    assert (damage.kind, damage.fragment_id, damage.column) == (DamageKind.FILE_CONTENT, 0, "text")
    assert decoded == {(name, row): 1 for name in snapshot.schema.names for row in range(ROWS_PER_FRAGMENT)}
    assert not any(isinstance(task, RowsTask) for task in plan_verification(snapshot).tasks)
    quick = replace(options, level=VerificationLevel.QUICK)
    assert not any(isinstance(task, RowsTask) for task in plan_verification(snapshot, quick).tasks)


def test_tasks_are_small_values_that_another_process_can_execute(snapshot: Snapshot) -> None:
    for task in plan_verification(snapshot, VerificationOptions(all_versions=True)).tasks:
        data = pickle.dumps(task)
        assert len(data) < 2000
        assert execute(pickle.loads(data)) == execute(task)


@pytest.mark.parametrize("limit", [1, 7, 600, 601, 5000])
def test_damages_of_an_index_are_found_whatever_a_task_holds(tmp_path: Path, limit: int) -> None:
    root = tmp_path / "data.lance"
    make_dataset(root, blobs=False)
    next(damage for damage in ALL_DAMAGES if damage.name.startswith("index with two entries")).plant(root)
    opened = lance_ops.dataset(str(root)).snapshot
    if limit < 600:  # each task reads the whole index, so look at a part of the rows only
        plan = plan_verification(opened, VerificationOptions(max_entries_per_task=limit))
        tasks = [task for task in plan.tasks if isinstance(task, IndexEntriesTask)]
        near = [task for task in tasks if task.spans[0].fragment_id == 0 and task.spans[0].start < 20]
        findings = [finding for task in near for finding in execute(task).findings]
    else:
        findings = list(verify(opened, VerificationOptions(max_entries_per_task=limit)).damages)
    details = {finding.detail for finding in findings}
    assert details == {"1 live rows have no entry: rows 3", "1 live rows have several entries: rows 4"}


def test_files_of_one_path_in_several_bases_are_listed_each(snapshot: Snapshot) -> None:
    plan, manifest = plan_verification(snapshot), snapshot.manifest
    first, *others = manifest.fragments
    file = first.files[0]
    files = tuple(replace(file, base_id=base, file_size_bytes=size) for base, size in ((None, 1), (1, 2), (2, 3)))
    moved = replace(manifest, fragments=FragmentList([replace(first, files=files), *others]))
    found = plan.files(cast("Snapshot", SimpleNamespace(manifest=moved)))
    sizes = {path.removesuffix(file.path): size for path, size in found.items() if path.endswith(file.path)}
    assert sizes == {"": 1, "base 1: ": 2, "base 2: ": 3}
    assert len(found) == len(plan.files(snapshot)) + 2


def test_versions_share_the_checks_of_their_common_files(tmp_path: Path) -> None:
    uri = str(tmp_path / "data.lance")
    for at in range(8):
        lance_ops.write_dataset(pa.table({"x": [at]}), uri, mode="append")
    plan = plan_verification(lance_ops.dataset(uri).snapshot, VerificationOptions(all_versions=True))
    assert sum(len(task.positions) for task in plan.tasks if isinstance(task, FragmentsTask)) == 8
    assert plan.versions == (8, 7, 6, 5, 4, 3, 2, 1)


def test_a_file_is_decoded_in_windows_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "data.lance")
    rng = np.random.default_rng(0)
    columns = {
        "noise": rng.integers(0, 1 << 62, 200_000),
        "constant": np.zeros(200_000, np.int64),
        "text": [f"{number:030}" for number in range(200_000)],
    }
    lance_ops.write_dataset(pa.table(columns), uri)
    monkeypatch.setattr(data_file_checks, "_WINDOW_BYTES", 1 << 17)
    monkeypatch.setattr(data_file_checks, "_DECODED_BYTES", 1 << 18)
    seen: Counter[str] = Counter()

    monkeypatch.setattr(data_file_checks, "column_windows", observed_by(data_file_checks.column_windows, seen))
    assert verify(lance_ops.dataset(uri).snapshot).ok
    assert seen == dict.fromkeys(columns, 200_000)


def observed_by(windows: Callable[..., Iterator[tuple[int, pa.Table]]], seen: Counter[str]) -> Callable[..., Any]:
    """Return the function with an assertion on the size of each window; count the rows of each column."""

    def observed(*args: Any) -> Iterator[tuple[int, pa.Table]]:
        for first, table in windows(*args):
            assert table.nbytes <= 1 << 20
            seen[table.schema.names[0]] += table.num_rows
            yield first, table

    return observed


def test_a_store_that_fails_leaves_files_unverified_and_not_damaged(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = LocalStore.size

    def failing(self: LocalStore, path: str) -> int:
        if path.startswith("data/"):
            raise StoreError(f"cannot reach {path}")
        return size(self, path)

    monkeypatch.setattr(LocalStore, "size", failing)
    report = verify(snapshot, VerificationOptions(VerificationLevel.QUICK))
    assert report.ok
    unverified = [finding for finding in report.findings if finding.severity is FindingSeverity.UNVERIFIED]
    assert {finding.fragment_id for finding in unverified} == {0, 1, 2}


def test_files_of_a_version_that_clean_up_removed_meanwhile_are_no_damage(tmp_path: Path) -> None:
    uri = str(tmp_path / "data.lance")
    for at in range(3):
        lance_ops.write_dataset(pa.table({"x": [at]}), uri, mode="append")
    old = lance_ops.dataset(uri)
    lance_ops.dataset(uri).optimize.compact_files()

    class AfterCleanUp(InThreads):
        """Runs the tasks after the version's files are gone, and removes its manifest only then."""

        def map(self, function: Callable[[Any], Any], tasks: Sequence[Any], *others: Any) -> list[Any]:
            manifest = Path(uri, old.snapshot.committer.location(old.version))
            kept = manifest.read_bytes()
            lance_ops.dataset(uri).cleanup_old_versions(timedelta(0))
            manifest.write_bytes(kept)
            outcomes = super().map(function, tasks, *others)
            manifest.unlink()
            return outcomes

    report = old.verify(runner=AfterCleanUp())
    assert report.ok
    assert {finding.severity for finding in report.findings} == {FindingSeverity.UNVERIFIED}
    assert all("removed meanwhile" in finding.detail for finding in report.findings)
    assert {finding.fragment_id for finding in report.findings} >= {0, 1, 2}


def test_a_quick_verification_asks_the_store_a_fixed_number_of_times_for_each_fragment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[str]()

    def counted(name: str) -> None:
        original = getattr(LocalStore, name)

        def call(self: LocalStore, path: str, *args: Any) -> Any:
            calls["data" if path.startswith("data/") else "other"] += 1
            return original(self, path, *args)

        monkeypatch.setattr(LocalStore, name, call)

    for name in ("size", "get", "view", "get_ranges"):
        counted(name)

    def asked(num_fragments: int) -> tuple[int, int]:
        uri = str(tmp_path / str(num_fragments))
        lance_ops.write_dataset(pa.table({"x": range(num_fragments)}), uri, max_rows_per_file=1)
        calls.clear()
        assert lance_ops.dataset(uri).verify(level="quick").ok
        return calls["data"], calls["other"]

    few, many = asked(10), asked(200)
    assert few[0] * 20 == many[0] <= 3 * 200
    assert few[1] == many[1]


def test_a_quick_verification_reads_no_page_of_a_table_without_blobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "data.lance"
    make_dataset(root, blobs=False)
    opened = lance_ops.dataset(str(root)).snapshot

    def refused(*_: object) -> Iterator[tuple[int, pa.Table]]:
        raise AssertionError("a page was read")

    monkeypatch.setattr(data_file_checks, "column_windows", refused)
    monkeypatch.setattr(index_entry_checks, "column_windows", refused)
    assert verify(opened, VerificationOptions(VerificationLevel.QUICK)).ok


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(InvalidInput, match="max_bytes_per_task must be at least 1, not 0"):
        VerificationOptions(max_bytes_per_task=0)
    with pytest.raises(InvalidInput, match="max_fragments_per_task"):
        VerificationOptions(max_fragments_per_task=0)
    with pytest.raises(InvalidInput, match="max_entries_per_task"):
        VerificationOptions(max_entries_per_task=-1)


@given(size=st.integers(1, 400_000), first=st.integers(0, 10))
def test_bounded_verifications_one_after_another_check_every_part(snapshot: Snapshot, size: int, first: int) -> None:
    checked: set[object] = set()
    part: int | None = first
    for _ in range(5):  # three fragments and an index, one of them twice if the first is not the lowest
        assert part is not None
        options = VerificationOptions(max_bytes=size, first_part=part)
        plan = plan_verification(snapshot, options)
        fragments = [at for task in plan.tasks if isinstance(task, FragmentsTask) for at in task.positions]
        indices = [task.uuid for task in plan.tasks if isinstance(task, IndexTask)]
        assert fragments or indices
        sizes = [snapshot.fragments[at].files[0].file_size_bytes for at in fragments]
        sizes += [sum(file.size_bytes for file in snapshot.manifest.indices[0].files) for _ in indices]
        assert sum(sizes) <= size or len(sizes) == 1
        checked |= {*fragments, *indices}
        part = plan.next_part
        if part is None:
            break
    assert checked == {0, 1, 2, snapshot.manifest.indices[0].uuid}


def test_a_bounded_verification_finds_the_damages_of_its_parts(tmp_path: Path) -> None:
    root = tmp_path / "data.lance"
    made = make_dataset(root)
    next(damage for damage in ALL_DAMAGES if damage.name == "data file with one flipped bit").plant(root)
    reports: list[VerificationReport] = []
    part: int | None = 0
    while len(reports) < 4:
        assert part is not None
        reports.append(made.verify(max_bytes=1, first_part=part))
        part = reports[-1].next_part
    assert [report.damaged_fragments for report in reports] == [(), (), (2,), ()]
    assert [report.next_part for report in reports] == [1, 2, 3, 0]
    assert "part 1 and others were left out" in str(reports[0])
    assert made.verify(max_bytes=1 << 30).next_part is None


def test_a_bound_does_not_go_with_all_versions() -> None:
    with pytest.raises(InvalidInput, match="max_bytes"):
        VerificationOptions(max_bytes=10, all_versions=True)
