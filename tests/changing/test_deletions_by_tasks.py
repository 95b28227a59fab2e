"""With a runner that has workers, tasks write deletion files, and the driver only commits them."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from pyroaring import BitMap

import lance_ops
from lance_ops.changing import ChosenRowsTask, commit_chosen
from lance_ops.changing.row_replacement import replace_rows
from lance_ops.core.file_names import DELETIONS_DIR, file_names_of_job, new_job_token
from lance_ops.errors import StoreError, TasksLost
from lance_ops.runners import InThreads, Job
from lance_ops.snapshot import Snapshot
from lance_ops.store import BytesLike, LocalStore
from lance_ops.table import Fragment
from lance_ops.writing import deletion_files
from tests.pickling_runner import PicklingRunner

T = TypeVar("T")
R = TypeVar("R")

FRAGMENTS = 12
ROWS = 5
WRITING = "write deletion files of"


@dataclass
class Workers(PicklingRunner):
    """Knows whether a task runs now. `meanwhile` runs once, when tasks have written deletion files."""

    is_busy: bool = False
    meanwhile: Callable[[], object] | None = None

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        self.is_busy = True
        try:
            outcomes = super().map(function, tasks, job, discard)
        finally:
            self.is_busy = False
        if job is not None and job.verb == WRITING and self.meanwhile is not None:
            act, self.meanwhile = self.meanwhile, None
            act()
        return outcomes

    @property
    def num_writing_tasks(self) -> list[int]:
        """How many tasks each job had that wrote deletion files."""
        return [count for verb, count in self.jobs if verb == WRITING]


@dataclass
class Calls:
    """How many calls for deletion files the driver and the tasks of a runner made."""

    runner: Workers
    driver: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)

    def note(self, call: str, path: str) -> None:
        if path.startswith(f"{DELETIONS_DIR}/"):
            (self.tasks if self.runner.is_busy else self.driver)[call] += 1


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    monkeypatch.setattr(deletion_files, "_FEWEST_FOR_TASKS", 8)
    monkeypatch.setattr(deletion_files, "_FRAGMENTS_PER_TASK", 5)
    found = Calls(Workers())
    put = LocalStore.put

    def noted_put(store: LocalStore, path: str, data: BytesLike, *, durable: bool = True) -> None:
        found.note("put", path)
        put(store, path, data, durable=durable)

    monkeypatch.setattr(LocalStore, "put", noted_put)
    return found


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def table(request: pytest.FixtureRequest, dataset_uri: str, calls: Calls) -> lance_ops.LanceDataset:
    """Twelve fragments of five rows; `x` is 0 to 59 and `k` is `x % 5`; the rows of `k = 4` are deleted."""
    numbers = range(FRAGMENTS * ROWS)
    rows = pa.table({"x": numbers, "k": [x % ROWS for x in numbers], "pair": [x // 2 for x in numbers]})
    made = lance_ops.write_dataset(rows, dataset_uri, max_rows_per_file=ROWS, enable_stable_row_ids=request.param)
    made.delete("k = 4")
    calls.driver.clear()
    return lance_ops.dataset(dataset_uri)


def sorted_rows(uri: str) -> pa.Table:
    return lance_ops.dataset(uri).to_table().sort_by("x")


def left(uri: str) -> list[int]:
    return sorted(lance_ops.dataset(uri).to_table()["x"].to_pylist())


def files(uri: str) -> set[Path]:
    return set(Path(uri, DELETIONS_DIR).iterdir())


def as_it_is(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def _delete(table: lance_ops.LanceDataset, runner: Any) -> None:
    assert table.delete("k = 1", runner=runner)["num_deleted_rows"] == FRAGMENTS


def _update(table: lance_ops.LanceDataset, runner: Any) -> None:
    assert table.update({"x": "-x"}, "k = 1", runner=runner)["num_rows_updated"] == FRAGMENTS


def _delete_by_keys(table: lance_ops.LanceDataset, runner: Any) -> None:
    keys = pa.table({"x": [x for x in range(FRAGMENTS * ROWS) if x % ROWS == 1]})
    assert table.delete_by_keys(keys, "x", runner=runner)["num_deleted_rows"] == FRAGMENTS


def _merge(table: lance_ops.LanceDataset, runner: Any) -> None:
    source = pa.table({"x": [x for x in range(FRAGMENTS * ROWS) if x % ROWS == 1], "k": [9] * FRAGMENTS})
    source = source.append_column("pair", source["x"])
    assert table.merge_insert("x").when_matched_update_all().execute(source, runner=runner)["num_updated_rows"] == 12


def _delete_duplicates(table: lance_ops.LanceDataset, runner: Any) -> None:
    assert table.delete_duplicates("pair", runner=runner)["num_deleted_rows"] == 18


def _chosen(table: lance_ops.LanceDataset, runner: Any) -> None:
    rows = table.to_table(["x"], filter="k = 1", with_row_address=True)
    batch = pa.record_batch(
        [pa.array(["DELETE"] * FRAGMENTS), rows["_rowaddr"].combine_chunks(), rows["x"].combine_chunks()],
        ["action", "address", "x"],
    )
    task = ChosenRowsTask.of(table.snapshot, ["x"], as_it_is)
    outcomes = runner.map(task, [[batch]], ChosenRowsTask.job("change", table.snapshot))
    assert commit_chosen(table.snapshot, task, outcomes, "chosen", runner)[1].deleted == FRAGMENTS


def _replace(table: lance_ops.LanceDataset, runner: Any) -> None:
    new = pa.table({"x": [-1], "k": [1], "pair": [-1]})
    replace_rows(table.snapshot, "k", pa.array([1]), new, runner)


VERBS = {
    "delete": _delete,
    "update": _update,
    "delete by keys": _delete_by_keys,
    "merge": _merge,
    "delete duplicates": _delete_duplicates,
    "chosen rows": _chosen,
    "replace rows": _replace,
}


@pytest.mark.parametrize("verb", VERBS)
def test_tasks_write_all_deletion_files(verb: str, table: lance_ops.LanceDataset, calls: Calls, tmp_path: Path) -> None:
    twin = lance_ops.write_dataset(lance_ops.dataset(table.uri), tmp_path / "twin", max_rows_per_file=ROWS)
    VERBS[verb](table, calls.runner)
    assert calls.runner.num_writing_tasks == [3]
    assert calls.driver["put"] == 0
    assert calls.tasks["put"] == FRAGMENTS
    VERBS[verb](twin, InThreads())
    assert sorted_rows(table.uri) == sorted_rows(twin.uri)
    assert lance_ops.dataset(table.uri).verify().ok


def test_the_driver_reads_no_earlier_deletion_vector(
    table: lance_ops.LanceDataset, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Snapshot.deletion_vector

    def noted(snapshot: Snapshot, fragment: Fragment) -> BitMap:
        calls.note("read", f"{DELETIONS_DIR}/")
        return read(snapshot, fragment)

    monkeypatch.setattr(Snapshot, "deletion_vector", noted)
    table.delete("k = 1", runner=calls.runner)
    assert calls.driver["read"] == 0
    assert calls.tasks["read"] >= FRAGMENTS


def test_a_task_answers_with_the_metadata_of_its_files_alone(table: lance_ops.LanceDataset, calls: Calls) -> None:
    table.delete("k = 1", runner=calls.runner)
    assert len(calls.runner.outcome_bytes) == len(calls.runner.task_bytes)
    assert sum(calls.runner.outcome_bytes[-3:]) < 150 * FRAGMENTS + 3 * 300
    assert max(calls.runner.task_bytes[-3:]) < 1000 + len(table.uri) + 40 * FRAGMENTS


@pytest.mark.parametrize("fragments", [5, 7])
def test_few_deletion_files_are_not_worth_a_task(table: lance_ops.LanceDataset, calls: Calls, fragments: int) -> None:
    table.delete(f"k = 1 AND x < {fragments * ROWS}", runner=calls.runner)
    assert calls.runner.num_writing_tasks == []
    assert (calls.driver["put"], calls.tasks["put"]) == (fragments, 0)


def test_threads_need_no_tasks(table: lance_ops.LanceDataset, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion_files, "DeletionFilesTask", None)
    table.delete("k = 1", runner=InThreads(2))
    assert calls.driver["put"] == FRAGMENTS


def test_a_bitmap_that_is_large_has_a_task_of_its_own(
    table: lance_ops.LanceDataset, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion_files, "_BYTES_PER_TASK", 1)
    table.delete("k = 1", runner=calls.runner)
    assert calls.runner.num_writing_tasks == [FRAGMENTS]
    assert lance_ops.dataset(table.uri).count_rows("k = 1") == 0


def test_fragments_without_a_live_row_leave_the_table(table: lance_ops.LanceDataset, calls: Calls) -> None:
    assert table.delete("x < 50", runner=calls.runner)["num_deleted_rows"] == 40
    assert calls.runner.num_writing_tasks == [2]
    assert (calls.driver["put"], calls.tasks["put"]) == (0, 0)
    assert [fragment.fragment_id for fragment in lance_ops.dataset(table.uri).get_fragments()] == [10, 11]
    assert left(table.uri) == [x for x in range(50, 60) if x % ROWS != 4]


def test_a_deletion_that_others_beat_keeps_their_deletions_and_leaves_no_file_of_its_own(
    table: lance_ops.LanceDataset, calls: Calls
) -> None:
    before = files(table.uri)
    calls.runner.meanwhile = lambda: lance_ops.dataset(table.uri).delete("k = 2 AND x < 30")
    table.delete("k = 1", runner=calls.runner)
    assert calls.runner.num_writing_tasks == [3]  # the six fragments that both touched were rebased by the driver
    assert left(table.uri) == [x for x in range(60) if x % ROWS not in (1, 4) and not (x % ROWS == 2 and x < 30)]
    fragments = lance_ops.dataset(table.uri).get_fragments()
    named = {Path(table.uri, str(fragment.metadata.deletion_path)) for fragment in fragments}
    others = 6  # the other deletion's files, which its version names
    assert named <= files(table.uri)
    assert len(files(table.uri) - before - named) == others
    assert lance_ops.dataset(table.uri).verify().ok


def test_an_attempt_that_lost_its_rows_is_planned_again_and_leaves_no_file(
    table: lance_ops.LanceDataset, calls: Calls
) -> None:
    before = files(table.uri)
    calls.runner.meanwhile = lambda: lance_ops.dataset(table.uri).delete("x = 1")
    assert table.delete("k = 1", runner=calls.runner)["num_deleted_rows"] == FRAGMENTS - 1
    assert calls.runner.num_writing_tasks == [3, 3]
    assert left(table.uri) == [x for x in range(60) if x % ROWS not in (1, 4)]
    assert len(files(table.uri) - before) == 1 + FRAGMENTS - 1
    assert lance_ops.dataset(table.uri).verify().ok


def test_a_file_that_cannot_be_written_leaves_none(
    table: lance_ops.LanceDataset, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, put = files(table.uri), LocalStore.put

    def failing(store: LocalStore, path: str, data: BytesLike, *, durable: bool = True) -> None:
        if path.startswith(f"{DELETIONS_DIR}/11-"):
            raise StoreError(f"{path}: the disk is full")
        put(store, path, data, durable=durable)

    monkeypatch.setattr(LocalStore, "put", failing)
    with pytest.raises(StoreError, match="the disk is full"):
        table.delete("k = 1", runner=calls.runner)
    assert calls.tasks["put"] == FRAGMENTS - 1
    assert files(table.uri) == before
    assert lance_ops.dataset(table.uri).version == table.version


@dataclass
class Cancelled:
    """Runs all tasks, and is cancelled before an outcome of a deletion file's task arrives, as a cluster may be."""

    verb: str = WRITING
    left: list[Path] = field(default_factory=list)
    folder: Path = Path()

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], job: Job | None = None, discard: Any = None
    ) -> list[R]:
        assert job is not None
        token = new_job_token()
        with file_names_of_job(token):
            outcomes = [function(pickle.loads(pickle.dumps(task))) for task in tasks]
        if job.verb != self.verb:
            return outcomes
        self.left += self.folder.iterdir()
        assert job.remove_files is not None
        job.remove_files(token)
        raise TasksLost("Spark gave the tasks up: somebody cancelled the job")


@pytest.mark.parametrize("verb", ["delete", "update", "delete duplicates", "chosen rows"])
def test_a_cancelled_job_leaves_no_file(verb: str, table: lance_ops.LanceDataset) -> None:
    folders = [Path(table.uri, name) for name in (DELETIONS_DIR, "data")]
    before = [set(folder.iterdir()) for folder in folders]
    runner = Cancelled(folder=folders[0])
    with pytest.raises(TasksLost):
        VERBS[verb](table, runner)
    assert len(set(runner.left) - before[0]) == FRAGMENTS
    assert [set(folder.iterdir()) for folder in folders] == before
    assert lance_ops.dataset(table.uri).version == table.version


@pytest.fixture(autouse=True)
def _no_pin_is_left(dataset_uri: str) -> Iterator[None]:
    yield
    assert not [path for path in Path(dataset_uri).glob("_lance_ops/**/*") if path.is_file()]
