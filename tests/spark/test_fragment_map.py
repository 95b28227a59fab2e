"""`map_fragments`: a function of the caller's, with the rows of one fragment at a time."""

from __future__ import annotations

import pickle
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import InvalidFilter, InvalidInput, TasksLost, WrongType
from lance_ops.runners import Job
from lance_ops.spark import OnSpark, fragment_map, map_fragments

T = TypeVar("T")
R = TypeVar("R")


class InOtherProcess:
    """Runs tasks as another process would: function and tasks are pickled."""

    num_tasks = 0
    weights: tuple[int, ...] = ()

    def map(
        self,
        function: Callable[[T], R],
        tasks: Sequence[T],
        job: Job | None = None,
        discard: Callable[[R], None] | None = None,
    ) -> list[R]:
        assert job is not None and len(job.weights) == len(tasks)
        self.num_tasks, self.weights = len(tasks), job.weights
        outcomes: list[R] = []
        for task in tasks:
            there, part = pickle.loads(pickle.dumps((function, task)))
            outcomes.append(there(part))
        return outcomes


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Twelve rows in three fragments."""
    table = pa.table({"x": range(12), "name": [f"n{i}" for i in range(12)]})
    return write_dataset(table, dataset_uri, max_rows_per_file=4)


def rows(batches: pa.RecordBatchReader) -> list[dict[str, object]]:
    return batches.read_all().to_pylist()  # type: ignore[no-any-return]


def xs(batches: pa.RecordBatchReader) -> list[int]:
    assert batches.schema.names == ["x"]
    return batches.read_all().column("x").to_pylist()  # type: ignore[no-any-return]


def test_each_fragment_gives_one_outcome_in_the_order_of_rows(numbers: LanceDataset) -> None:
    numbers.delete("x < 5")
    runner = InOtherProcess()
    assert map_fragments(numbers, xs, ["x"], runner=runner) == {1: [5, 6, 7], 2: [8, 9, 10, 11]}
    assert [*map_fragments(numbers, xs, ["x"], runner=runner)] == [1, 2]
    assert map_fragments(numbers, rows, {"double": "x * 2"}, "x > 10", runner=runner)[2] == [{"double": 22}]


def test_fragments_that_an_index_leaves_out_are_no_tasks(numbers: LanceDataset) -> None:
    assert map_fragments(numbers, xs, ["x"], "x = 6", runner=InOtherProcess()) == {0: [], 1: [6], 2: []}
    numbers.create_scalar_index("x", "BTREE")
    runner = InOtherProcess()
    assert map_fragments(numbers, xs, ["x"], "x = 6", runner=runner) == {1: [6]}
    assert runner.num_tasks == 1


def test_a_task_weighs_all_rows_that_a_zone_map_leaves(dataset_uri: str) -> None:
    values = [*[0] * 8192, *[9] * 8192, *[0] * 8192]
    gaps = write_dataset(pa.table({"x": values}), dataset_uri)
    gaps.create_scalar_index("x", "ZONEMAP")
    runner = InOtherProcess()
    assert len(map_fragments(gaps, xs, ["x"], "x = 0", runner=runner)[0]) == 2 * 8192
    assert runner.weights == (2 * 8192,)


def test_the_example_of_the_module_is_a_program() -> None:
    example = str(fragment_map.__doc__).partition("\n\n")[2]
    compile(textwrap.dedent(example), "fragment_map", "exec")


def test_a_mistake_is_raised_before_a_task_starts(numbers: LanceDataset) -> None:
    runner = InOtherProcess()
    with pytest.raises(InvalidInput, match="nope"):
        map_fragments(numbers, rows, ["nope"], runner=runner)
    with pytest.raises(InvalidFilter):
        map_fragments(numbers, rows, filter="nope = 1", runner=runner)
    assert runner.num_tasks == 0


@pytest.mark.parametrize("opened", [str, lambda _: pa.table({"x": [1]}), lambda _: None], ids=["path", "table", "none"])
def test_what_is_no_dataset_of_this_library_is_refused_by_its_type(numbers: LanceDataset, opened: Any) -> None:
    given = opened(numbers.uri)
    shown = type(given).__name__
    with pytest.raises(WrongType, match=rf"takes a dataset that lance_ops.dataset\(uri\) has opened, not {shown}"):
        map_fragments(given, xs, runner=InOtherProcess())


@pytest.mark.parametrize("fn", [None, 5])
def test_what_is_no_function_is_refused_before_a_task_starts(numbers: LanceDataset, fn: Any) -> None:
    runner = InOtherProcess()
    with pytest.raises(WrongType, match=f"a function of a RecordBatchReader as fn, not {fn}"):
        map_fragments(numbers, fn, runner=runner)
    assert runner.num_tasks == 0


@pytest.mark.spark
def test_functions_run_in_sparks_tasks(tasks: OnSpark, numbers: LanceDataset) -> None:
    offset = 100
    found = map_fragments(numbers, lambda batches: sum(xs(batches)) + offset, ["x"], "x > 1")
    assert found == {0: 105, 1: 122, 2: 138}
    assert map_fragments(numbers, xs, ["x"], runner=tasks) == {i: [*range(4 * i, 4 * i + 4)] for i in range(3)}


@pytest.mark.spark
def test_a_return_value_that_stays_in_the_worker_is_refused_by_name(tasks: OnSpark, numbers: LanceDataset) -> None:
    with pytest.raises(WrongType, match="return value cannot be pickled.*reader cannot be converted"):
        map_fragments(numbers, lambda batches: batches, ["x"], runner=tasks)


class Absent:
    """A function that no worker can load."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return int, ("absent",)

    def __call__(self, batches: pa.RecordBatchReader) -> int:
        raise AssertionError


@pytest.mark.spark
def test_what_a_worker_says_when_it_ends_is_in_the_error(tasks: OnSpark, numbers: LanceDataset) -> None:
    with pytest.raises(TasksLost, match="ValueError: invalid literal .*absent"):
        map_fragments(numbers, Absent(), ["x"], runner=tasks)
