"""The page on scale: its steps run on manifests of many fragments, and its simulation keeps to its limits."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from pyroaring import BitMap

import lance_ops
from tests.bench.scale import __main__ as program
from tests.bench.scale import recorded
from tests.bench.scale.many_fragments import ALL_STEPS, peak_bytes
from tests.bench.scale.page import bitmap_bytes, page, works
from tests.bench.scale.recorded import FragmentCosts, fragment_costs, manifest_costs
from tests.bench.scale.simulation import Cluster, Outcome, Store, Work, simulate

CLUSTER = Cluster(executors=10, cores=4, network_bytes_s=1e9, task_s=0.0)
WORK = Work("read", 1_000, cpu_s=1.0, gets=10, puts=0, moved_bytes=1e6, plan_s=2, commit_s=3, driver_bytes=0)
ROOMY = Store(prefixes=1_000)
ONE = FragmentCosts(1_000_000, 2, 0.1, 4, 0.2, 1, 0.05, 100_000)


def test_cores_bound_work_that_asks_for_little() -> None:
    assert simulate(WORK, CLUSTER, ROOMY) == Outcome(2, 25.0, 3, 400, 0, "cores")  # 1,000 fragments by 40 cores


def test_a_second_with_fewer_fragments_than_cores_does_no_more_than_these() -> None:
    assert simulate(replace(WORK, fragments=41), CLUSTER, ROOMY).tasks_s == 2


@pytest.mark.parametrize(
    ("change", "store", "limit"),
    [
        ({}, Store(prefixes=1, gets_s=50), "GET requests of a prefix"),
        ({"puts": 10.0}, Store(prefixes=1, puts_s=50), "PUT requests of a prefix"),
        ({"moved_bytes": 2e9}, ROOMY, "network"),
    ],
)
def test_what_is_scarcest_bounds_the_tasks(change: dict[str, float], store: Store, limit: str) -> None:
    found = simulate(Work(**{**asdict(WORK), **change}), CLUSTER, store)
    assert found.limit == limit
    assert found.tasks_s == 200  # five fragments a second
    assert found.gets_s == 50


def test_more_prefixes_move_the_limit_to_the_cores() -> None:
    outcomes = [simulate(WORK, CLUSTER, Store(prefixes, gets_s=50)) for prefixes in (1, 4, 64)]
    assert [each.limit for each in outcomes] == ["GET requests of a prefix", "GET requests of a prefix", "cores"]
    assert [each.tasks_s for each in outcomes] == [200, 50, 25]


def test_tasks_that_do_nothing_cost_what_spark_spends_on_them() -> None:
    slow = replace(CLUSTER, task_s=0.5)
    assert simulate(WORK, slow, ROOMY).tasks_s == 25 + 120 * 0.5 / 40


def test_every_step_runs_on_a_manifest_and_the_page_shows_the_first_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = ALL_STEPS
    monkeypatch.setattr(recorded, "ALL_STEPS", [first])
    found = manifest_costs(520, tmp_path)
    uri = str(tmp_path / "520.lance")
    for step in others:  # as `manifest_costs` does in processes of their own
        found |= {**ALL_STEPS[step](uri, 520), f"{step}_peak_bytes": peak_bytes()}
    assert {f"{step}_peak_bytes" for step in ALL_STEPS} <= found.keys()
    assert found["compaction_tasks"] == 52  # 521 fragments, ten to one
    assert found["manifest_bytes"] > 520 * 100
    assert found["deletion_tasks"] == 5  # 522 fragments, 128 in a task
    assert found["deletion_sent_bytes"] > 522 * len(BitMap(range(0, 100, 10)).serialize())
    assert lance_ops.dataset(uri).count_rows() == 522 * 90
    shown = page(
        {"date": "some day"}, {520: found}, ONE, whole_bytes=520e6, merge=["commit: 1 fragment"], index=["of 7 MB"]
    )
    assert "```text\ncommit: 1 fragment\n```" in shown and "```text\nof 7 MB\n```" in shown
    assert "# Scale" in shown and "- **write**: " in shown
    rows = [line for line in shown.split("## Simulated")[1].splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 5 * 3


def test_the_driver_of_a_delete_holds_the_bitmaps_of_its_rows() -> None:
    measured = dict.fromkeys(("receive_s", "commit_s", "plan_scan_s", "plan_compaction_s", "plan_delete_s"), 1.0)
    measured |= dict.fromkeys(("delete_s", "outcome_bytes"), 1.0)
    measured |= {f"{step}_peak_bytes": 1e6 for step in ("commit", "plan_scan", "plan_compaction", "delete")}
    *others, delete = works(measured, replace(ONE, size_bytes=100_000_000), 1_000_000, 1e8)
    assert 2_000 < bitmap_bytes(1_562_500) < 3_000
    assert delete.driver_bytes == 1e6 + 3e6 * bitmap_bytes(1_562_500)
    assert delete.driver_bytes > max(work.driver_bytes for work in others)


def test_the_page_is_not_written_from_changes_that_are_not_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "commit_of_tree", lambda: "0123abcd-dirty")
    monkeypatch.setattr(sys, "argv", ["scale"])
    with pytest.raises(SystemExit):
        program.main()


def test_the_page_names_a_commit() -> None:
    assert "-dirty" not in Path("docs/scale.md").read_text()


@pytest.mark.server
def test_requests_of_a_fragment_are_counted_at_the_server() -> None:
    found = fragment_costs(400_000)
    assert min(found.write_puts, found.read_gets, found.column_gets) >= 1
    assert 400_000 / 8 < found.column_bytes < 400_000
