"""A version that the filter does not fit goes with its files, if no search of another version covers it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.erasure import Subject, plan_erasure
from lance_ops.maintenance.erasure.searching import version_search
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment

BORN = datetime(1980, 5, 17)
OTHER = datetime(1999, 1, 2)


def people(uri: str, born: list[Any] | None = None, kind: pa.DataType | None = None) -> lance_ops.LanceDataset:
    """Two fragments of two rows; row 0 is the subject's."""
    born = born or [BORN, OTHER, OTHER, OTHER]
    rows = pa.table({"name": ["Ada", "Bob", "Cid", "Dan"], "born": pa.array(born, kind or pa.timestamp("us"))})
    return lance_ops.write_dataset(rows, uri, max_rows_per_file=2)


def files_beneath(made: lance_ops.LanceDataset) -> set[str]:
    return {file.path for fragment in lance_ops.dataset(made.uri).snapshot.fragments for file in fragment.files}


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        (pa.timestamp("us"), pa.date32(), BORN.date()),
        (pa.timestamp("us"), pa.time64("us"), time(0)),
        (pa.date32(), pa.timestamp("us"), BORN),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), BORN.replace(tzinfo=UTC)),
    ],
    ids=str,
)
def test_a_row_that_was_deleted_before_a_cast_leaves_every_file(
    dataset_uri: str, before: pa.DataType, after: pa.DataType, key: Any
) -> None:
    born = [each.date() for each in (BORN, OTHER, OTHER, OTHER)] if pa.types.is_date(before) else None
    made = people(dataset_uri, born, before)
    made.delete("name = 'Ada'")
    made.alter_columns({"path": "born", "data_type": after})
    stored = files_beneath(made)
    keys = pa.table({"name": ["Ada"], "born": pa.array([key], after)})
    found = plan_erasure(made.snapshot, Subject.of_keys(keys))
    assert {version: str(why) for version, why in found.main.holding.items()} == {
        1: "its columns differ, so that the filter cannot search it",
        2: "its columns differ, so that the filter cannot search it",
        3: "it names files of a version that the filter cannot search",
    }
    report = made.erase(keys=keys, on=["name", "born"], reason="request 12")
    assert report.is_proven, report.unproven
    assert set(report.removed_versions) >= {"main/1", "main/2", "main/3"}
    assert not stored & {file.path.removeprefix("data/") for file in report.files}
    assert made.to_table()["name"].to_pylist() == ["Bob", "Cid", "Dan"]
    assert plan_erasure(made.snapshot, Subject.of_keys(keys)).is_clean


def test_a_filter_that_does_not_fit_the_older_type_is_treated_alike(dataset_uri: str) -> None:
    made = people(dataset_uri)
    made.delete("name = 'Ada'")
    made.alter_columns({"path": "born", "data_type": pa.time64("us")})
    stored = files_beneath(made)
    report = made.erase("born = arrow_cast('00:00:00', 'Time64(Microsecond)') AND name = 'Ada'", reason="request 12")
    assert report.is_proven, report.unproven
    assert set(report.removed_versions) >= {"main/1", "main/2", "main/3"}
    assert not stored & {file.path.removeprefix("data/") for file in report.files}


def test_a_version_whose_column_another_of_the_same_name_replaced_goes(dataset_uri: str) -> None:
    """The live row's value in the new column does not tell what the old one held."""
    made = people(dataset_uri)
    made.drop_columns(["born"])
    made.add_columns({"born": "arrow_cast('2001-02-03', 'Date32')"})
    keys = pa.table({"name": ["Ada"], "born": [BORN.date()]})
    report = made.erase(keys=keys, on=["name", "born"], reason="request 12")
    assert report.is_proven, report.unproven
    assert {"main/1", "main/3"} <= set(report.removed_versions)
    assert report.erased_rows == 0
    assert made.count_rows() == 4


def test_a_version_that_lacks_a_column_stays_if_no_row_beside_it_matches(dataset_uri: str) -> None:
    made = people(dataset_uri)
    made.delete("name = 'Ada'")
    made.add_columns({"number": "arrow_cast(7, 'Int64')"})
    keys = pa.table({"name": ["Ada", "Dan"], "number": [7, 8]})
    assert plan_erasure(made.snapshot, Subject.of_keys(keys)).is_clean, "the deleted row never had a number"
    found = plan_erasure(made.snapshot, Subject("name = 'Ada' AND number = 7"))
    assert found.main.holding == {}
    found = plan_erasure(made.snapshot, Subject("name = 'Ada' OR number = 8"))
    assert set(found.main.holding) == {1, 2, 3}


def test_a_version_that_lacks_a_column_goes_if_its_other_columns_were_cast_since(dataset_uri: str) -> None:
    made = people(dataset_uri)
    made.delete("name = 'Ada'")
    made.alter_columns({"path": "name", "data_type": pa.large_string()})
    made.add_columns({"number": "arrow_cast(7, 'Int64')"})
    found = plan_erasure(made.snapshot, Subject("name = 'Ada' OR number = 8"))
    assert {version: str(why) for version, why in found.main.holding.items()} == {
        **dict.fromkeys((1, 2), "its columns differ, so that the filter cannot search it"),
        **dict.fromkeys((3, 4), "it names files of a version that the filter cannot search"),
    }
    report = made.erase("name = 'Ada' OR number = 8", reason="request 12")
    assert report.is_proven, report.unproven
    assert min(each["version"] for each in made.versions()) > 4


