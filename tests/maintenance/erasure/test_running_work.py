"""Pins of running work keep versions that hold the rows: an erasure waits for it, but not for its own dead run."""

from __future__ import annotations

from contextlib import ExitStack
from contextvars import Context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import HeldByRunningWork
from lance_ops.maintenance.compaction import execute_rewrite
from lance_ops.maintenance.erasure import ErasureOptions, Subject, erase, plan_erasure
from lance_ops.refs import PINS_DIR, pinned_with_later
from lance_ops.runners import InThreads
from lance_ops.snapshot import Snapshot
from lance_ops.transactions import PendingFiles

SUBJECT = "subject-7f3a9c"
ALL = ErasureOptions("request 12", rewrite_branches=True)
WHOSE = Subject(f"name = '{SUBJECT}'")


@pytest.fixture
def people(dataset_uri: str) -> lance_ops.LanceDataset:
    """Versions with a row of the subject, on two branches, and an index; each commit cleans up, and removes nothing."""
    for at in range(4):
        names = [SUBJECT if (at, each) == (1, 3) else f"name {at}.{each}" for each in range(20)]
        made = lance_ops.write_dataset(pa.table({"id": range(20), "name": names}), dataset_uri, mode="append")
    made.create_scalar_index("name", "BTREE")
    made.optimize.enable_auto_cleanup({"interval": 1, "older_than_seconds": 10**6})
    made.create_branch("trial", made.version)
    return made


def holders(root: str) -> list[Path]:
    return [each for each in Path(root).rglob("*") if each.is_file() and SUBJECT.encode() in each.read_bytes()]


def pins(root: str) -> list[Path]:
    return list(Path(root).glob(f"**/{PINS_DIR}/*"))


@pytest.mark.parametrize("step", ["execute_rewrite", "rebuild_index"])
def test_an_erasure_that_was_killed_while_it_pinned_a_version_goes_on(
    people: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    class Killed(BaseException):
        pass

    class Killing(InThreads):
        def map(self, function: Any, tasks: Any, job: Any = None, *rest: Any) -> Any:
            if pins(people.uri) and (function is execute_rewrite) == (step == "execute_rewrite"):
                raise Killed
            return super().map(function, tasks, job, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(PendingFiles, "abandon", lambda _: None)  # a killed process removes nothing
        with pytest.raises(Killed):
            erase(people.snapshot, WHOSE, ALL, Killing())
    (record,) = Path(people.uri, "_lance_ops/erasures").glob("*.json")
    assert pins(people.uri)
    assert not any(branch.pins for branch in plan_erasure(people.snapshot, WHOSE).branches)
    report = erase(people.snapshot, WHOSE, ALL)
    assert report.is_proven, report.unproven
    assert report.id == record.stem
    assert holders(people.uri) == []
    assert pins(people.uri) == []


@pytest.mark.parametrize("branch", [None, "trial"])
def test_work_that_begins_in_a_round_is_named_and_nothing_is_raised(
    people: lance_ops.LanceDataset, branch: str | None
) -> None:
    with ExitStack() as work:

        class Ingesting(InThreads):
            """Begins long work on the newest version while the first fragments are rewritten."""

            def map(self, function: Any, tasks: Any, *rest: Any) -> Any:
                if function is execute_rewrite and not work_begun:
                    work_begun.append(lance_ops.dataset(people.uri).checkout_version((branch, None)).snapshot)
                    Context().run(work.enter_context, pinned_with_later(work_begun[0]))  # as another process
                return super().map(function, tasks, *rest)

        work_begun: list[Snapshot] = []
        report = erase(people.snapshot, WHOSE, ALL, Ingesting())
        assert report.finished_at
        assert not report.is_proven
        assert report.waits_for_writers, report.unproven
        first = work_begun[0].version
        kept = [each for each in report.unproven if each.startswith("version ")]
        assert kept
        assert all("running work keeps it (_lance_ops/pins/" in each for each in kept)
        assert {each.partition(" of ")[2].partition(":")[0] for each in kept} == {branch or "main"}
        assert f"{branch or 'main'}/{first}" not in report.removed_versions
        assert work_begun[0].committer.exists(first)
        with pytest.raises(HeldByRunningWork, match=f"running work holds the rows: version .* of {branch or 'main'} "):
            erase(people.snapshot, WHOSE, ALL)
    report = erase(people.snapshot, WHOSE, ALL)
    assert report.is_proven, report.unproven
    assert holders(people.uri) == []


def test_a_tag_that_is_made_in_a_round_is_named_in_the_report(people: lance_ops.LanceDataset) -> None:
    class Tagging(InThreads):
        def map(self, function: Any, tasks: Any, *rest: Any) -> Any:
            if function is execute_rewrite and "late" not in people.tags.list():
                people.tags.create("late", 3)
            return super().map(function, tasks, *rest)

    report = erase(people.snapshot, WHOSE, ALL, Tagging())
    assert report.finished_at
    assert not report.waits_for_writers
    assert "further rounds were refused" in report.unproven[0]
    assert "late (version 3 of main)" in report.unproven[0]
