"""Merge plans name the clauses as the reference's do, and an analysis counts the same rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

Build = Callable[[Any], Any]

ROWS = pa.table({"id": range(10), "w": [float(i) for i in range(10)]})
SOURCE = pa.table({"id": [8, 9, 10], "w": [0.0, 90.0, 100.0]})

MERGES: dict[str, Build] = {
    "upsert": lambda b: b.when_matched_update_all().when_not_matched_insert_all(),
    "update under a condition": lambda b: b.when_matched_update_all("source.w > target.w"),
    "insert only": lambda b: b.when_not_matched_insert_all(),
    "replace": lambda b: b.when_matched_update_all().when_not_matched_by_source_delete(),
    "replace some": lambda b: b.when_matched_update_all().when_not_matched_by_source_delete("w > 1"),
    "delete": lambda b: b.when_matched_delete(),
    "fail": lambda b: b.when_matched_fail().when_not_matched_insert_all(),
}


def clauses(plan: str) -> dict[str, str]:
    """Return the first line's clauses, without what is in parentheses: the reference does not spell conditions out."""
    line = next(line for line in plan.splitlines() if "MergeInsert: " in line)
    return dict(re.findall(r"(on|when_\w+)=(\[[^]]*]|\w+)", line))


def counts(analysis: str) -> dict[str, str]:
    return dict(re.findall(r"(num_(?:inserted|updated|deleted)_rows)=(\d+)", analysis))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(lance_ops.write_dataset(ROWS, tmp_path / "table").uri)


@pytest.mark.parametrize("build", MERGES.values(), ids=MERGES)
def test_a_merge_plan_names_the_clauses_as_the_reference_does(uri: str, build: Build) -> None:
    ours = clauses(build(lance_ops.dataset(uri).merge_insert("id")).explain_plan())
    theirs = clauses(build(lance.dataset(uri).merge_insert("id")).explain_plan())
    assert theirs.keys() >= {"on", "when_matched", "when_not_matched"}
    assert {name: ours[name] for name in theirs} == theirs


@pytest.mark.parametrize("name", ["upsert", "update under a condition", "insert only", "delete"])
def test_an_analysis_counts_the_same_rows_and_commits_nothing(uri: str, name: str) -> None:
    ours = MERGES[name](lance_ops.dataset(uri).merge_insert("id")).analyze_plan(SOURCE)
    theirs = MERGES[name](lance.dataset(uri).merge_insert("id")).analyze_plan(SOURCE)
    assert counts(ours) == counts(theirs) and len(counts(ours)) == 3
    assert lance_ops.dataset(uri).version == 1
