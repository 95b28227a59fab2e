"""The bench on Spark measures what it says: every case gives one answer, and workers are in the state it names."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.bench.spark.cases import ALL_CASES, COLD, FRAGMENTS_TO_COMPACT, IDLE, WARM, Bench, Case
from tests.bench.spark.page import page
from tests.bench.spark.rounds import Measured, measure
from tests.spark.python_processes import cpu_seconds, end_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 960


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    made = Bench(lambda plain_workers: spark, tmp_path_factory.mktemp("bench"), ROWS)
    made.prepare()
    return made


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_every_case_is_measured_and_leaves_nothing(bench: Bench, case: Case) -> None:
    (measured,) = measure(bench, [replace(case, most={WARM: 1.0})], warm_rounds=1, other_rounds=1)
    assert (measured.case, measured.state) == (case.name, WARM)
    assert min(measured.seconds[0]) > 0 and measured.ratio > 0
    assert [seconds > 0 for seconds in measured.bound_seconds] == [True] * (case.bound is not None)
    assert not list(Path(bench.root).glob("made-*"))


@pytest.mark.spark
def test_contenders_that_answer_differently_are_not_measured(bench: Bench) -> None:
    case = Case("lying", "the truth", {WARM: 1.0}, lambda bench, given: 1, lambda bench, given: 2)
    with pytest.raises(AssertionError, match=r"lying: .*\[1, 2\]"):
        next(measure(bench, [case], warm_rounds=1, other_rounds=1))


@pytest.mark.spark
def test_idle_workers_are_new_processes_and_their_cpu_time_counts(bench: Bench) -> None:
    def workers() -> set[int]:
        return set(bench.session.sparkContext.parallelize(range(8), 4).map(lambda _: os.getpid()).collect())

    def work(_: int) -> int:
        return sum(range(3_000_000))

    before = workers()
    assert end_workers() >= len(before) > 0
    assert not before & workers()
    spent = cpu_seconds()
    bench.session.sparkContext.parallelize(range(8), 2).map(work).collect()
    assert cpu_seconds() > spent


def test_the_page_lists_what_misses_first_and_the_worst_of_it_before_the_rest() -> None:
    results = [
        Measured("met", "Spark's Parquet", WARM, 1.0, [(0.5, 1.0)], [(0.5, 1.0)]),
        Measured("near", "Spark's Parquet", IDLE, 1.0, [(1.1, 1.0), (1.3, 1.0), (9.0, 1.0)], [(1.0, 1.0)] * 3),
        Measured("far", "pylance", COLD, 0.5, [(4.0, 1.0)], [(2.0, 1.0)], [3.25]),
    ]
    shown = page({"date": "some day"}, results, num_rows=1_000, num_fragments=FRAGMENTS_TO_COMPACT)
    missed, table = shown.split("## Missed")[1].split("## All")
    assert [line.partition(",")[0] for line in missed.splitlines() if line.startswith("- ")] == ["- far", "- near"]
    assert "far, cold: **4.00** of pylance, at most 0.50 wanted; by CPU time 2.00. Spark itself" in missed
    assert "takes 3.25 s of 4.00; beyond it 0.75" in missed
    assert (
        "| near | idle | Spark's Parquet | ≤ 1.00 | **1.30** | 1.10 to 9.00 | 1.00 | 1.30 | 1.00 |  |  | 3 |" in table
    )
    assert "| met | warm | Spark's Parquet | ≤ 1.00 | 0.50 |" in table


def test_a_page_without_misses_says_so() -> None:
    results = [Measured("met", "Spark's Parquet", WARM, 1.0, [(0.5, 1.0)], [(0.5, 1.0)])]
    assert "Every target is met." in page({}, results, num_rows=1, num_fragments=1)
