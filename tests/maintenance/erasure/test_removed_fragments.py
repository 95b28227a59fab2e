"""An index that covers a fragment which is gone costs a version only if it may have entries of the erased rows."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.maintenance.cleanup import CleanupOptions, cleanup_old_versions
from lance_ops.maintenance.erasure import ErasureOptions, ErasureReport, Subject, erase
from lance_ops.runners import InThreads
from lance_ops.verbs import Erase, make_plan

SUBJECT = "subject-7f3a9c"
FILTER = f"name = '{SUBJECT}'"


def rows(start: int, stop: int, *subjects: int) -> pa.Table:
    ids = list(range(start, stop))
    names = [SUBJECT if each in subjects else f"name {each}" for each in ids]
    return pa.table({"id": ids, "name": names, "at": [{"name": f"alias {each}"} for each in ids]})


def without_first_fragment(uri: str, table: pa.Table, column: str, kind: str) -> lance_ops.LanceDataset:
    """Write fragments of 10 rows with an index, and delete the rows of the first fragment: version 3 lacks it."""
    data = lance_ops.write_dataset(table, uri, max_rows_per_file=10)
    data.create_scalar_index(column, kind)
    data.delete("id < 10")
    (index,) = data.snapshot.manifest.indices
    assert 0 in (index.fragment_bitmap or ()) and 0 not in data.snapshot.fragments_by_id
    return data


def forget_older_versions(data: lance_ops.LanceDataset) -> None:
    data.cleanup_old_versions(timedelta(0), delete_unverified=True)


def append(uri: str, *subjects: int) -> int:
    return lance_ops.write_dataset(rows(100, 110, *subjects), uri, mode="append").version


def erased(uri: str, matching: str = FILTER) -> ErasureReport:
    report = erase(lance_ops.dataset(uri).snapshot, Subject(matching), ErasureOptions("request 12"))
    assert report.is_proven, report.unproven
    return report


def retained(uri: str) -> list[int]:
    return [each["version"] for each in lance_ops.dataset(uri).versions()]


@pytest.mark.parametrize(
    ("column", "kind"), [("name", "BTREE"), ("name", "ZONEMAP"), ("id", "BTREE"), ("id", "ZONEMAP")]
)
def test_a_version_whose_index_covers_a_removed_fragment_without_the_rows_stays_with_its_tag(
    dataset_uri: str, column: str, kind: str
) -> None:
    data = without_first_fragment(dataset_uri, rows(0, 30), column, kind)
    data.tags.create("quarter", 3)
    made = append(dataset_uri, 105)
    facts = make_plan(Erase(FILTER, "request 12"), lance_ops.dataset(dataset_uri), InThreads())[1].facts
    assert facts["versions_removed_for_indices"] == 0
    report = erased(dataset_uri)
    newest = lance_ops.dataset(dataset_uri).version
    assert report.removed_versions == tuple(f"main/{version}" for version in range(made, newest))
    assert retained(dataset_uri) == [1, 2, 3, newest]
    assert (report.rebuilt_indices, report.removed_tags) == ((), ())


@pytest.mark.parametrize(("column", "rebuilt"), [("name", ()), ("id", ("id_idx",))])
def test_if_no_version_shows_the_removed_fragment_only_an_index_on_the_filters_column_tells(
    dataset_uri: str, column: str, rebuilt: tuple[str, ...]
) -> None:
    forget_older_versions(without_first_fragment(dataset_uri, rows(0, 30), column, "BTREE"))
    append(dataset_uri, 105)
    report = erased(dataset_uri)
    assert report.rebuilt_indices == rebuilt
    assert (3 in retained(dataset_uri)) is not bool(rebuilt)


def test_what_a_version_shows_of_a_fragment_counts_after_the_version_is_gone(dataset_uri: str) -> None:
    data = lance_ops.write_dataset(rows(0, 30), dataset_uri, max_rows_per_file=10)
    data.create_scalar_index("id", "BTREE")
    append(dataset_uri, 105)
    data = lance_ops.dataset(dataset_uri)
    cleanup_old_versions(data.snapshot, CleanupOptions(versions=(1, 2)))
    data.delete("id < 10 OR id >= 100")  # only version 3 shows the first fragment, and it has the subject's, too
    report = erased(dataset_uri)
    assert (report.removed_versions, report.rebuilt_indices) == (("main/3",), ())
    assert retained(dataset_uri) == [4]


def test_an_index_of_a_removed_fragment_with_the_rows_goes(dataset_uri: str) -> None:
    without_first_fragment(dataset_uri, rows(0, 30, 5), "id", "BTREE")
    assert erased(dataset_uri).rebuilt_indices == ("id_idx",)
    assert min(retained(dataset_uri)) > 3


def test_an_index_does_not_tell_of_nulls(dataset_uri: str) -> None:
    table = pa.table({"id": range(20), "name": [None, *(f"name {each}" for each in range(1, 20))]})
    forget_older_versions(without_first_fragment(dataset_uri, table, "name", "BTREE"))
    assert erased(dataset_uri, "name IS NULL").rebuilt_indices == ("name_idx",)


def test_an_index_on_a_nested_column_of_the_filters_name_does_not_tell(dataset_uri: str) -> None:
    forget_older_versions(without_first_fragment(dataset_uri, rows(0, 30, 5), "at.name", "BTREE"))
    (index,) = lance_ops.dataset(dataset_uri).snapshot.manifest.indices
    assert erased(dataset_uri).rebuilt_indices == (index.name,)
