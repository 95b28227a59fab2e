from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lance_ops.dagster.landing.batch_runs import FailedRuns
from lance_ops.dagster.landing.landing_entries import LandedBatch, LandedFile
from lance_ops.dagster.landing.tick import (
    Cursor,
    Tick,
    Watermark,
    batches_to_ask_again,
    batches_to_compare,
    plan_tick,
    rewritten_batches,
)
from lance_ops.maintenance import IngestedBatch

pytestmark = pytest.mark.dagster

START = datetime(2024, 1, 1, tzinfo=UTC)


def batch(key: str, minute: int, size_bytes: int = 10, num_files: int = 1) -> LandedBatch:
    modified = START + timedelta(minutes=minute)
    return LandedBatch(
        key, tuple(LandedFile(f"{key}-{n}", f"/in/{key}-{n}", size_bytes, modified) for n in range(num_files))
    )


def plan(
    ready: list[LandedBatch],
    known: list[str] | None = None,
    watermark: Watermark | None = None,
    tokens: dict[str, str] | None = None,
    max_files: int = 100,
    changed: str = "refuse",
) -> Tick:
    return plan_tick(
        ready,
        known or [],
        watermark,
        tokens or {},
        max_files=max_files,
        changed="append" if changed == "append" else "refuse",
    )


def test_one_new_batch_is_one_run_of_one_key() -> None:
    tick = plan([batch("a", 1)])
    assert tick.new_keys == ("a",)
    assert [run.keys for run in tick.runs] == [("a",)]
    assert tick.watermark == Watermark(*batch("a", 1).order)


def test_a_backlog_is_one_run_over_all_keys_in_the_order_of_arrival() -> None:
    tick = plan([batch("b", 1), batch("a", 2), batch("c", 3)], known=["z"])
    assert tick.new_keys == ("b", "a", "c")
    assert [run.keys for run in tick.runs] == [("b", "a", "c")]


def test_a_tick_without_new_batches_keeps_the_watermark() -> None:
    first = plan([batch("a", 1)])
    again = plan([batch("a", 1)], known=["a"], watermark=first.watermark)
    assert again == Tick((), (), (), first.watermark)


def test_a_capped_tick_leaves_the_rest_for_the_next() -> None:
    ready = [batch("a", 1), batch("b", 2), batch("c", 3)]
    first = plan(ready, max_files=2)
    assert first.new_keys == ("a", "b") and first.num_left == 1
    second = plan(ready, known=["a", "b"], watermark=first.watermark, max_files=2)
    assert second.new_keys == ("c",) and second.num_left == 0


def test_a_capped_tick_says_whether_it_leaves_a_batch_below_its_watermark() -> None:
    known, older, newer = batch("c", 3), [batch("a", 1), batch("b", 2)], [batch("d", 4), batch("e", 5)]
    watermark = Watermark(*known.order)
    assert plan([*older, known], ["c"], watermark, max_files=1).leaves_older
    assert not plan([known, *newer], ["c"], watermark, max_files=1).leaves_older


def test_a_batch_of_the_table_without_a_partition_gets_one() -> None:
    ready = [batch("a", 1), batch("b", 2)]
    assert plan(ready, tokens={each.key: each.token for each in ready}).new_keys == ("a", "b")


def test_a_batch_with_more_files_than_the_cap_goes_alone() -> None:
    tick = plan([batch("a", 1, num_files=9), batch("b", 2)], max_files=3)
    assert [run.keys for run in tick.runs] == [("a",)]


def test_a_file_that_arrives_with_an_old_time_is_not_missed() -> None:
    first = plan([batch("b", 5)])
    second = plan([batch("a", 1), batch("b", 5)], known=["b"], watermark=first.watermark)
    assert second.new_keys == ("a",)
    assert second.watermark == first.watermark


def test_a_lost_cursor_requests_only_batches_missing_from_the_history() -> None:
    ready = [batch("a", 1), batch("b", 2), batch("c", 3)]
    tick = plan(ready, known=["a", "b", "c"], tokens={"a": ready[0].token, "c": ready[2].token})
    assert tick.new_keys == ()
    assert [run.keys for run in tick.runs] == [("b",)]
    assert tick.changed == ()
    assert tick.watermark == Watermark(*ready[2].order)


def test_keys_that_are_not_adjacent_become_separate_runs() -> None:
    ready = [batch("a", 1), batch("b", 2), batch("c", 3), batch("d", 4)]
    tick = plan(ready, known=["a", "b", "c"], tokens={"b": ready[1].token})
    assert [run.keys for run in tick.runs] == [("a",), ("c", "d")]


