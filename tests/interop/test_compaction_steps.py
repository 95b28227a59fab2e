"""A compaction in steps by a scheduler of the caller, as `lance.optimize` offers it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import optimize
from lance_ops.api.compaction import checked_options
from lance_ops.errors import InvalidInput, RetryableConflict, UnsupportedFeature, WrongType
from lance_ops.maintenance.compaction import CompactionOptions as CheckedOptions

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

THEIRS = import_module("lance.optimize")
BOTH = [(lance_ops, optimize), (lance, THEIRS)]
AROUND_THE_THIRD: optimize.CompactionOptions = {"excluded_fragment_ids": [2]}


def make(uri: Path | str, *, stable: bool = False, index: bool = False) -> str:
    """Write five fragments of ten rows, three of them deleted."""
    dataset = lance_ops.write_dataset(
        pa.table({"id": range(50)}), str(uri), max_rows_per_file=10, enable_stable_row_ids=stable
    )
    dataset.delete("id IN (3, 13, 14)")
    if index:
        dataset.create_scalar_index("id", "BTREE")
    return dataset.uri


def ids(library: Any, uri: str) -> list[int]:
    """Return the rows, sorted: both libraries put rewritten fragments behind those that stay."""
    return sorted(library.dataset(uri).to_table()["id"].to_pylist())


KEPT = [key for key in range(50) if key not in (3, 13, 14)]

CARRIERS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda value: value,
    "as a pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "as JSON": lambda value: type(value).from_json(value.json()),
}


@pytest.mark.parametrize("carry", CARRIERS.values(), ids=CARRIERS)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize(("library", "steps"), BOTH)
def test_tasks_run_elsewhere_and_are_committed_together(
    tmp_path: Path, library: Any, steps: Any, stable: bool, carry: Callable[[Any], Any]
) -> None:
    uri = make(tmp_path / "table", stable=stable, index=True)
    dataset = library.dataset(uri)
    plan = carry(steps.Compaction.plan(dataset, AROUND_THE_THIRD))
    assert plan.read_version == dataset.version == 3
    assert plan.num_tasks() == len(plan.tasks) == 2
    assert [[part.id for part in task.fragments] for task in plan.tasks] == [[0, 1], [3, 4]]
    with ThreadPoolExecutor(2) as pool:  # each worker opens the dataset on its own
        results = list(pool.map(lambda task: carry(carry(task).execute(library.dataset(uri))), plan.tasks))
    assert [result.read_version for result in results] == [3, 3]
    assert library.dataset(uri).version == 3
    metrics = steps.Compaction.commit(dataset, results)
    assert metrics.fragments_removed == sum(result.metrics.fragments_removed for result in results)
    assert metrics.fragments_added == sum(result.metrics.fragments_added for result in results)
    assert dataset.version == library.dataset(uri).version > 3
    for reader in (lance_ops, lance):
        assert ids(reader, uri) == KEPT
        assert reader.dataset(uri).to_table(filter="id = 17")["id"].to_pylist() == [17]
        reader.dataset(uri).validate()


def test_a_plan_holds_the_reference_s_fragments_and_metrics(tmp_path: Path) -> None:
    uri, found = make(tmp_path / "table"), []
    for library, steps in BOTH:
        dataset = library.dataset(uri)
        (task, *_) = steps.Compaction.plan(dataset, {}).tasks
        result = task.execute(dataset)
        known = json.loads(result.json())
        found.append(
            (
                task.read_version,
                [part.id for part in task.fragments],
                [part.id for part in result.original_fragments],
                [part.physical_rows for part in result.new_fragments],
                known["metrics"],
                known["read_version"],
                [part["id"] for part in known["original_fragments"]],
            )
        )
    assert found[0] == found[1]


def test_a_result_of_the_reference_s_task_is_committed_here(tmp_path: Path) -> None:
    uri = make(tmp_path / "table", index=True)
    theirs = lance.dataset(uri)
    texts = [task.execute(theirs).json() for task in THEIRS.Compaction.plan(theirs, {}).tasks]
    dataset = lance_ops.dataset(uri)
    dataset.delete("id = 20")
    optimize.Compaction.commit(dataset, [optimize.RewriteResult.from_json(text) for text in texts])
    assert ids(lance, uri) == [key for key in KEPT if key != 20]
    assert lance.dataset(uri).to_table(filter="id = 17").num_rows == 1
    assert len(dataset.get_fragments()) == 1


@pytest.mark.parametrize(("library", "steps"), BOTH)
def test_executing_at_once_moves_the_handle(tmp_path: Path, library: Any, steps: Any) -> None:
    dataset = library.dataset(make(tmp_path / "table"))
    metrics = steps.Compaction.execute(dataset, {})
    assert (metrics.fragments_removed, metrics.fragments_added) == (5, 1)
    assert (metrics.files_removed, metrics.files_added) == (7, 1)
    assert dataset.version == 4 and len(dataset.get_fragments()) == 1
    again = steps.Compaction.execute(dataset, {})
    assert (again.fragments_removed, dataset.version) == (0, 4)


@pytest.mark.parametrize(("library", "steps"), BOTH)
def test_committing_nothing_makes_no_version(tmp_path: Path, library: Any, steps: Any) -> None:
    dataset = library.dataset(make(tmp_path / "table"))
    assert steps.Compaction.commit(dataset, []).fragments_removed == 0
    assert dataset.version == 2


def test_results_committed_twice_are_a_conflict_and_keep_the_files_of_the_first(tmp_path: Path) -> None:
    uri = make(tmp_path / "table")
    dataset = lance_ops.dataset(uri)
    results = [task.execute(dataset) for task in optimize.Compaction.plan(dataset, {}).tasks]
    optimize.Compaction.commit(dataset, results)
    with pytest.raises(RetryableConflict):
        optimize.Compaction.commit(lance_ops.dataset(uri), results)
    lance_ops.dataset(uri).validate()
    assert ids(lance_ops, uri) == ids(lance, uri) == KEPT


def test_rows_deleted_and_indices_made_meanwhile_are_followed(tmp_path: Path) -> None:
    uri = make(tmp_path / "table")
    planned = lance_ops.dataset(uri)
    results = [task.execute(planned) for task in optimize.Compaction.plan(planned, {}).tasks]
    other = lance_ops.dataset(uri)
    other.delete("id = 22")
    other.create_scalar_index("id", "BTREE")
    optimize.Compaction.commit(planned, results)
    for reader in (lance_ops, lance):
        assert ids(reader, uri) == [key for key in KEPT if key != 22]
        assert reader.dataset(uri).to_table(filter="id = 30")["id"].to_pylist() == [30]
    assert "ScalarIndexQuery" in lance.dataset(uri).scanner(filter="id = 30").explain_plan()


def test_results_of_two_plans_and_tasks_of_another_dataset_are_refused(tmp_path: Path) -> None:
    dataset = lance_ops.dataset(make(tmp_path / "table"))
    (task,) = optimize.Compaction.plan(dataset, {}).tasks
    first = task.execute(dataset)
    dataset.delete("id = 0")
    (later,) = optimize.Compaction.plan(dataset, {}).tasks
    with pytest.raises(InvalidInput, match=r"\[2, 3\]"):
        optimize.Compaction.commit(dataset, [first, later.execute(dataset)])
    other = lance_ops.dataset(make(tmp_path / "other"))
    with pytest.raises(InvalidInput, match="another dataset"):
        task.execute(other)
    with pytest.raises(InvalidInput, match="another dataset"):
        optimize.Compaction.commit(other, [first])
    assert other.version == other.latest_version == 2


@pytest.mark.parametrize("kind", [optimize.CompactionPlan, optimize.CompactionTask, optimize.RewriteResult])
@pytest.mark.parametrize("text", ["", "3", "[]", "{}", '{"read_version": "x"}', "nonsense"])
def test_text_that_is_not_what_json_returned_is_refused(kind: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match="in JSON"):
        kind.from_json(text)


@pytest.mark.parametrize("kind", [optimize.CompactionPlan, optimize.CompactionTask, optimize.RewriteResult])
def test_a_version_that_is_no_number_of_a_version_is_refused(tmp_path: Path, kind: Any) -> None:
    dataset = lance_ops.dataset(make(tmp_path / "table"))
    plan = optimize.Compaction.plan(dataset, {})
    made = {type(each): each for each in (plan, plan.tasks[0], plan.tasks[0].execute(dataset))}[kind]
    for version in (0, True, "1", None, float("inf")):
        text = json.dumps(json.loads(made.json()) | {"read_version": version})
        with pytest.raises(InvalidInput, match="in JSON"):
            kind.from_json(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("target_rows_per_fragment", "x"),
        ("target_rows_per_fragment", 0),
        ("max_bytes_per_file", None),
        ("data_storage_version", 7),
        ("data_storage_version", "9.9"),
    ],
)
def test_a_task_whose_options_cannot_be_used_is_refused_before_a_worker_gets_it(
    tmp_path: Path, name: str, value: object
) -> None:
    (task,) = optimize.Compaction.plan(lance_ops.dataset(make(tmp_path / "table")), {}).tasks
    values = json.loads(task.json())
    values["options"][name] = value
    with pytest.raises(InvalidInput, match="in JSON"):
        optimize.CompactionTask.from_json(json.dumps(values))


WRONG: dict[str, tuple[Any, type[Exception], bool]] = {
    "foo": (1, InvalidInput, True),
    "target_rows_per_fragment": ("x", WrongType, True),
    "max_source_rows": (-1, InvalidInput, True),
    "max_rows_per_group": (-1, InvalidInput, True),
    "materialize_deletions": (3, WrongType, True),
    "compaction_mode": ("sideways", InvalidInput, True),
    "data_storage_version": ("9", InvalidInput, True),
    "excluded_fragment_ids": (3, WrongType, True),
    "defer_index_remap": (True, UnsupportedFeature, False),
}


@pytest.mark.parametrize("name", WRONG)
def test_options_that_cannot_be_used_are_refused(tmp_path: Path, name: str) -> None:
    value, error, in_both = WRONG[name]
    uri = make(tmp_path / "table")
    options: Any = {name: value}
    with pytest.raises(error):
        optimize.Compaction.plan(lance_ops.dataset(uri), options)
    with pytest.raises(error):
        optimize.Compaction.commit(lance_ops.dataset(uri), [], options)
    if in_both:
        with pytest.raises((ValueError, TypeError, OverflowError)):
            THEIRS.Compaction.plan(lance.dataset(uri), options)


HARMLESS: list[dict[str, Any]] = [
    {"num_threads": 1, "batch_size": 3, "io_buffer_size": 1 << 20, "max_rows_per_group": 7},
    {"compaction_mode": "try_binary_copy", "binary_copy_read_batch_bytes": 1 << 20},
    {"compaction_mode": "reencode", "target_rows_per_fragment": None} | {"materialize_deletions_threshold": 1},
    {"excluded_fragment_ids": [2, 2, 99]},
    {"max_source_fragments": 2, "target_rows_per_fragment": 20},
]


@pytest.mark.parametrize("options", HARMLESS, ids=str)
def test_options_of_the_reference_are_taken(tmp_path: Path, options: Any) -> None:
    uri = make(tmp_path / "table")
    given = {name: value for name, value in options.items() if value is not None}  # None is an error there
    planned = [[part.id for part in task.fragments] for task in THEIRS.Compaction.plan(lance.dataset(uri), given).tasks]
    dataset = lance_ops.dataset(uri)
    plan = optimize.Compaction.plan(dataset, options)
    assert [[part.id for part in task.fragments] for task in plan.tasks] == planned or "max_source_fragments" in options
    optimize.Compaction.execute(dataset, options)
    assert ids(lance, uri) == KEPT


CONFIGURED = {
    "target_rows_per_fragment": ("20", 20),
    "max_bytes_per_file": ("1000", 1000),
    "materialize_deletions": ("FALSE", False),
    "materialize_deletions_threshold": ("0.5", 0.5),
    "max_source_fragments": ("2", 2),
    "max_source_rows": ("7", 7),
    "max_source_bytes": ("8", 8),
    "data_storage_version": ("2.1", "2.1"),
}


@pytest.mark.parametrize("name", CONFIGURED)
def test_the_table_s_configuration_holds_defaults(tmp_path: Path, name: str) -> None:
    text, value = CONFIGURED[name]
    dataset = lance_ops.dataset(make(tmp_path / "table"))
    dataset.update_config({f"lance.compaction.{name}": text})
    theirs = json.loads(THEIRS.Compaction.plan(lance.dataset(dataset.uri), {}).json())["options"]
    assert theirs[name] == value
    assert getattr(checked_options(dataset.snapshot, {}), name) == value
    explicit = getattr(CheckedOptions(), name) or ("2.0" if isinstance(value, str) else 3)
    assert getattr(checked_options(dataset.snapshot, {name: explicit}), name) == explicit
    dataset.update_config({f"lance.compaction.{name}": "wrong"})
    for refuse in (
        lambda: optimize.Compaction.plan(dataset, {}),
        lambda: THEIRS.Compaction.plan(lance.dataset(dataset.uri), {}),
        dataset.optimize.compact_files,
    ):
        with pytest.raises(ValueError, match=f"lance.compaction.{name}"):
            refuse()
