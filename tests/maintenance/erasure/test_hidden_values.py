"""Values of erased rows that no version shows are found as well, or the report says that nothing is proven."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyroaring import BitMap, FrozenBitMap

import lance_ops
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.maintenance.erasure import ErasureOptions, ErasureReport, Subject, erase
from lance_ops.maintenance.erasure.index_search import may_have_covered

SUBJECT = "subject-7f3a9c"
FILTER = f"name = '{SUBJECT}'"


def people(uri: str, **options: object) -> lance_ops.LanceDataset:
    """Two fragments of 10 rows; row 0 is the subject's."""
    names = [SUBJECT, *(f"tenant-{each:04d}" for each in range(1, 20))]
    rows = pa.table({"id": range(20), "name": names, "at": [{"name": each} for each in names]})
    return lance_ops.write_dataset(rows, uri, max_rows_per_file=10, **options)  # type: ignore[arg-type]


def erased(uri: str, matching: str = FILTER, reason: str = "request 12") -> ErasureReport:
    return erase(lance_ops.dataset(uri).snapshot, Subject(matching), ErasureOptions(reason, rewrite_branches=True))


def holders(root: str) -> list[str]:
    """Return the first folders of the files whose bytes hold the subject's name."""
    files = [path for path in Path(root).rglob("*") if path.is_file() and SUBJECT.encode() in path.read_bytes()]
    return sorted({path.relative_to(root).parts[0] for path in files})


def forget_old_versions(data: lance_ops.LanceDataset) -> None:
    data.cleanup_old_versions(timedelta(0), delete_unverified=True)


@pytest.mark.parametrize(("column", "matching"), [("name", FILTER), ("id", "id < 1")])
def test_bounds_of_a_zone_map_that_outlived_the_rows_go(dataset_uri: str, column: str, matching: str) -> None:
    data = people(dataset_uri)
    data.create_scalar_index(column, "ZONEMAP")
    data.delete("id = 0")
    data.optimize.compact_files()
    forget_old_versions(data)
    report = erased(dataset_uri, matching)
    assert (report.is_proven, report.rebuilt_indices) == (True, (f"{column}_idx",))
    assert holders(dataset_uri) == []
    assert erased(dataset_uri, matching).rebuilt_indices == ()


def test_a_transaction_that_states_the_value_goes_although_its_version_has_no_such_row(dataset_uri: str) -> None:
    data = people(dataset_uri)
    data.delete(f"{FILTER} OR id < 10")  # the whole fragment, so that no file of the next version stores the rows
    assert holders(dataset_uri) == ["_transactions", "_versions", "data"]
    assert erased(dataset_uri).is_proven
    assert holders(dataset_uri) == []
    assert [version["version"] for version in lance_ops.dataset(dataset_uri).versions()] == [3]
    assert lance.dataset(dataset_uri).count_rows() == 10


def test_a_dropped_column_whose_name_another_column_took_is_searched(dataset_uri: str) -> None:
    data = people(dataset_uri)
    data.drop_columns(["name", "at"])
    data.add_columns(pa.schema([pa.field("name", pa.string())]))
    assert lance_ops.dataset(dataset_uri, 1).count_rows(FILTER) == 1
    assert erased(dataset_uri).is_proven
    assert holders(dataset_uri) == []
    assert lance_ops.dataset(dataset_uri).count_rows() == 20, "the newest version has no row of the subject"


@pytest.mark.parametrize(("kind", "matching"), [("BTREE", FILTER), ("ZONEMAP", FILTER), ("BTREE", "id = 0")])
def test_values_of_a_column_that_was_rewritten_go_from_files_and_indices(
    dataset_uri: str, kind: str, matching: str
) -> None:
    data = people(dataset_uri)
    data.drop_columns(["at"])
    data.create_scalar_index("name", kind)
    first = data.get_fragments()[0]
    ids = data.to_table(["id"], with_row_id=True, limit=10)["_rowid"]
    updated, fields = first.update_columns(
        pa.table({"_rowid": ids, "name": [f"new name {each}" for each in range(10)]})
    )
    operation = lance_ops.LanceOperation.Update(updated_fragments=[updated], fields_modified=fields)
    forget_old_versions(lance_ops.LanceDataset.commit(dataset_uri, operation, read_version=data.version))
    assert holders(dataset_uri) == ["_indices", "data"]
    assert erased(dataset_uri, matching).is_proven
    assert holders(dataset_uri) == []


def test_a_file_that_is_none_of_the_dataset_is_not_proven(dataset_uri: str) -> None:
    people(dataset_uri)
    staged = Path(dataset_uri) / "staging" / "rows.csv.gz"
    staged.parent.mkdir()
    staged.write_bytes(b"compressed")
    (staged.parent / "_SUCCESS").touch()
    report = erased(dataset_uri, "id = 0")
    assert report.unproven == (
        "staging/rows.csv.gz: it is no file of the dataset; look into it, and move or remove it",
    )
    staged.unlink()
    assert erased(dataset_uri, "id = 0").is_proven


