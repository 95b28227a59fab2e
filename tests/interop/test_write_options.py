"""Write options that control how files are made, compared with the reference's."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceFragment
from lance_ops.errors import InvalidInput
from lance_ops.file import LanceFileReader
from lance_ops.fragment import write_fragments
from lance_ops.progress import FragmentWriteProgress, NoopFragmentWriteProgress
from tests.checksums import blob_bytes

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

ROWS = pa.table({"a": np.random.default_rng(1).random(60_000), "b": np.arange(60_000)})


def pages(uri: str) -> list[int]:
    """Return the number of pages of each column of the only file; check that both libraries read its rows."""
    (file,) = Path(uri, "data").glob("*.lance")
    assert lance.dataset(uri).to_table().equals(ROWS) and lance_ops.dataset(uri).to_table().equals(ROWS)
    return [len(column.pages) for column in LanceFileReader(str(file)).metadata().columns]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, 1),
        ({"max_page_bytes": 240_000}, 2),
        ({"data_cache_bytes": 240_000}, 4),
        ({"data_cache_bytes": 480_000, "max_page_bytes": 60_000}, 8),
    ],
    ids=str,
)
def test_max_page_bytes_limits_the_page_size(tmp_path: Path, options: dict[str, Any], wanted: int) -> None:
    whole = lance_ops.write_dataset(ROWS, tmp_path / "whole", **options)
    assert pages(whole.uri)[0] == wanted
    apart = str(tmp_path / "apart")
    fragments = write_fragments(ROWS, apart, **options)
    assert isinstance(fragments, list)
    lance_ops.LanceDataset.commit(apart, lance_ops.LanceOperation.Overwrite(ROWS.schema, fragments))
    assert pages(apart) == pages(whole.uri)


class Notes(FragmentWriteProgress):
    def __init__(self) -> None:
        self.taken: list[tuple[str, int, int]] = []

    def begin(self, fragment: Any, **kwargs: Any) -> None:
        self.taken.append(("begin", len(fragment.files), 0))

    def complete(self, fragment: Any, **kwargs: Any) -> None:
        self.taken.append(("complete", len(fragment.files), fragment.num_rows))


class TheirNotes(import_module("lance.progress").FragmentWriteProgress):  # type: ignore[misc]  # pylance has no types
    begin = Notes.begin
    complete = Notes.complete


def test_progress_reports_each_fragment_started_and_written(tmp_path: Path) -> None:
    ours, theirs = Notes(), TheirNotes()
    theirs.taken = []
    rows = ROWS.slice(0, 25)
    lance_ops.write_dataset(rows, tmp_path / "ours", progress=ours, max_rows_per_file=10)
    lance.write_dataset(rows, str(tmp_path / "theirs"), progress=theirs, max_rows_per_file=10)
    assert ours.taken == [step for size in (10, 10, 5) for step in (("begin", 1, 0), ("complete", 1, size))]
    # the reference names no file here when it begins, and does not report that the last one is written
    assert [(step, rows) for step, _, rows in ours.taken[: len(theirs.taken)]] == [(a, c) for a, _, c in theirs.taken]
    for write in (write_fragments, lambda *a, **k: LanceFragment.create(a[1], a[0], **k)):
        apart = Notes()
        write(rows, str(tmp_path / "ours"), progress=apart)
        assert apart.taken == [("begin", 1, 0), ("complete", 1, 25)]
    lance_ops.write_dataset(rows, tmp_path / "noop", progress=NoopFragmentWriteProgress())


class Weary(Notes):
    def complete(self, fragment: Any, **kwargs: Any) -> None:
        raise RuntimeError("enough")


def test_a_failing_progress_callback_aborts_the_write_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="enough"):
        lance_ops.write_dataset(ROWS, tmp_path / "table", progress=Weary())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("threshold", [None, 0, 200_000])
def test_packed_blob_files_have_the_requested_size(tmp_path: Path, threshold: int | None) -> None:
    schema = pa.schema([lance.blob_field("b", pack_file_size_threshold=300_000)])
    blobs = pa.table([lance.blob_array([b"x" * 100_000] * 6)], schema=schema)
    sizes = []
    for library in (lance_ops, lance):
        place = tmp_path / library.__name__
        library.write_dataset(blobs, str(place), data_storage_version="2.2", blob_pack_file_size_threshold=threshold)
        sizes.append(sorted(blob_bytes(path) for path in place.rglob("*.blob")))
        assert lance_ops.dataset(place).read_blobs("b", indices=[5])[0][1] == b"x" * 100_000
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("legacy", [True, False])
def test_the_old_name_of_a_file_version_is_accepted(tmp_path: Path, legacy: bool) -> None:
    versions = []
    for library in (lance_ops, lance):
        with pytest.warns(DeprecationWarning, match="use data_storage_version instead"):
            made = library.write_dataset(ROWS, str(tmp_path / library.__name__), use_legacy_format=legacy)
        versions.append(made.data_storage_version)
    assert versions[0] == versions[1] == ("0.1" if legacy else "2.2")


def test_creating_a_fragment_checks_its_schema_for_append_only(tmp_path: Path) -> None:
    uri = lance_ops.write_dataset(ROWS, tmp_path / "table").uri
    other = pa.table({"z": [1]})
    reference = import_module("lance.fragment").LanceFragment
    for create in (LanceFragment.create, reference.create):
        for mode in ("create", "overwrite"):
            assert create(uri, other, mode=mode).physical_rows == 1
        with pytest.raises((ValueError, OSError), match=r"(?i)different schema|column"):
            create(uri, other, mode="append")
        with pytest.raises(ValueError, match="mode"):
            create(uri, other, mode="sideways")


@pytest.mark.parametrize(
    "options",
    [{"max_page_bytes": 0}, {"max_page_bytes": -1}, {"data_cache_bytes": -1}, {"blob_pack_file_size_threshold": -1}],
    ids=str,
)
def test_invalid_sizes_are_refused_before_anything_is_written(tmp_path: Path, options: dict[str, Any]) -> None:
    for library in (lance_ops, lance):
        with pytest.raises((ValueError, OSError, OverflowError)):
            library.write_dataset(ROWS, str(tmp_path / library.__name__), **options)
    assert not (tmp_path / "lance_ops").exists()


def test_an_invalid_progress_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="progress must be"):
        lance_ops.write_dataset(ROWS, tmp_path / "table", progress=3)  # type: ignore[arg-type]  # what is refused
    assert not (tmp_path / "table").exists()


def test_read_parameters_are_accepted(tmp_path: Path) -> None:
    uri = lance_ops.write_dataset(ROWS, tmp_path / "table").uri
    params = {"cache_repetition_index": False, "validate_on_decode": True}
    for library in (lance_ops, lance):
        assert library.dataset(uri, read_params=params).to_table().equals(ROWS)
