"""Values of erased rows that no version shows are found as well, or the report says that nothing is proven."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyroaring import BitMap, FrozenBitMap

import lance_ops
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.maintenance.compaction import execute_rewrite
from lance_ops.maintenance.erasure import ErasureOptions, ErasureReport, Subject, erase
from lance_ops.maintenance.erasure.searching.index_search import may_have_covered
from lance_ops.runners import InThreads

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
    assert "stands in its bytes: change the config, metadata or column that states it" in line
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


def hidden(uri: str) -> lance_ops.LanceDataset:
    """The subject's name in a column that no retained version shows: another column has taken its name."""
    data = people(uri)
    data.drop_columns(["name", "at"])
    data.add_columns(pa.schema([pa.field("name", pa.string())]))
    forget_old_versions(data)
    return lance_ops.dataset(uri)


def test_a_value_of_a_dropped_column_is_found_in_the_newest_versions_files(dataset_uri: str) -> None:
    hidden(dataset_uri)
    assert holders(dataset_uri) == ["data"]
    assert erased(dataset_uri).is_proven
    assert holders(dataset_uri) == []


def _tagged(uri: str) -> None:
    lance_ops.dataset(uri).tags.create("quarter", lance_ops.dataset(uri).version)


def _indexed(uri: str) -> None:
    lance.dataset(uri).create_scalar_index("id", "BITMAP")


@pytest.mark.parametrize(
    ("prepare", "message"), [(_tagged, "tags hold the rows: quarter"), (_indexed, "reindex --drop id_idx")]
)
def test_further_rounds_that_are_refused_leave_a_finished_report_that_says_so(
    dataset_uri: str, prepare: Callable[[str], None], message: str
) -> None:
    hidden(dataset_uri)
    prepare(dataset_uri)
    version = lance_ops.dataset(dataset_uri).version
    report = erased(dataset_uri)
    assert (report.is_proven, bool(report.finished_at)) == (False, True)
    assert report.unproven[0].startswith("further rounds were refused: ")
    assert message in report.unproven[0]
    assert lance_ops.dataset(dataset_uri).version == version
    assert json.loads((Path(dataset_uri) / report.json_path).read_text())["finished_at"]


def test_rounds_that_are_refused_after_one_are_reported_as_they_left_the_table(dataset_uri: str) -> None:
    class Tagging(InThreads):
        """Tags the newest version while its fragments are rewritten."""

        def map(self, function: Any, tasks: Any, *rest: Any) -> Any:
            if function is execute_rewrite:
                _tagged(dataset_uri)
            return super().map(function, tasks, *rest)

    old = hidden(dataset_uri).version
    report = erase(lance_ops.dataset(dataset_uri).snapshot, Subject(FILTER), ErasureOptions("r"), Tagging())
    assert "tags hold the rows: quarter" in report.unproven[0]
    newest = lance_ops.dataset(dataset_uri).version
    assert newest > old
    assert report.branches["main"].version == newest
    assert old not in report.branches["main"].clean_versions
    with pytest.raises(InvalidInput, match="may hold rows that erasure"):
        lance_ops.dataset(dataset_uri, old).restore()


@pytest.mark.parametrize("name", ["data", "data/x", "_versions"])
def test_a_branch_that_has_the_name_of_a_directory_is_proven(dataset_uri: str, name: str) -> None:
    people(dataset_uri).create_branch(name).delete("id = 5")
    report = erased(dataset_uri)
    assert report.is_proven, report.unproven
    assert holders(dataset_uri) == []
    assert {file.examined for file in report.files if "_versions/" in file.path.removeprefix(f"tree/{name}")} == {
        "its bytes searched"
    }


@pytest.mark.parametrize(("gone", "rebuilt"), [("*", ()), ("page_data.lance", ("name_idx",))])
def test_an_index_whose_files_are_gone_holds_no_rows_and_one_with_a_file_left_is_built_anew(
    dataset_uri: str, gone: str, rebuilt: tuple[str, ...]
) -> None:
    data = people(dataset_uri)
    data.delete("id = 0")
    data.optimize.compact_files()
    forget_old_versions(data)
    data = lance_ops.dataset(dataset_uri)
    data.create_scalar_index("name", "BTREE")
    names = [SUBJECT, "tenant-0020"]
    made = lance_ops.write_dataset(
        pa.table({"id": [20, 21], "name": names, "at": [{"name": each} for each in names]}), dataset_uri, mode="append"
    )
    assert made.count_rows(FILTER) == 1
    for path in (Path(dataset_uri) / "_indices").glob(f"*/{gone}"):
        path.unlink()
    report = erased(dataset_uri)
    assert (report.is_proven, report.rebuilt_indices) == (True, rebuilt), report.unproven
    assert holders(dataset_uri) == []


def test_an_index_of_a_branch_does_not_make_another_branchs_index_of_that_name_stale(dataset_uri: str) -> None:
    plain = pa.table({"id": range(3), "name": ["a", "b", "c"]})
    data = lance_ops.write_dataset(plain, dataset_uri)
    trial = data.create_branch("trial")
    trial = lance_ops.write_dataset(pa.table({"id": [9], "name": [SUBJECT]}), trial.uri, mode="append")
    trial.create_scalar_index("name", "BTREE")
    lance_ops.dataset(dataset_uri).create_scalar_index("name", "BTREE")
    for _ in range(4):
        newest = lance_ops.write_dataset(plain, dataset_uri, mode="append")
    report = erased(dataset_uri)
    assert report.is_proven, report.unproven
    assert "main" not in report.committed_versions
    assert report.branches["main"].version == newest.version
    assert [each for each in report.removed_versions if each.startswith("main/")] == []


def test_an_index_that_a_branch_took_over_is_stale_on_it_too(dataset_uri: str) -> None:
    data = people(dataset_uri)
    data.drop_columns(["at"])
    data.create_scalar_index("name", "ZONEMAP")
    data.delete("id = 0")
    data.optimize.compact_files()
    trial = lance_ops.dataset(dataset_uri).create_branch("trial")
    trial.update_config({"of": "trial"})
    report = erased(dataset_uri, "id = 0")
    assert report.is_proven, report.unproven
    assert {"main", "trial"} <= report.committed_versions.keys()
    assert holders(dataset_uri) == []