def test_a_value_in_the_reason_is_refused_and_one_in_an_older_report_is_found(dataset_uri: str) -> None:
    people(dataset_uri)
    with pytest.raises(InvalidInput, match="the reason states a value of the rows"):
        erased(dataset_uri, reason=f"{SUBJECT} asked for it")
    older = erased(dataset_uri, "id = 0", reason=f"{SUBJECT} asked for it")
    report = erased(dataset_uri)
    assert not report.is_proven
    assert any(line.startswith(f"{older.json_path}: an erased value") for line in report.unproven)
    assert not any(report.id in line for line in report.unproven)


def test_a_value_in_the_config_is_named_with_the_remedy(dataset_uri: str) -> None:
    people(dataset_uri).update_config({"owner": SUBJECT})
    (line,) = erased(dataset_uri).unproven
    assert line.endswith("stands in its bytes: change the config, metadata or column that states it, and erase again")
    lance_ops.dataset(dataset_uri).update_config({"owner": None})
    assert erased(dataset_uri).is_proven


def test_a_nested_column_is_searched_for_its_values(dataset_uri: str) -> None:
    people(dataset_uri)
    report = erased(dataset_uri, f"at.name = '{SUBJECT}'")
    assert (report.is_proven, report.erased_rows, report.searched_values) == (True, 1, 1)
    assert holders(dataset_uri) == []


@pytest.mark.parametrize("column", ["_rowid", "_rowaddr"])
def test_rows_are_not_named_by_their_places(dataset_uri: str, column: str) -> None:
    people(dataset_uri)
    with pytest.raises(InvalidInput, match=f"{column} names other rows in other versions"):
        erased(dataset_uri, f"{column} = 0")


def test_a_clone_lets_go_of_its_sources_files_and_names_the_source(dataset_uri: str, tmp_path: Path) -> None:
    source = people(dataset_uri)
    clone = source.shallow_clone(str(tmp_path / "clone.lance"), 1)
    clone.create_branch("trial").update({"id": "id + 100"}, "id = 0")
    report = erased(clone.uri)
    assert (report.is_proven, report.also_held_by) == (True, (source.uri,))
    assert source.uri in (tmp_path / "clone.lance" / report.html_path).read_text()
    assert holders(dataset_uri) == ["data"], "nothing outside the clone is removed"
    assert erased(dataset_uri).also_held_by == ()
    assert lance_ops.dataset(clone.uri).to_table().num_rows == 19
    assert lance_ops.dataset(clone.uri).checkout_version(("trial", None)).to_table().num_rows == 19


def test_an_index_of_a_kind_that_is_not_written_here_is_named_with_the_remedy(dataset_uri: str) -> None:
    people(dataset_uri)
    lance.dataset(dataset_uri).create_scalar_index("id", "BITMAP")
    with pytest.raises(UnsupportedFeature, match="drop it with `lance-ops reindex --drop id_idx`"):
        erased(dataset_uri)
    lance_ops.dataset(dataset_uri).drop_index("id_idx")
    assert erased(dataset_uri).is_proven


def test_the_report_says_what_was_not_examined(dataset_uri: str) -> None:
    people(dataset_uri)
    report = erased(dataset_uri)
    kept = json.loads((Path(dataset_uri) / report.json_path).read_text())
    assert "shallow clones that read this dataset" in kept["not_examined"]
    assert "shallow clones that read this dataset" in report.to_html()


def test_an_index_that_a_compaction_moved_from_tainted_fragments_is_built_anew(dataset_uri: str) -> None:
    data = people(dataset_uri)
    data.drop_columns(["at"])
    data.create_scalar_index("name", "ZONEMAP")
    data.delete("id = 0")
    data.optimize.compact_files()  # the filter reads another column than the zone map has, so its bounds do not tell
    report = erased(dataset_uri, "id = 0")
    assert (report.is_proven, report.rebuilt_indices) == (True, ("name_idx",))
    assert holders(dataset_uri) == []


@pytest.mark.parametrize(
    ("covered", "tainted", "expected"),
    [
        ([0, 1], [1], True),
        ([0, 1], [2], False),  # the segment was built before fragment 2 came
        ([0, 2], [1], True),  # fragment 1 was there, and its column was rewritten since
        ([0, 1], [], False),
        ([], [0], True),
        (None, [0], True),
    ],
)
def test_a_segment_may_have_covered_a_fragment_that_is_older_than_the_youngest_it_covers(
    dataset_uri: str, covered: list[int] | None, tainted: list[int], expected: bool
) -> None:
    data = people(dataset_uri)
    data.create_scalar_index("id", "BTREE")
    (index,) = data.snapshot.manifest.indices
    bitmap = None if covered is None else FrozenBitMap(covered)
    assert may_have_covered(replace(index, fragment_bitmap=bitmap), BitMap(tainted)) is expected
