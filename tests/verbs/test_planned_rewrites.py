"""A stored plan of a compaction or a migration rewrites the fragments of its preview, whatever came since."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import PlanOutdated
from lance_ops.verbs import Compact, Migrate, StoredPlan, Verb, do_now, execute_plan, make_plan


@pytest.fixture
def fragments(dataset_uri: str) -> LanceDataset:
    """Twelve fragments of two rows, in files of version 2.0, with an index."""
    data = write_dataset(pa.table({"x": range(24)}), dataset_uri, max_rows_per_file=2, data_storage_version="2.0")
    data.create_scalar_index("x", "BTREE")
    return data


def ids(uri: str) -> list[int]:
    return [fragment.fragment_id for fragment in dataset(uri).get_fragments()]


def later_traffic(uri: str) -> None:
    """Append fragments 12 to 14, delete a row, and delete all rows of fragment 3."""
    write_dataset(pa.table({"x": range(24, 30)}), uri, mode="append", max_rows_per_file=2)
    dataset(uri).delete("x = 5")
    dataset(uri).delete("x in (6, 7)")


def planned(verb: Verb, data: LanceDataset) -> StoredPlan:
    plan, _ = make_plan(verb, data)
    return StoredPlan.from_json(plan.to_json())


@pytest.mark.parametrize(
    ("verb", "removed", "made"),
    [
        (Compact(), 12, 1),
        (Compact(target_rows_per_fragment=4, max_source_fragments=8), 8, 4),
        (Migrate("2.1"), 12, 11),
    ],
    ids=["merged", "bounded", "migrated"],
)
def test_a_plan_rewrites_the_fragments_that_it_showed_and_no_others(
    fragments: LanceDataset, verb: Verb, removed: int, made: int
) -> None:
    uri = fragments.uri
    plan = planned(verb, fragments)
    later_traffic(uri)
    execute_plan(plan, dataset(uri))
    untouched = list(range(removed, 15))
    assert sorted(each for each in ids(uri) if each < 15) == untouched
    assert len(ids(uri)) == len(untouched) + made
    assert sorted(dataset(uri).to_table()["x"].to_pylist()) == [x for x in range(30) if x not in (5, 6, 7)]
    assert dataset(uri).to_table(filter="x = 9")["x"].to_pylist() == [9]


def test_a_planned_sort_leaves_what_was_appended_and_is_refused_after_a_deletion(fragments: LanceDataset) -> None:
    plan = planned(Compact(cluster_by=("x",)), fragments)
    write_dataset(pa.table({"x": [24]}), fragments.uri, mode="append")
    execute_plan(plan, dataset(fragments.uri))
    assert len(ids(fragments.uri)) == 2 and 12 in ids(fragments.uri)
    late = planned(Compact(cluster_by=("x",)), dataset(fragments.uri))
    dataset(fragments.uri).delete("x = 5")
    with pytest.raises(PlanOutdated, match="Delete"):
        execute_plan(late, dataset(fragments.uri))
    assert dataset(fragments.uri).count_rows() == 24


@pytest.mark.parametrize("verb", [Compact(), Migrate("2.1")], ids=["compact", "migrate"])
def test_a_plan_that_is_executed_twice_does_nothing_the_second_time(fragments: LanceDataset, verb: Verb) -> None:
    plan = planned(verb, fragments)
    assert execute_plan(plan, dataset(fragments.uri)).facts["fragments_removed"] == 12
    version = dataset(fragments.uri).version
    again = execute_plan(plan, dataset(fragments.uri))
    assert again.facts == {"fragments_removed": 0, "fragments_added": 0}
    assert dataset(fragments.uri).version == version


@pytest.mark.parametrize("verb", [Compact(), Migrate("2.1")], ids=["compact", "migrate"])
def test_a_plan_is_refused_when_others_rewrote_some_of_its_fragments(fragments: LanceDataset, verb: Verb) -> None:
    plan = planned(verb, fragments)
    do_now(Compact(target_rows_per_fragment=4, max_source_fragments=2), dataset(fragments.uri))
    version = dataset(fragments.uri).version
    with pytest.raises(PlanOutdated, match=rf"{verb.name} was planned on version 2.*\(Rewrite\).*plan again"):
        execute_plan(plan, dataset(fragments.uri))
    newest = dataset(fragments.uri)
    assert newest.count_rows() == 24 and newest.version <= version + 1  # reserved ids may take a version
    assert not newest.cleanup_old_versions(older_than=None, retain_versions=100).bytes_removed