def test_a_changed_batch_is_reported_once_and_left_alone() -> None:
    first = plan([batch("a", 1)])
    held = {"a": batch("a", 1).token}
    changed = batch("a", 2, size_bytes=11)
    second = plan([changed], known=["a"], watermark=first.watermark, tokens=held)
    assert second.runs == () and second.changed == (changed,)
    assert plan([changed], known=["a"], watermark=second.watermark, tokens=held).changed == ()


def test_all_batches_are_compared_every_five_minutes_and_when_the_clock_goes_back() -> None:
    cursor = Cursor(Watermark(START, "a"), START)
    compared = {minute: cursor.is_comparison_due(START + timedelta(minutes=minute)) for minute in (-1, 0, 4, 5)}
    assert compared == {-1: True, 0: False, 4: False, 5: True}
    assert Cursor(Watermark(START, "a")).is_comparison_due(START)


def test_a_batch_that_is_rewritten_with_an_older_time_is_a_run_of_its_own_for_each_exchange() -> None:
    first, other = batch("a", 2), batch("a", 1, size_bytes=11)
    keys = []
    for version, (now, before) in enumerate([(other, first), (first, other), (other, first)], 1):
        held = {"a": IngestedBatch(before.token, version, 1)}
        rewritten = rewritten_batches([now], held)
        tick = plan_tick(
            [now],
            ["a"],
            Watermark(*batch("b", 9).order),
            {"a": before.token},
            max_files=1,
            changed="replace",
            rewritten=rewritten,
        )
        keys += [run.run_key for run in tick.runs]
    assert len(set(keys)) == 3, "Dagster launches a run key once"
    assert rewritten_batches([first], {"a": IngestedBatch(first.token, 1, 1)}) == {}


def test_the_key_of_a_run_over_many_batches_is_as_long_as_that_of_a_run_over_two() -> None:
    def run_key(num_batches: int, newest_version: int) -> str:
        keys = [f"{number:03}" for number in range(num_batches)]
        tick = plan_tick(
            [batch(key, 1, size_bytes=11) for key in keys],
            keys,
            None,
            {key: batch(key, 1).token for key in keys},
            max_files=1000,
            changed="replace",
            failed={key: f"run {key}" for key in keys},
            rewritten={key: newest_version - number for number, key in enumerate(keys)},
        )
        (run,) = tick.runs
        assert len(run.replaced_versions) == len(run.after) == num_batches
        return run.run_key

    assert len(run_key(900, 10_000)) == len(run_key(2, 2)) < 200
    assert run_key(900, 10_000) != run_key(900, 10_001)


def test_a_rewritten_batch_that_is_under_way_or_left_to_a_person_is_not_asked_for_again() -> None:
    keys = ("often", "running", "once", "new", "same")
    held = {key: IngestedBatch(batch(key, 1).token, 3, 3) for key in keys}
    compared = [*(batch(key, 1, size_bytes=11) for key in keys[:-1]), batch("same", 1)]
    failed = {"often": FailedRuns("1", START, 5), "once": FailedRuns("2", START, 1), "same": FailedRuns("2", START, 1)}
    again, rewritten = batches_to_ask_again(compared, held, failed, {"running"}, "replace")
    assert again == {"once": "2"}
    assert rewritten == {"once": 3, "new": 3}


def test_a_failed_batch_is_asked_for_again_under_the_key_of_its_changed_content() -> None:
    changed = batch("a", 2, size_bytes=11)
    asked = changed.as_changed().key
    held = {"a": IngestedBatch(batch("a", 1).token, 1, 1)}
    failed = {asked: FailedRuns("7", START, 4)}
    again = batches_to_ask_again([changed], held, failed, (), "append")
    assert again == ({"a": "7", asked: "7"}, {"a": 1})
    assert batches_to_ask_again([changed], held, failed, {asked}, "append") == ({}, {})
    assert batches_to_ask_again([changed], held, failed, (), "refuse") == ({}, {"a": 1}), "it is reported"


def test_a_changed_batch_becomes_a_new_batch_if_configured() -> None:
    changed = batch("a", 2, size_bytes=11)
    held = {"a": batch("a", 1).token}
    tick = plan([changed], known=["a"], tokens=held, changed="append")
    assert tick.new_keys == (changed.as_changed().key,)
    again = plan(
        [changed],
        known=["a", *tick.new_keys],
        tokens=held | {tick.new_keys[0]: changed.as_changed().token},
        changed="append",
    )
    assert again.runs == ()


