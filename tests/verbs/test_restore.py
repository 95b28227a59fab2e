"""The preview of a restore shows the rows that would go and those that would return, wherever they are stored."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.verbs import Preview, Restore, make_plan
from lance_ops.verbs.rows import restore as restore_module
from lance_ops.verbs.rows import row_difference
from tests.verbs.living import live, section

GO, RETURN = "Rows that would go", "Rows that would return"


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def numbers(request: pytest.FixtureRequest, dataset_uri: str) -> LanceDataset:
    rows = pa.table({"x": range(8), "s": ["old"] * 8})
    return write_dataset(rows, dataset_uri, max_rows_per_file=4, enable_stable_row_ids=request.param)


def previewed(uri: str, version: int = 1) -> Preview:
    return make_plan(Restore(version, reason="undo"), dataset(uri))[1]


def titles(preview: Preview) -> list[str]:
    return [each.title for each in preview.sections]


def test_appended_rows_would_go_and_deleted_rows_would_return(numbers: LanceDataset) -> None:
    numbers.insert(pa.table({"x": range(100, 107), "s": ["new"] * 7}))
    numbers.delete("x < 2")
    preview, done = live(Restore(1, reason="undo"), numbers)
    assert section(preview, GO)["x"] == ("100", "101", "102", "103", "104"), "a sample"
    assert section(preview, RETURN)["x"] == ("0", "1")
    assert preview.facts == {"restored_version": 1, "going_rows": 7, "returning_rows": 2}
    assert done.after.rows == 8


def test_an_updated_row_goes_with_its_new_values_and_returns_with_the_old_ones(numbers: LanceDataset) -> None:
    numbers.update({"s": "'new'"}, "x = 5")
    preview = previewed(numbers.uri)
    assert (section(preview, GO)["s"], section(preview, RETURN)["s"]) == (("new",), ("old",))


def test_rows_that_only_moved_are_not_shown(numbers: LanceDataset) -> None:
    numbers.delete("x = 3")
    numbers.optimize.compact_files()
    preview = previewed(numbers.uri)
    assert GO not in titles(preview)
    assert section(preview, RETURN)["x"] == ("3",)
    assert preview.facts["going_rows"] == 0


def test_a_row_that_is_there_twice_goes_once(numbers: LanceDataset) -> None:
    numbers.insert(pa.table({"x": [3], "s": ["old"]}))
    numbers.optimize.compact_files()
    assert previewed(numbers.uri).facts == {"restored_version": 1, "going_rows": 1, "returning_rows": 0}


def test_a_column_that_would_go_hides_no_row(numbers: LanceDataset) -> None:
    numbers.add_columns({"y": "x * 2"})
    numbers.insert(pa.table({"x": [9], "s": ["new"], "y": [1]}))
    preview = previewed(numbers.uri)
    assert section(preview, GO) == {"x": ("9",), "s": ("new",)}
    assert RETURN not in titles(preview)
    assert section(preview, "Columns that would change") == {
        "column": ("y",),
        "type": ("int64",),
        "change": ("removed",),
    }


def test_versions_that_were_cleaned_up_are_counted_too(numbers: LanceDataset) -> None:
    numbers.tags.create("kept", 1)
    numbers.delete("x = 3")
    numbers.delete("x = 4")
    numbers.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    preview = previewed(numbers.uri)
    assert preview.summary == "restore version 1, which undoes 2 versions"
    assert any(warning.startswith("1 of these versions are cleaned up") for warning in preview.warnings)
    assert section(preview, RETURN)["x"] == ("3", "4")


def test_too_many_moved_rows_are_not_compared_and_it_says_so(
    numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore_module, "_MOST_COMPARED", 15)
    numbers.optimize.compact_files()
    preview = previewed(numbers.uri)
    assert titles(preview) == ["Versions that would be undone"]
    assert "8 rows of this version and 8 of the restored one" in preview.warnings[0]


def test_too_large_rows_are_not_compared_and_it_says_so(numbers: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers.optimize.compact_files()
    assert 0 < previewed(numbers.uri).reads_bytes < 1 << 20
    monkeypatch.setattr(restore_module, "_MOST_COMPARED_BYTES", 100)
    preview = previewed(numbers.uri)
    assert titles(preview) == ["Versions that would be undone"]
    assert "too large" in preview.warnings[0] and preview.reads_bytes == 0


TIMES: list[tuple[pa.DataType, Any]] = [
    (pa.timestamp("us", "UTC"), 400_000_000_000_000_000),
    (pa.date32(), 3_000_000),
    (pa.duration("s"), 10**15),
    (pa.list_(pa.timestamp("us")), [400_000_000_000_000_000]),
    (pa.struct({"at": pa.timestamp("us")}), {"at": 400_000_000_000_000_000}),
    (pa.list_(pa.duration("s"), 2), [1, 10**15]),
]


@pytest.mark.parametrize(("arrow_type", "value"), TIMES, ids=str)
def test_times_that_python_cannot_hold_are_compared_and_shown(
    dataset_uri: str, arrow_type: pa.DataType, value: object
) -> None:
    times = pa.array([value] * 4, row_difference._exact_type(arrow_type)).cast(arrow_type)
    data = write_dataset(pa.table({"x": range(4), "t": times}), dataset_uri, max_rows_per_file=2)
    data.delete("x = 3")
    data.optimize.compact_files()
    preview = previewed(data.uri)
    assert preview.facts == {"restored_version": 1, "going_rows": 0, "returning_rows": 1}
    assert section(preview, RETURN)["x"] == ("3",)


def test_nanoseconds_are_compared_and_shown_without_pandas(dataset_uri: str) -> None:
    times = pa.array([1, 2, 3, 4], pa.timestamp("ns"))
    data = write_dataset(pa.table({"x": range(4), "t": times}), dataset_uri, max_rows_per_file=2)
    data.delete("x = 3")
    data.optimize.compact_files()
    program = """
        import sys
        sys.modules["pandas"] = None  # an import of it fails
        from lance_ops.api import dataset
        from lance_ops.verbs import Restore, make_plan
        preview = make_plan(Restore(1, reason="undo"), dataset(sys.argv[1]))[1]
        print(preview.facts["going_rows"], preview.facts["returning_rows"], preview.sections[0].lines)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), data.uri], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "0 1 (('3', '1970-01-01 00:00:00.000000004'),)"


