"""The state of each landed batch follows from the folder, the table's history and Dagster's records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lance_ops.dagster.declaration import RawFiles
from lance_ops.dagster.landing.batch_runs import FailedRuns
from lance_ops.dagster.landing.batch_state import BatchState, Evidence, judge_batches, late_batches
from lance_ops.dagster.landing.landing_entries import LandedBatch, LandedFile, Landing
from lance_ops.maintenance import IngestedBatch

pytestmark = pytest.mark.dagster

START = datetime(2024, 1, 1, tzinfo=UTC)


def batch(key: str, size_bytes: int = 10, minute: int = 0) -> LandedBatch:
    modified = START + timedelta(minutes=minute)
    return LandedBatch(key, (LandedFile(f"{key}.csv", f"/in/{key}.csv", size_bytes, modified),))


def held(*batches: LandedBatch, version: int = 1) -> dict[str, IngestedBatch]:
    return {each.key: IngestedBatch(each.token, version, version) for each in batches}


def judged(
    *ready: LandedBatch,
    waiting: tuple[LandedBatch, ...] = (),
    raw: dict[str, Any] | None = None,
    now: datetime = START,
    **evidence: Any,
) -> dict[str, tuple[str, str, bool]]:
    declared = RawFiles.model_validate({"uri": "/in", **(raw or {})})
    landing = Landing(ready, waiting)
    report = judge_batches(declared, landing, Evidence(**evidence), now)
    counted = judge_batches(declared, landing, Evidence(**evidence), now, count_plain=True)
    assert (counted.counts, counted.unsettled) == (report.counts, report.unsettled)
    left_out = [each for each in report.batches if each not in counted.batches]
    assert len(left_out) == counted.num_only_counted and not any(each.reason or each.is_late for each in left_out)
    assert sum(report.counts.get(state.value, 0) for state in BatchState) == len(report.batches)
    return {each.key: (each.state.value, each.reason, each.is_settled) for each in report.batches}


def test_a_batch_s_state_is_the_furthest_that_a_source_knows_of() -> None:
    batches = [batch(key) for key in ("new", "asked", "failed", "often", "bad", "in", "taken", "purged")]
    found = judged(
        *batches,
        held=held(batch("in")),
        partitions=[each.key for each in batches[1:]],
        recorded={"in", "taken"},
        taken_out={"purged": batches[-1].token},
        requested={"asked"},
        failed={
            "failed": FailedRuns("1234-5", START, 1),
            "often": FailedRuns("6-7", START, 5),
            "asked": FailedRuns("8-9", START, 1),
        },
        refused={"bad": "bad.csv: line 3"},
    )
    assert found == {
        "bad": ("quarantined", "bad.csv: line 3", False),
        "failed": ("failed", "run 1234 failed; the sensor asks for it again 5 minutes after its end", False),
        "often": (
            "failed",
            "5 runs failed in a day, run 6 last: materialize its partition when the cause is mended",
            False,
        ),
        "taken": (
            "failed",
            "a restore or an overwrite took it out, and no run is under way: materialize partition taken",
            False,
        ),
        "purged": (
            "failed",
            "a restore or an overwrite took it out, and no run is under way: materialize partition purged",
            False,
        ),
        "asked": ("requested", "its run has not ended", True),
        "new": ("landed", "the sensor asks for it next", True),
        "in": ("ingested", "", True),
    }
    assert list(found)[:5] == ["bad", "failed", "often", "purged", "taken"], "those that need somebody are first"


@pytest.mark.parametrize(
    ("changed", "before", "after"),
    [("refuse", "changed", "changed"), ("append", "changed", "ingested"), ("replace", "changed", "ingested")],
)
def test_a_batch_that_changed_is_shown_until_its_new_content_is_in_the_table(
    changed: str, before: str, after: str
) -> None:
    now, raw = batch("a", size_bytes=99), {"changed": changed}
    first = held(batch("a"))
    state, reason, settled = judged(now, raw=raw, held=first, partitions=["a"])["a"]
    assert (state, settled) == (before, changed != "refuse")
    assert ("left alone" in reason) is (changed == "refuse")
    other = now.as_changed()
    then = {"append": first | held(other, version=2), "replace": held(now, version=2), "refuse": first}[changed]
    found = judged(now, raw=raw, held=then, partitions=["a", other.key])
    assert {key: state for key, (state, _, _) in found.items()} == {"a": after}
    refused = judged(now, raw=raw, held=first, refused={"a": "why", other.key: "why"}, partitions=["a"])["a"]
    assert refused[0] == ("changed" if changed == "refuse" else "quarantined")


@pytest.mark.parametrize("changed", ["append", "replace"])
def test_a_batch_that_changed_needs_somebody_if_its_run_was_cancelled(changed: str) -> None:
    now = batch("a", size_bytes=99)
    asked = now.as_changed() if changed == "append" else now
    sources: dict[str, Any] = {"raw": {"changed": changed}, "held": held(batch("a")), "recorded": {"a"}}
    after, before = START + timedelta(minutes=1), START - timedelta(minutes=1)
    given_up = judged(now, **sources, partitions=["a", asked.key], given_up={asked.key: after})["a"]
    reason = f"no run of it ended well, and none is under way: materialize partition {asked.key}"
    assert given_up == ("failed", reason, False)
    again = judged(now, **sources, partitions=["a", asked.key], given_up={asked.key: after}, requested={asked.key})["a"]
    assert again[0] == "requested"
    not_asked = judged(now, **sources, partitions=["a"], given_up={"a": before})["a"]
    assert not_asked == ("changed", "its new content is not in the table yet", True), "an earlier content was cancelled"


def test_a_batch_whose_newest_run_was_cancelled_is_not_said_to_be_asked_for_again() -> None:
    sources: dict[str, Any] = {"partitions": ["a"], "failed": {"a": FailedRuns("1234-5", START, 1)}}
    assert "the sensor asks for it again" in judged(batch("a"), **sources)["a"][1]
    found = judged(batch("a"), **sources, given_up={"a": START + timedelta(minutes=1)})["a"]
    assert found[1].endswith("materialize partition a")


def test_only_a_batch_of_which_nothing_but_a_run_is_missing_is_doubtful() -> None:
    batches = [batch(key) for key in ("asked", "failed", "lost", "taken")]
    evidence = Evidence(
        partitions=[each.key for each in batches],
        recorded={"taken"},
        requested={"asked"},
        failed={"failed": FailedRuns("1234-5", START, 1)},
    )
    report = judge_batches(RawFiles.model_validate({"uri": "/in"}), Landing(tuple(batches), ()), evidence, START)
    reasons = {each.key: each.reason for each in report.unsettled}
    assert (
        reasons["lost"] == "no run of it is found: the sensor asks for it within minutes, or materialize partition lost"
    )
    assert {each.key: each.is_doubtful for each in report.unsettled} == {"failed": False, "lost": True, "taken": False}


def test_waiting_batches_say_what_they_wait_for() -> None:
    assert judged(waiting=(batch("a"),))["a"] == ("waiting", "younger than 60 s", True)
    assert "0 bytes" in judged(waiting=(batch("a", size_bytes=0),))["a"][1]
    assert judged(waiting=(batch("a"),), raw={"marker": "_OK"})["a"][1] == "its folder has no _OK"
    assert judged(waiting=(batch("a"),), held=held(batch("a")))["a"][0] == "ingested"


def test_a_batch_that_waits_for_more_than_a_day_needs_somebody() -> None:
    waiting, raw = (batch("a", size_bytes=0),), {"max_wait_hours": 36}
    assert judged(waiting=waiting, now=START + timedelta(hours=24))["a"][2]
    state, reason, is_settled = judged(waiting=waiting, now=START + timedelta(hours=25))["a"]
    assert (state, is_settled) == ("waiting", False)
    since = f"it waits since {START:%Y-%m-%d %H:%M} UTC"
    assert reason.endswith(f"{since}, longer than raw.max_wait_hours (24): complete or remove its files")
    assert judged(waiting=waiting, raw=raw, now=START + timedelta(hours=25))["a"][2]
    assert judged(waiting=waiting, raw={"max_wait_hours": None}, now=START + timedelta(days=999))["a"][2]


def test_a_batch_waits_since_its_files_arrived_whatever_their_own_times_are() -> None:
    copied = LandedFile("a.csv", "/in/a.csv", 0, START, moved=START + timedelta(hours=30))
    found = judged(waiting=(LandedBatch("a", (copied,)),), now=START + timedelta(hours=31))["a"]
    assert found == ("waiting", "a file has 0 bytes: it may still be written", True)
    late = judged(waiting=(LandedBatch("a", (copied,)),), now=START + timedelta(hours=55))["a"]
    assert "it waits since 2024-01-02 06:00 UTC" in late[1] and not late[2]


def test_a_batch_that_only_settles_may_settle_for_days() -> None:
    raw = {"settle_seconds": 200_000, "max_wait_hours": 1}
    assert judged(waiting=(batch("a"),), raw=raw, now=START + timedelta(hours=50))["a"] == (
        "waiting",
        "younger than 200000 s",
        True,
    )


def test_with_overwrite_a_batch_that_waits_behind_a_newer_one_is_superseded() -> None:
    raw = {"schema_mode": "overwrite", "marker": "_OK"}
    old, new, newer = batch("a"), batch("b", minute=1), batch("c", minute=2)
    found = judged(new, waiting=(old, newer), raw=raw, now=START + timedelta(days=2))
    assert {key: (state, is_settled) for key, (state, _, is_settled) in found.items()} == {
        "a": ("superseded", True),
        "b": ("landed", True),
        "c": ("waiting", False),
    }


@pytest.mark.parametrize("ready", [(), (batch("b", minute=1),)])
@pytest.mark.parametrize("source", ["partitions", "held"])
def test_with_overwrite_all_batches_before_the_one_that_is_rewritten_are_superseded(
    ready: tuple[LandedBatch, ...], source: str
) -> None:
    raw = {"schema_mode": "overwrite", "marker": "_OK"}
    old, newest = batch("a"), batch("c", size_bytes=11, minute=2)
    begun: dict[str, Any] = {"partitions": ["c"], "held": held(batch("c"))}
    found = judged(*ready, waiting=(old, newest), raw=raw, now=START + timedelta(hours=25), **{source: begun[source]})
    states = {key: (state, is_settled) for key, (state, _, is_settled) in found.items()}
    assert states.pop("c") == ("waiting", False)
    assert states == dict.fromkeys(("a", *(each.key for each in ready)), ("superseded", True))


def test_batches_whose_files_are_gone_are_shown_and_unsettled_if_so_declared() -> None:
    sources: dict[str, Any] = {"held": held(batch("in"), batch("day=0123456789ab")), "partitions": ["in", "out"]}
    kept = judged(**sources)
    assert kept["in"] == ("vanished", "its files are gone; its rows of version 1 stay", True)
    assert kept["out"] == ("vanished", "its files are gone; the table does not have its rows", True)
    assert "day=0123456789ab" in kept, "a key that only looks like changed content"
    assert not judged(**sources, raw={"vanished": "refuse"})["in"][2]


def test_a_batch_of_files_elsewhere_is_ingested_and_not_vanished() -> None:
    sources: dict[str, Any] = {"held": held(batch("in"), batch("elsewhere"), version=3)}
    strict = {"vanished": "refuse"}
    found = judged(**sources, partitions=["in"], raw=strict)
    unknown = "Dagster has no partition of it: its files came from elsewhere, or the partition was deleted"
    assert found["elsewhere"] == ("ingested", unknown, True)
    assert (found["in"][0], found["in"][2]) == ("vanished", False)
    assert judged(**sources, partitions=[], raw=strict)["in"] == ("ingested", unknown, True), "a new instance"
    without_instance = judged(**sources, raw=strict)
    assert {state for state, _, _ in without_instance.values()} == {"vanished"}, "only Dagster tells the two apart"


def test_with_overwrite_older_batches_are_superseded() -> None:
    old, new = batch("a"), batch("b", minute=1)
    found = judged(old, new, raw={"schema_mode": "overwrite"}, held=held(new), partitions=["a", "b", "gone"])
    assert {key: state for key, (state, _, _) in found.items()} == {
        "a": "superseded",
        "b": "ingested",
        "gone": "superseded",
    }


def test_a_batch_is_late_if_an_earlier_version_has_a_greater_key() -> None:
    versions = {"d1": 1, "d3": 1, "d2": 2, "d5": 3, "d4": 3, "d0": 4}
    ingested = {key: IngestedBatch("t", version + 9, version) for key, version in versions.items()}
    assert late_batches(ingested) == {"d2", "d0"}


def test_plain_batches_of_the_table_are_counted_without_a_status_of_each() -> None:
    batches = [batch(f"d{number}") for number in range(5)]
    late, changed = batch("c9"), batch("d4", size_bytes=11)
    ingested = held(*batches) | held(late, version=2)
    landing = Landing((*batches[:3], late, changed), (batches[3],))
    raw = RawFiles.model_validate({"uri": "/in"})
    report = judge_batches(raw, landing, Evidence(ingested), START, count_plain=True)
    assert [each.key for each in report.batches] == ["d4", "c9"]
    assert report.counts == {"changed": 1, "ingested": 5, "late": 1}


def test_a_late_batch_stays_late_when_its_files_change_or_go() -> None:
    ingested = held(batch("d2")) | held(batch("d1"), batch("d0"), version=2)
    landing = Landing((batch("d2"), batch("d1", size_bytes=11)), ())
    report = judge_batches(RawFiles.model_validate({"uri": "/in"}), landing, Evidence(ingested), START)
    assert {each.key: (each.state, each.is_late) for each in report.batches} == {
        "d0": (BatchState.VANISHED, True),
        "d1": (BatchState.CHANGED, True),
        "d2": (BatchState.INGESTED, False),
    }
