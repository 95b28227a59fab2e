"""Files that the reference implementation wrote, read here."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lance_ops.file import FileReader
from lance_ops.store.local.local_store import LocalStore
from tests.file.exactness import exact
from tests.file.strategies import columns
from tests.file.streaming import as_streamed
from tests.interop.file_cases import CASES, LEGACY_CASES, Case

pytestmark = pytest.mark.interop


def write_reference(path: Path, table: pa.Table, version: str) -> None:
    from lance.file import LanceFileWriter

    with LanceFileWriter(str(path), table.schema, version=version) as writer:
        writer.write_batch(table)


def check_rows(reader: FileReader, rows: list[dict[str, Any]], offsets: list[int]) -> None:
    rows = exact(rows)
    found = reader.read()
    found.validate(full=True)
    assert exact(found.to_pylist()) == rows
    start, stop = len(rows) // 3, len(rows) // 2
    assert exact(reader.read(None, start, stop).to_pylist()) == rows[start:stop]
    taken = reader.take(None, offsets)
    taken.validate(full=True)
    assert exact(taken.to_pylist()) == [rows[offset] for offset in offsets]


def offsets_of(num_rows: int) -> list[int]:
    generator = np.random.default_rng(num_rows)
    return [int(offset) for offset in generator.integers(0, num_rows, min(num_rows, 15))]


@pytest.mark.parametrize(
    ("case", "version"),
    [pytest.param(case, version, id=f"{case.name} {version}") for case in CASES for version in case.encodings],
)
def test_pages_of_every_kind_that_the_reference_writes_are_read(case: Case, version: str, tmp_path: Path) -> None:
    table = case.table()
    write_reference(tmp_path / "file.lance", table, version)
    reader = FileReader(LocalStore(str(tmp_path)), "file.lance")
    met = {name for column in reader.describe() for page in column for name in page}
    assert case.encodings[version] <= met
    rows = table.to_pylist()
    check_rows(reader, rows, offsets_of(len(rows)))
    check_rows(FileReader(as_streamed(tmp_path / "file.lance"), "file.lance"), rows, offsets_of(len(rows)))


@pytest.mark.parametrize("case", LEGACY_CASES, ids=lambda case: case.name)
def test_legacy_pages_of_every_kind_that_the_reference_writes_are_read(case: Case, tmp_path: Path) -> None:
    import lance

    lance.write_dataset(case.table(), str(tmp_path / "d"), data_storage_version="legacy", max_rows_per_group=70)
    dataset = lance.dataset(str(tmp_path / "d"))  # opened anew: what was just written is remembered with its nulls
    (path,) = glob.glob(str(tmp_path / "d" / "data" / "*.lance"))
    reader = FileReader(LocalStore(str(Path(path).parent)), Path(path).name)
    met = {name for column in reader.describe() for page in column for name in page}
    assert case.encodings["0.1"] <= met
    rows = dataset.to_table().to_pylist()
    check_rows(reader, rows, offsets_of(len(rows)))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_column_is_read_whole_and_in_parts(
    version: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    column = data.draw(columns(version, fixed_size_lists_of_structs=False))
    column = pa.concat_arrays([column, column.slice(0, 0)])  # the reference panics on some slices
    table = pa.table({"c": column})
    path = tmp_path_factory.mktemp("files") / "file.lance"
    write_reference(path, table, version)
    reader = FileReader(LocalStore(str(path.parent)), path.name)
    rows = table.to_pylist()
    if rows:
        offsets = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10))
        check_rows(reader, rows, offsets)
    assert reader.read().schema.equals(table.schema)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_batch_over_several_dictionary_pages_with_nulls_is_read(version: str, tmp_path: Path) -> None:
    from lance.file import LanceFileWriter

    parts = [
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1] * 40, pa.int8()), pa.array([f"a{i}", f"b{i}"]))
        for i in range(4)
    ]
    schema = pa.schema([("c", parts[0].type)])
    with LanceFileWriter(str(tmp_path / "f"), schema, version=version, data_cache_bytes=10) as writer:
        for part in parts:
            writer.write_batch(pa.record_batch([part], schema=schema))
    reader = FileReader(LocalStore(str(tmp_path)), "f")
    assert len(reader.column(0).pages) == len(parts)
    found = pa.Table.from_batches(list(reader.iter_batches(batch_rows=77)))
    assert found.column("c").to_pylist() == [value for part in parts for value in part.to_pylist()]


@pytest.mark.parametrize(
    "folder",
    ["v0.8.0/migrated_from_v0.7.5", "v0.15.0/v2_with_files.lance", "v0.20.0/old_btree_bitmap_indices.lance"],
)
def test_files_of_old_releases_are_read(folder: str, historical: Path) -> None:
    import lance

    store = LocalStore(str(historical / folder / "data"))
    for fragment in lance.dataset(str(historical / folder)).get_fragments():
        (file,) = fragment.data_files()
        rows = FileReader(store, file.path).read().to_pylist()
        found = fragment.scanner(with_row_address=True).to_table()
        kept = [int(address) & 0xFFFFFFFF for address in found.column("_rowaddr").to_pylist()]
        assert [rows[offset] for offset in kept] == found.drop_columns(["_rowaddr"]).to_pylist()