def test_versions_without_a_common_column_differ_in_all_rows(dataset_uri: str) -> None:
    data = write_dataset(pa.table({"x": range(4)}), dataset_uri)
    data.add_columns({"y": "x * 2"})
    data.drop_columns(["x"])
    preview = previewed(data.uri)
    assert preview.facts == {"restored_version": 1, "going_rows": 4, "returning_rows": 4}
    assert section(preview, GO)["y"] == ("0", "2", "4", "6")
    assert section(preview, RETURN)["x"] == ("0", "1", "2", "3")


def test_columns_that_are_not_compared_are_named(numbers: LanceDataset) -> None:
    numbers.alter_columns({"path": "x", "data_type": pa.int32()})
    preview = previewed(numbers.uri)
    assert "Rows that differ only in these columns are not counted: x" in preview.warnings
    assert preview.facts["going_rows"] == 0


def test_a_column_that_took_the_name_of_another_one_is_compared_by_its_values(numbers: LanceDataset) -> None:
    numbers.drop_columns(["s"])
    numbers.add_columns(pa.schema([pa.field("s", pa.string())]))
    fragments = [dataset(numbers.uri, version).snapshot.fragments for version in (1, None)]
    assert fragments[0] == fragments[1], "only the schema has changed"
    preview = previewed(numbers.uri)
    assert preview.facts == {"restored_version": 1, "going_rows": 8, "returning_rows": 8}
    assert section(preview, GO)["s"] != section(preview, RETURN)["s"] == ("old",) * 5


def test_columns_that_exchanged_their_names_are_compared_by_their_values(dataset_uri: str) -> None:
    data = write_dataset(pa.table({"x": [1, 2, 3], "y": [1, 2, 4]}), dataset_uri)
    for old, new in (("x", "z"), ("y", "x"), ("z", "y")):
        data.alter_columns({"path": old, "name": new})
    preview = previewed(data.uri)
    assert preview.facts == {"restored_version": 1, "going_rows": 1, "returning_rows": 1}
    assert (section(preview, GO), section(preview, RETURN)) == ({"x": ("4",), "y": ("3",)}, {"x": ("3",), "y": ("4",)})
