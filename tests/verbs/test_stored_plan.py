from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import InvalidInput, PlanOutdated
from lance_ops.indices import IndexConfig
from lance_ops.maintenance.ingest import RawFile, found_file
from lance_ops.verbs import (
    ALL_VERBS,
    Cleanup,
    DeleteDuplicates,
    DeleteRows,
    DropIndex,
    Execution,
    IngestFiles,
    Reindex,
    Restore,
    StoredPlan,
    Tag,
    Update,
    Verb,
    VerbResult,
    WhenMoved,
    do_now,
    execute_plan,
    make_plan,
    make_verb,
    parse_options,
)

FIRST = DeleteRows(predicate="x < 2", reason="bad delivery")


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Twelve rows in three fragments."""
    return write_dataset(pa.table({"x": range(12)}), dataset_uri, max_rows_per_file=4)


def test_a_plan_is_stored_read_again_and_executed_as_it_is(numbers: LanceDataset) -> None:
    plan, preview = make_plan(FIRST, numbers)
    assert (preview.before.rows, preview.after and preview.after.rows) == (12, 10)
    again = StoredPlan.from_json(plan.to_json())
    assert again == plan
    done = execute_plan(again, numbers)
    assert (done.read_version, done.version, done.facts) == (1, 2, {"matching_rows": 2})
    assert dataset(numbers.uri).count_rows() == 10


def test_an_edited_plan_is_refused(numbers: LanceDataset) -> None:
    content = make_plan(FIRST, numbers)[0].to_dict()
    content["options"]["predicate"] = "true"
    with pytest.raises(InvalidInput, match="changed after it was made"):
        StoredPlan.from_json(json.dumps(content))


LONG = [pytest.param("[" * 100_000, id="deep"), pytest.param("x" * (64 << 20) + "x", id="long")]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', *LONG])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no plan"):
        StoredPlan.from_json(text)


def test_a_plan_that_would_not_be_read_is_not_written(numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, _ = make_plan(FIRST, numbers)
    many = replace(plan, sources={f"in/{number}.csv": "x" * 32 for number in range(30_000)})
    assert StoredPlan.from_json(many.to_json()) == many, "more than 1 MiB"
    monkeypatch.setattr("lance_ops.verbs.stored_plan._MOST_CHARACTERS", 1 << 20)
    with pytest.raises(InvalidInput, match="this one of 30,000 files has"):
        many.to_json()


def test_a_plan_of_another_dataset_is_refused(numbers: LanceDataset, tmp_path: Path) -> None:
    plan, _ = make_plan(FIRST, numbers)
    other = write_dataset(pa.table({"x": [1]}), str(tmp_path / "other.lance"))
    with pytest.raises(InvalidInput, match=r"not for .*other.lance"):
        execute_plan(plan, other)


def test_a_plan_of_duplicates_is_refused_when_the_row_that_was_to_stay_is_gone(numbers: LanceDataset) -> None:
    numbers.insert(pa.table({"x": [7]}))
    plan, preview = make_plan(DeleteDuplicates(("x",)), numbers)
    assert preview.facts["matching_rows"] == 1
    dataset(numbers.uri).delete(f"x = 7 AND _rowaddr < {3 << 32}")
    with pytest.raises(PlanOutdated, match=r"planned on version 2.*3 \(Delete\)"):
        execute_plan(plan, dataset(numbers.uri))
    assert dataset(numbers.uri).count_rows("x = 7") == 1


def test_storage_options_of_the_landing_folder_are_for_its_files_alone(
    numbers: LanceDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys.csv"
    keys.write_text("x\n3\n")
    asked: list[dict[str, str]] = []

    def found(uri: str, storage_options: dict[str, str]) -> RawFile:
        asked.append(storage_options)
        return found_file(uri, storage_options)

    monkeypatch.setattr("lance_ops.verbs.sources.found_file", found)
    of_landing = {"endpoint_url": "http://landing"}
    verb = DeleteRows(key_files=(str(keys),), on=("x",), reason="r")
    plan, _ = make_plan(verb, numbers, raw_storage_options=of_landing)
    execute_plan(plan, numbers, raw_storage_options=of_landing)
    assert asked and not any(asked), "the rows are read without options, so the token is asked for without them"
    asked.clear()
    make_plan(IngestFiles((str(keys),), isolated=False), numbers, raw_storage_options=of_landing)
    assert asked == [of_landing]


def test_a_plan_for_a_version_that_is_gone_or_another_is_outdated(numbers: LanceDataset) -> None:
    plan, _ = make_plan(FIRST, numbers)
    uri = numbers.uri
    numbers.delete("x = 11")
    do_now(Cleanup(retain_versions=1), dataset(uri))
    with pytest.raises(PlanOutdated, match="version 1 was cleaned up"):
        execute_plan(plan, dataset(uri))
    LanceDataset.drop(uri)
    with pytest.raises(PlanOutdated, match="created anew"):
        execute_plan(plan, write_dataset(pa.table({"x": range(12)}), uri))


@pytest.mark.parametrize(
    "verb",
    [
        Update({"x": "x + 1"}),
        DeleteRows("x < 2", "r"),
        Restore(1, reason="r"),
        Reindex(rebuild=True),
        DropIndex("x_idx"),
    ],
    ids=lambda verb: verb.name,
)
@pytest.mark.parametrize("before", [False, True])
def test_versions_of_other_writers_are_not_reported_as_the_verb_s(
    numbers: LanceDataset, verb: Verb, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers.create_scalar_index("x", "ZONEMAP")
    execute, others = type(verb).execute, pa.table({"x": [50]})

    def overtaken(verb: Verb, work: Execution) -> VerbResult:
        if before:
            dataset(numbers.uri).insert(others)
        result = execute(verb, work)
        dataset(numbers.uri).insert(others)
        return result

    monkeypatch.setattr(type(verb), "execute", overtaken)
    done = do_now(verb, numbers)
    assert (done.read_version, done.version, dataset(numbers.uri).version) == (2, 3 + before, 4 + before)
    assert done.after.rows == dataset(numbers.uri, 3 + before).count_rows()


@pytest.mark.parametrize(
    "verb", [Update({"x": "1"}, "x > 99"), DeleteRows("x > 99", "r"), Reindex(), Cleanup(), Tag("t")]
)
def test_a_verb_that_commits_nothing_stays_at_its_version(numbers: LanceDataset, verb: Verb) -> None:
    dataset(numbers.uri).insert(pa.table({"x": [50]}))
    done = do_now(verb, numbers)
    assert (done.read_version, done.version, done.after) == (1, 1, done.before)


def test_a_verb_that_is_refused_on_newer_versions_is_not_asked_to_compare(
    numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Restore, "affects_same_rows", lambda *_: True)
    numbers.insert(pa.table({"x": [50]}))
    plan, _ = make_plan(Restore(1, reason="r"), numbers)
    numbers.insert(pa.table({"x": [51]}))
    with pytest.raises(PlanOutdated, match="restore was planned on version 2"):
        execute_plan(plan, dataset(numbers.uri))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("erase_all", {}, "there is no verb 'erase_all'"),
        ("compact", {"speed": 1}, "compact has no option 'speed'"),
        ("compact", {"max_commits": "2"}, "max_commits cannot be '2'"),
        ("compact", {"max_commits": True}, "max_commits cannot be True"),
        ("reindex", {"create": {"a": 1}}, "create cannot be"),
        ("compact", {"max_commits": 0}, "max_commits is at least 1, not 0"),
        ("compact", {"materialize_deletions_threshold": 1.5}, "is at most 1, not 1.5"),
        ("cleanup", {"older_than_days": 1e30}, r"is at most 36525, not 1e\+30"),
        ("cleanup", {"older_than_days": float("inf")}, "is at most 36525, not inf"),
        ("tag", {"tag": "t", "action": "drop"}, "action cannot be 'drop': it is one of create, move, delete"),
        ("delete_rows", {"key_files": [1]}, "key_files cannot be"),
        ("drop_index", {}, "drop_index needs more options: index"),
    ],
)
def test_options_have_the_names_and_types_of_the_verb(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make_verb(name, options)


def test_words_of_a_command_line_become_options() -> None:
    words = {"indices": ["a", "b"], "create": ["a=x:BTREE"], "rebuild": ["true"]}
    assert make_verb("reindex", parse_options("reindex", words)) == Reindex(("a", "b"), {"a": "x:BTREE"}, True)
    assert parse_options("cleanup", {"older_than_days": ["1.5"]}) == {"older_than_days": 1.5}
    with pytest.raises(InvalidInput, match="older_than_days is a number"):
        parse_options("cleanup", {"older_than_days": ["soon"]})


@pytest.mark.parametrize(
    ("verb", "words", "message"),
    [
        ("cleanup", {"older_than_days": ["1", "2"]}, "older_than_days holds one value, and 2 are given: 1, 2"),
        ("reindex", {"rebuild": ["true", "true"]}, "rebuild holds one value"),
        ("cleanup", {"older": ["1"]}, "cleanup has no option 'older'"),
        ("add_columns", {"values": ["delay"]}, "values holds pairs name=text, and 'delay' is none"),
        ("add_columns", {"values": ["=delay"]}, "values holds pairs name=text, and '=delay' is none"),
        ("add_columns", {"values": ["a=1", "a=2"]}, "values names 'a' twice: with '1' and '2'"),
    ],
)
def test_words_that_an_option_does_not_hold_are_refused(verb: str, words: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_options(verb, words)


def test_a_pair_may_hold_an_equals_sign_or_nothing_after_it() -> None:
    assert parse_options("add_columns", {"values": ["a=b = 1", "c="]}) == {"values": {"a": "b = 1", "c": ""}}


def test_every_verb_has_a_name_of_its_own() -> None:
    assert len({verb.name for verb in ALL_VERBS}) == len(ALL_VERBS)


def test_a_rebuilt_index_keeps_its_parameters_and_one_of_another_type_is_made_anew(numbers: LanceDataset) -> None:
    numbers.create_scalar_index("x", IndexConfig("zonemap", {"rows_per_zone": 5}))
    for same in ({}, {"x_idx": "x"}):
        do_now(Reindex(create=same, rebuild=True), dataset(numbers.uri))
        assert dataset(numbers.uri).stats.index_stats("x_idx")["indices"] == [{"num_zones": 3, "rows_per_zone": 5}]
    do_now(Reindex(create={"x_idx": "x:BTREE"}, rebuild=True), numbers)
    (index,) = dataset(numbers.uri).describe_indices()
    assert (index.name, index.index_type) == ("x_idx", "BTree")


@pytest.mark.parametrize("given", ["y:ZONEMAP", "y", "x:BTREE"])
def test_an_index_of_another_column_or_type_is_not_taken_for_the_one_to_create(
    numbers: LanceDataset, given: str
) -> None:
    numbers.create_scalar_index("x", "ZONEMAP")
    dataset(numbers.uri).add_columns({"y": "x + 1"})
    verb = Reindex(create={"x_idx": given})
    for attempt in (make_plan, do_now):
        with pytest.raises(InvalidInput, match="x_idx already, of type ZoneMap on x"):
            attempt(verb, dataset(numbers.uri))
    assert dataset(numbers.uri).version == 3
    for same in ("x", "x:zonemap"):
        assert make_plan(Reindex(create={"x_idx": same}), dataset(numbers.uri))[1].does_nothing


def test_a_column_may_have_a_colon_in_its_name(dataset_uri: str) -> None:
    data = write_dataset(pa.table({"a:b": range(4)}), dataset_uri)
    do_now(Reindex(create={"first": "a:b", "second": "a:b:ZONEMAP"}), data)
    assert {each.name: each.index_type for each in dataset(dataset_uri).describe_indices()} == {
        "first": "BTree",
        "second": "ZoneMap",
    }


def test_the_page_states_for_every_verb_what_newer_versions_do_to_a_plan() -> None:
    words = {
        "The plan is executed on its own version": WhenMoved.JUDGED,
        "The plan is executed on the newest version if": WhenMoved.COMPARED,
        "The plan is refused": WhenMoved.REFUSED,
        "The plan is executed within what the preview showed": WhenMoved.BOUNDED,
        "The plan is made again": WhenMoved.REPLANNED,
    }
    stated: dict[str, WhenMoved] = {}
    for line in (Path(__file__).parents[2] / "docs" / "dagster.md").read_text().splitlines():
        _, names, outcome, *_ = [*line.split("|"), "", "", ""]
        for start, when_moved in words.items():
            if outcome.strip().startswith(start):
                stated |= dict.fromkeys(re.findall(r"`(\w+)`", names), when_moved)
    assert stated == {verb.name: verb.when_moved for verb in ALL_VERBS}