def test_a_branch_that_the_filter_cannot_search_leaves_the_main_branch_as_it_is(dataset_uri: str) -> None:
    made = people(dataset_uri)
    trial = made.create_branch("trial", 1)
    trial.alter_columns({"path": "born", "data_type": pa.date32()})
    keys = pa.table({"name": ["Ada"], "born": pa.array([OTHER], pa.timestamp("us"))})
    found = plan_erasure(made.snapshot, Subject.of_keys(keys))
    causes = {branch.name: {str(why) for why in branch.holding.values()} for branch in found.branches}
    assert causes == {"trial": {"its columns differ, so that the filter cannot search it"}, "main": set()}
    report = made.erase(keys=keys, on=["name", "born"], reason="request 12", rewrite_branches=True)
    assert not report.is_proven
    assert report.rewritten_fragments == 0
    assert report.removed_versions == ()


def test_an_index_that_covered_a_row_deleted_before_a_cast_is_built_anew(dataset_uri: str) -> None:
    made = people(dataset_uri)
    made.create_scalar_index("name", "BTREE")
    made.delete("name = 'Ada'")
    made.alter_columns({"path": "born", "data_type": pa.date32()})
    keys = pa.table({"name": ["Ada"], "born": [date(1980, 5, 17)]})
    report = made.erase(keys=keys, on=["name", "born"], reason="request 12")
    assert report.is_proven, report.unproven
    assert report.rebuilt_indices == ("name_idx",)


@pytest.mark.parametrize("on", [["name", "birthday"], ["birthday"]], ids="+".join)
def test_a_row_that_was_deleted_before_a_cast_under_a_new_name_leaves_every_file(
    dataset_uri: str, on: list[str]
) -> None:
    made = people(dataset_uri)
    made.delete("name = 'Ada'")
    made.alter_columns({"path": "born", "name": "birthday", "data_type": pa.date32()})
    stored = files_beneath(made)
    keys = pa.table({"name": ["Ada"], "birthday": [BORN.date()]}).select(on)
    found = plan_erasure(made.snapshot, Subject.of_keys(keys))
    assert {version: str(why) for version, why in found.main.holding.items()} == {
        1: "its columns differ, so that the filter cannot search it",
        2: "its columns differ, so that the filter cannot search it",
        3: "it names files of a version that the filter cannot search",
    }
    report = made.erase(keys=keys, on=on, reason="request 12")
    assert report.is_proven, report.unproven
    assert set(report.removed_versions) >= {"main/1", "main/2", "main/3"}
    assert not stored & {file.path.removeprefix("data/") for file in report.files}
    assert made.to_table()["name"].to_pylist() == ["Bob", "Cid", "Dan"]


def test_a_version_that_lacks_a_column_stays_if_any_searched_version_has_all_of_its_own(dataset_uri: str) -> None:
    """The newest version reads the same files with the same columns of the keys, but has lost a column."""
    made = people(dataset_uri)
    made.delete("name = 'Ada'")
    made.add_columns({"number": "arrow_cast(7, 'Int64')"})
    made.drop_columns(["born"])
    keys = pa.table({"name": ["Ada", "Dan"], "number": [7, 8]})
    assert plan_erasure(made.snapshot, Subject.of_keys(keys)).is_clean
    made.cleanup_old_versions(versions=[3])
    assert set(plan_erasure(made.snapshot, Subject.of_keys(keys)).main.holding) == {1, 2, 4}


def test_a_new_column_under_the_id_of_a_dropped_one_does_not_stand_for_it(dataset_uri: str) -> None:
    names = pa.table({"name": ["Ada", "Bob", "Cid", "Dan"]})
    made = lance_ops.write_dataset(names, dataset_uri, max_rows_per_file=2)
    made.add_columns({"born": "arrow_cast('1980-05-17', 'Date32')"})
    made.delete("name = 'Ada'")
    dropped = made.snapshot.schema.field("born").id
    made.drop_columns(["born"])
    made.add_columns({"birthday": "arrow_cast('1980-05-17', 'Date32')"})
    assert made.snapshot.schema.field("birthday").id == dropped
    keys = pa.table({"name": ["Ada"], "birthday": [BORN.date()]})
    report = made.erase(keys=keys, on=["name", "birthday"], reason="request 12")
    assert report.is_proven, report.unproven
    assert {"main/2", "main/3"} <= set(report.removed_versions)
    assert made.to_table()["name"].to_pylist() == ["Bob", "Cid", "Dan"]


def test_a_search_that_finds_nothing_looks_at_each_fragment_of_each_version_once(
    dataset_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = people(dataset_uri)
    made.delete("name = 'Dan'")
    looked: list[int] = []
    files_of = version_search._files_of

    def counted(version: Snapshot, fragment: Fragment) -> frozenset[str]:
        looked.append(version.version)
        return files_of(version, fragment)

    monkeypatch.setattr(version_search, "_files_of", counted)
    found = plan_erasure(made.snapshot, Subject("name = 'Eve'"))
    assert found.is_clean
    assert sorted(looked) == [1, 1, 2, 2, 2, 2], "the newest version is also the head"