def test_run_keys_follow_keys_and_content() -> None:
    one, two = batch("a", 1), batch("b", 2)
    run_keys = {
        plan(ready).runs[0].run_key
        for ready in ([one], [two], [one, two], [batch("a", 1, size_bytes=11)], [one, batch("b", 3)])
    }
    assert len(run_keys) == 5
    assert plan([one, two]).runs[0].run_key == plan([one, two]).runs[0].run_key


def test_the_history_is_queried_only_for_known_batches_above_the_watermark() -> None:
    ready = [batch("a", 1), batch("b", 2), batch("c", 3)]
    assert batches_to_compare(ready, ["a", "b"], Watermark(*ready[0].order)) == (ready[1],)


@pytest.mark.parametrize("cursor", [None, "", "{", "[]", "{}", '{"modified": 3, "key": "a"}', '{"modified": "x"}'])
def test_an_unreadable_cursor_starts_over(cursor: str | None) -> None:
    assert Cursor.decode(cursor) == Cursor()


def test_a_watermark_round_trips_through_its_cursor() -> None:
    watermark = Watermark(START + timedelta(microseconds=7), "ä")
    for cursor in (Cursor(watermark), Cursor(watermark, START)):
        assert Cursor.decode(cursor.encode()) == cursor
    assert Cursor(None, START).encode() is None


class Deliveries(RuleBasedStateMachine):
    """Files land and change, ticks are capped, cursors get lost, runs fail. Each content is ingested once."""

    def __init__(self) -> None:
        super().__init__()
        self.landed: dict[str, LandedBatch] = {}
        self.known: list[str] = []
        self.watermark: Watermark | None = None
        self.held: dict[str, str] = {}
        self.failed: list[LandedBatch] = []
        self.rows: list[tuple[str, str]] = []
        self.minute = 0
        self.changed = "refuse"

    @initialize(changed=st.sampled_from(["refuse", "append"]))
    def declare(self, changed: str) -> None:
        self.changed = changed

    @rule(name=st.sampled_from("abcdefgh"), back=st.integers(0, 5), num_files=st.integers(1, 3))
    def land(self, name: str, back: int, num_files: int) -> None:
        self.minute += 1
        if name not in self.landed:
            self.landed[name] = batch(name, max(self.minute - back, 0), num_files=num_files)

    @rule(name=st.sampled_from("abcdefgh"))
    def deliver_again(self, name: str) -> None:
        self.minute += 1
        if name in self.held:
            self.landed[name] = batch(name, self.minute, size_bytes=self.minute + 100)

    @rule(max_files=st.integers(1, 4), fails=st.booleans())
    def tick(self, max_files: int, fails: bool) -> None:
        ready = sorted(self.landed.values(), key=lambda one: one.order)
        tick = plan(ready, self.known, self.watermark, self.held, max_files, self.changed)
        self.known += tick.new_keys
        for run in tick.runs:
            start = self.known.index(run.keys[0])
            assert tuple(self.known[start : start + len(run.keys)]) == run.keys, "a range of Dagster's keys"
            if fails:
                self.failed += run.batches
            else:
                self._ingest(run.batches)
        self.watermark = tick.watermark

    @rule()
    def lose_the_cursor(self) -> None:
        self.watermark = None

    @rule()
    def run_failed_partitions_again(self) -> None:
        self._ingest([one for one in self.failed if self.landed.get(one.key) == one])
        self.failed = []

    def _ingest(self, batches: list[LandedBatch] | tuple[LandedBatch, ...]) -> None:
        for one in batches:
            assert self.held.get(one.key, one.token) == one.token, "no run is asked to overwrite a batch"
            if one.key not in self.held:
                self.held[one.key] = one.token
                self.rows.append((one.key, one.token))

    @invariant()
    def each_content_is_in_the_table_once(self) -> None:
        assert len({token for _, token in self.rows}) == len(self.rows)
        assert len(set(self.known)) == len(self.known)

    def teardown(self) -> None:
        for _ in range(30):
            self.lose_the_cursor()
            self.tick(max_files=2, fails=False)
        assert set(self.landed) <= set(self.held)
        if self.changed == "append":
            assert {one.token for one in self.landed.values()} <= set(self.held.values())


TestDeliveries = Deliveries.TestCase
