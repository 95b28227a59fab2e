"""Pins of running work keep versions that hold the rows: an erasure waits for it, but not for its own dead run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.compaction import execute_rewrite
from lance_ops.maintenance.erasure import ErasureOptions, Subject, erase, plan_erasure
from lance_ops.refs import PINS_DIR
from lance_ops.runners import InThreads
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
    assert not plan_erasure(people.snapshot, WHOSE).pins
    report = erase(people.snapshot, WHOSE, ALL)
    assert report.is_proven, report.unproven
    assert report.id == record.stem
    assert holders(people.uri) == []
    assert pins(people.uri) == []
