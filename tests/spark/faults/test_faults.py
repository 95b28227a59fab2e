"""Faults on a cluster leave a dataset as it was, or with the whole commit; clean-up finds what lost attempts left."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lance_ops
from lance_ops import verbs
from tests.groups import OWN_SESSIONS
from tests.spark.faults.on_cluster import FILES, ROWS_BEFORE
from tests.spark.faults.struck_verbs import ALL_FAULTS_OF_VERBS, DEATHS, FAULTS_OF_VERBS, VERBS

ROOT = Path(__file__).parents[3]
ERRORS = {
    "the job is cancelled": "KeyboardInterrupt: ",
    "a disk stays full": "StoreError: cannot write ",
    "the store goes on throttling": "StoreError: 503 Slow Down",
}
"""How the error begins that ends a verb; after other faults it ends well."""

STRUCK_AS: dict[type[verbs.Verb], tuple[str, ...]] = {
    verbs.IngestFiles: ("ingestion", "ingestion by key", "history"),
    verbs.DeleteRows: ("deletion", "deletion by keys", "deletion files"),
    verbs.DeleteDuplicates: ("duplicates",),
    verbs.Update: ("update", "values by row"),
    verbs.Upsert: ("merge", "stage of a merge"),
    verbs.AddColumns: ("column", "column with a checkpoint"),
    verbs.Erase: ("search for an erasure", "erasure"),
    verbs.Compact: ("compaction", "sort", "index remap"),
    verbs.Reindex: ("index", "zone map", "index extension"),
    verbs.Cleanup: ("clean-up",),
    verbs.Verify: ("verification",),
    verbs.Repair: ("verification",),
    verbs.Migrate: ("migration",),
    verbs.Clone: ("deep clone",),
}
WITHOUT_TASKS = {verbs.Restore, verbs.DropIndex, verbs.Tag, verbs.Branch}
OTHERS = {"write of a frame", "UPDATE", "DELETE", "MERGE"}
"""What is struck of the doors of Spark alone."""

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900), OWN_SESSIONS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> dict[str, Any]:
    """Run all faults in one process with one session; it ends by the last of them."""
    return _run_on_cluster(str(folder), status=-signal.SIGKILL)


@pytest.fixture(scope="module")
def outcomes_of_all_verbs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run all verbs under all of their faults, in one process with one session."""
    return _run_on_cluster(str(tmp_path_factory.mktemp("verbs")), "all-verbs", status=0)


def _run_on_cluster(*arguments: str, status: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.spark.faults.on_cluster", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == status, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("fault", "attempts", "left_over"),
    [
        # Spark repeats the struck task's group, so the file of the task before it in the group stays, too.
        ("an executor is killed", 2, 2),
        ("a disk is full at first", 2, 1),
        ("the store throttles at first", 2, 1),
        ("a task runs twice", 1, 1),
        ("an executor is killed under df.write", 1, 0),
        ("an executor is killed under write", 1, 0),
        ("the driver dies after the commit", 0, 0),
    ],
)
def test_a_fault_that_passes_leaves_the_whole_commit(
    outcomes: dict[str, Any], fault: str, attempts: int, left_over: int
) -> None:
    found = outcomes[fault]
    assert (found["error"], found["version"], found["rows"]) == (None, 2, "all")
    assert (found["attempts"], found["left over"]) == (attempts, left_over)
    assert found["removed"] == left_over


@pytest.mark.parametrize(
    ("fault", "attempts", "left_over"),
    [
        ("a disk stays full", 4, 0),
        ("the store goes on throttling", 4, 0),
        ("the job is cancelled", 1, 0),  # no outcome reaches the driver, which finds the files by their names
    ],
)
def test_a_fault_that_stays_leaves_the_dataset_as_before(
    outcomes: dict[str, Any], fault: str, attempts: int, left_over: int
) -> None:
    found = outcomes[fault]
    assert (found["version"], found["rows"]) == (1, "before")
    assert (found["attempts"], found["left over"]) == (attempts, left_over)
    assert found["removed"] == left_over


@pytest.mark.parametrize(("verb", "fault"), FAULTS_OF_VERBS)
def test_a_fault_in_another_verb_leaves_all_or_nothing(outcomes: dict[str, Any], verb: str, fault: str) -> None:
    check_all_or_nothing(outcomes[f"{verb}: {fault}"], verb, fault)


def test_every_verb_that_works_by_tasks_is_struck() -> None:
    assert STRUCK_AS.keys() | WITHOUT_TASKS == set(verbs.ALL_VERBS)
    assert {each for of_verb in STRUCK_AS.values() for each in of_verb} | OTHERS == VERBS.keys()


@pytest.mark.soak
@pytest.mark.timeout(2000)
@pytest.mark.parametrize(("verb", "fault"), ALL_FAULTS_OF_VERBS)
def test_every_fault_in_every_verb_leaves_all_or_nothing(
    outcomes_of_all_verbs: dict[str, Any], verb: str, fault: str
) -> None:
    check_all_or_nothing(outcomes_of_all_verbs[f"{verb}: {fault}"], verb, fault)


@pytest.mark.parametrize(("verb", "moment"), DEATHS)
def test_a_driver_of_another_verb_that_dies_leaves_all_or_nothing(
    outcomes: dict[str, Any], verb: str, moment: str
) -> None:
    found = outcomes[f"{verb}: {moment}"]
    assert found["after" if moment == "after" else "before"], found
    assert found["left over"] > 0 if moment == "before" else found["left over"] >= 0
    assert (found["removed"], found["stayed"]) == (found["left over"], 0)


def check_all_or_nothing(found: dict[str, Any], verb: str, fault: str) -> None:
    error, in_parts = ERRORS.get(fault), VERBS[verb].in_parts
    assert found["struck"]
    assert found["error"] is None if error is None else (found["error"] or "").startswith(error), found["error"]
    assert found["after" if error is None else "before"], found
    assert (
        in_parts or found["left over"] <= 1
    )  # of an attempt that was repeated, or that wrote on while it was cancelled
    assert (found["removed"], found["stayed"]) == (found["left over"], 0)


def test_an_error_names_the_task_and_the_file(outcomes: dict[str, Any]) -> None:
    error = outcomes["a disk stays full"]["error"]
    assert error.startswith("StoreError: cannot write ")
    assert "/a-disk-stays-full/t.lance/data/" in error.splitlines()[0]
    assert "raised in a Spark worker by task 2 of 4 of 'ingest into t v1':" in error
    assert outcomes["the store goes on throttling"]["error"].startswith("StoreError: 503 Slow Down")
    assert outcomes["the job is cancelled"]["error"].startswith("KeyboardInterrupt")


def test_after_a_commit_that_nobody_saw_a_second_run_ingests_nothing(outcomes: dict[str, Any]) -> None:
    assert outcomes["the driver dies after the commit"]["again"] is None


def test_a_driver_that_dies_before_its_commit_leaves_the_dataset_as_before(
    outcomes: dict[str, Any], folder: Path
) -> None:
    dataset = lance_ops.dataset(str(folder / "before" / "t.lance"))
    assert (dataset.version, dataset.count_rows()) == (1, ROWS_BEFORE)
    stats = dataset.cleanup_old_versions(retain_versions=99, delete_unverified=True)
    assert stats.data_files_removed == FILES
    assert dataset.to_table().num_rows == ROWS_BEFORE
