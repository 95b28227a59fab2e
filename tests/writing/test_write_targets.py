"""New data files go to the chosen bases, and a failed write leaves no file in them."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import DatasetBasePath
from lance_ops.committers import open_base, options_for_base, options_of_base
from lance_ops.errors import DatasetAlreadyExists, InvalidInput, RetryableConflict, SchemaMismatch
from lance_ops.table import BasePath, Fragment
from lance_ops.writing import commit as commits
from lance_ops.writing import fragment_writer
from lance_ops.writing.write_targets import choose_bases, number_bases

SCHEMA = pa.schema([("id", pa.int64())])


def rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop)}, SCHEMA)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The directory of a base path."""
    return tmp_path / "files"


@pytest.fixture
def bases(files: Path) -> list[DatasetBasePath]:
    return [DatasetBasePath(str(files), "files")]


def test_new_bases_get_the_lowest_free_ids_from_one() -> None:
    given = [BasePath(7, "/a"), BasePath(1, "/b"), BasePath(0, "/c", "c"), BasePath(0, "/d", "d")]
    assert [base.id for base in number_bases(given)] == [7, 1, 2, 3]


@pytest.mark.parametrize(
    "twins",
    [
        [BasePath(3, "/a"), BasePath(3, "/b")],
        [BasePath(0, "/a"), BasePath(0, "/b/../a/")],
        [BasePath(0, "/a", "x"), BasePath(0, "/b", "x")],
    ],
)
def test_two_bases_with_the_same_id_path_or_name_raise(twins: list[BasePath]) -> None:
    with pytest.raises(InvalidInput, match="must differ"):
        number_bases(twins)


def test_target_bases_are_found_by_name_before_path() -> None:
    declared = [BasePath(2, "/b", "one"), BasePath(1, "/a"), BasePath(3, "s3://x/y", "/a")]
    assert choose_bases(declared) == choose_bases(declared, []) == (None,)
    assert choose_bases(declared, ["one", "/b", "s3://x/y/", "/a"]) == (2, 2, 3, 3)
    assert choose_bases(declared, target_all_bases=False) == (1, 2, 3)
    assert choose_bases(declared, target_all_bases=True) == (None, 1, 2, 3)
    assert choose_bases([], target_all_bases=True) == (None,)
    with pytest.raises(InvalidInput, match=r"'other' is none of the table's base paths: \['/a', 'one', '/a'\]"):
        choose_bases(declared, ["one", "other"])
    with pytest.raises(InvalidInput, match="cannot be given together"):
        choose_bases(declared, ["one"], True)
    with pytest.raises(InvalidInput, match="nothing to write to"):
        choose_bases([], target_all_bases=False)


def test_options_of_one_base_override_the_options_of_all() -> None:
    options = {"region": "r", "key": "k", **options_for_base(1, {"key": "one"}), **options_for_base(12, {"key": "2"})}
    assert options_of_base(options, 1) == {"region": "r", "key": "one"}
    assert options_of_base(options, 12) == {"region": "r", "key": "2"}
    assert options_of_base(options, 2) == {"region": "r", "key": "k"} and options_of_base(None, 1) == {}
    assert open_base("s3://bucket/root", {"region": "r", "base_1.anything": "at all"}).uri == "s3://bucket/root"


def test_initial_bases_for_an_existing_table_raise(dataset_uri: str, bases: list[DatasetBasePath]) -> None:
    lance_ops.write_dataset(rows(0, 10), dataset_uri, mode="append", initial_bases=bases)
    for mode in ("append", "overwrite"):
        with pytest.raises(InvalidInput, match="add_bases"):
            lance_ops.write_dataset(rows(0, 10), dataset_uri, mode=mode, initial_bases=bases)
    with pytest.raises(InvalidInput, match="is none of the base paths"):
        lance_ops.dataset(dataset_uri, base_store_params={"/elsewhere": {}})


def test_failed_write_leaves_no_file_in_a_base(dataset_uri: str, bases: list[DatasetBasePath], files: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows(0, 20).to_batches()
        raise ArithmeticError

    def failing_reader() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(SCHEMA, batches())

    def write(data: object, mode: str) -> None:
        initial = None if mode == "append" else bases
        lance_ops.write_dataset(
            data, dataset_uri, None, mode, max_rows_per_file=10, initial_bases=initial, target_bases=["files"]
        )

    for mode in ("create", "append"):
        with pytest.raises(ArithmeticError):
            write(failing_reader(), mode if mode == "create" else "overwrite")
        assert not list(files.rglob("*.lance"))
    write(rows(0, 10), "create")
    with pytest.raises(SchemaMismatch):
        write(pa.table({"other": [1]}), "append")
    with pytest.raises(ArithmeticError):
        write(failing_reader(), "append")
    assert len(list(files.rglob("*.lance"))) == 1


def test_certainly_failed_commit_leaves_no_file_in_a_base(
    dataset_uri: str, bases: list[DatasetBasePath], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_race(*_: object, **__: object) -> None:
        raise RetryableConflict("somebody else")

    lance_ops.write_dataset(rows(0, 10), dataset_uri, initial_bases=bases)
    monkeypatch.setattr(commits, "commit", lose_race)
    for mode in ("append", "overwrite"):
        with pytest.raises(RetryableConflict):
            lance_ops.write_dataset(rows(0, 10), dataset_uri, mode=mode, target_bases=["files"])
    assert not list(files.rglob("*.lance"))


@pytest.mark.parametrize("mode", ["create", "append"])
def test_write_with_bases_fails_on_a_table_created_meanwhile_without_them(
    dataset_uri: str, bases: list[DatasetBasePath], files: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    finish = fragment_writer.FragmentWriter.finish

    def create_other_table_first(writer: fragment_writer.FragmentWriter) -> list[Fragment]:
        monkeypatch.undo()
        lance_ops.write_dataset(rows(0, 1), dataset_uri)
        return finish(writer)

    monkeypatch.setattr(fragment_writer.FragmentWriter, "finish", create_other_table_first)
    with pytest.raises((DatasetAlreadyExists, InvalidInput), match=r"already|other base paths"):
        lance_ops.write_dataset(rows(0, 10), dataset_uri, mode=mode, initial_bases=bases, target_bases=["files"])
    assert lance_ops.dataset(dataset_uri).count_rows() == 1 and not list(files.rglob("*.lance"))
