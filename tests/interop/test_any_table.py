"""Tables of any columns, written by one library and read by the other: whole, in part, and row by row."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import lance_ops
from lance_ops.core.json.jsonb import decode, encode
from lance_ops.errors import UnsupportedFeature
from tests.file.exactness import exact
from tests.file.strategies import columns

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

_MISCOUNT = "Incorrect number of nulls for StructArray"
"""The reference's error for null structs in lists of lists, which its own files cause too."""


def _extensions(num_rows: int) -> st.SearchStrategy[pa.Array]:
    """Columns of extension types, with the given number of rows."""

    def of(arrow_type: Any, values: st.SearchStrategy[Any]) -> st.SearchStrategy[pa.Array]:
        rows = st.lists(st.none() | values, min_size=num_rows, max_size=num_rows)
        return rows.map(lambda made: arrow_type.wrap_array(pa.array(made, arrow_type.storage_type)))

    documents = st.recursive(st.none() | st.integers() | st.text('aé\\"', max_size=3), st.lists, max_leaves=4)
    return (
        of(pa.json_(), documents.map(json.dumps))
        | of(pa.uuid(), st.binary(min_size=16, max_size=16))
        | of(pa.bool8(), st.integers(0, 1))
        | of(pa.fixed_shape_tensor(pa.float32(), [2]), st.lists(st.just(0.5), min_size=2, max_size=2))
        | of(pa.opaque(pa.string(), "kind", "vendor"), st.text("ab", max_size=3))
    )


@st.composite
def tables(draw: st.DrawFn, version: str) -> pa.Table:
    arrays = draw(st.lists(columns(version, fixed_size_lists_of_structs=False), min_size=1, max_size=3))
    num_rows = min(map(len, arrays))
    arrays = [pa.concat_arrays([array.slice(0, num_rows), array.slice(0, 0)]) for array in arrays]
    arrays.append(draw(_extensions(num_rows)))
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = exact(table.to_pylist())
    return rows


def check(dataset: Any, table: pa.Table, offsets: list[int]) -> None:
    rows = rows_of(table)
    assert dataset.schema.equals(table.schema)
    found = dataset.to_table()
    found.validate(full=True)
    assert found.schema.equals(table.schema)
    assert rows_of(found) == rows
    name = table.column_names[-1]
    assert rows_of(dataset.to_table(columns=[name])) == [{name: row[name]} for row in rows]
    start, stop = len(rows) // 3, len(rows) // 2
    assert rows_of(dataset.to_table(limit=stop - start, offset=start)) == rows[start:stop]
    assert rows_of(dataset.take(offsets)) == [rows[offset] for offset in offsets]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@given(data=st.data())
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_table_is_read_by_both(version: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    table = data.draw(tables(version))
    expected = table.set_column(table.num_columns - 1, table.schema.field(-1), _normal(table.column(-1)))
    assume(table.num_rows > 0)
    offsets = sorted(data.draw(st.sets(st.integers(0, table.num_rows - 1), min_size=1, max_size=5)))
    folder = tmp_path_factory.mktemp("tables")
    for writer in (lance, lance_ops):
        uri = str(folder / writer.__name__)
        writer.write_dataset(table, uri, data_storage_version=version, max_rows_per_file=max(table.num_rows // 2, 1))
        check(lance_ops.dataset(uri), expected, offsets)
        try:
            check(lance.dataset(uri), expected, offsets)
        except pa.ArrowInvalid as error:
            assume(_MISCOUNT not in str(error))
            raise


def _normal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return JSON as it is spelled when it is read back."""
    if column.type != pa.json_():
        return column
    spelled = [None if text is None else decode(encode(text)) for text in column.to_pylist()]
    return pa.chunked_array([pa.json_().wrap_array(pa.array(spelled, pa.string()))])


REFUSED = [
    pa.array([[[{"x": 1}]]], pa.list_(pa.list_(pa.struct([("x", pa.int8())]), 1), 1)),
    pa.array([[["a"]]], pa.list_(pa.list_(pa.string()), 1)),
    pa.array([[[("a", 1)]]], pa.list_(pa.map_(pa.string(), pa.int8()), 1)),
    pa.array([[]], pa.list_(pa.int8(), 0)),
    pa.array([[1]], pa.list_view(pa.int8())),
    pa.array([[1]], pa.large_list_view(pa.int8())),
    pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    pa.array([1], pa.decimal32(5, 1)),
    pa.array([1], pa.decimal64(12, 1)),
    pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a"])),
    pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    pa.array([{}, None], pa.struct([])),
    pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([5], pa.date32())),
    pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([b"ab"], pa.binary(2))),
    pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([1], pa.decimal128(9, 1))),
    pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([[5]])),
    pa.FixedSizeListArray.from_arrays(pa.json_().wrap_array(pa.array(["1"])), 1),
]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("array", REFUSED, ids=lambda array: str(array.type))
def test_columns_that_the_reference_refuses_are_refused_by_name(array: pa.Array, version: str, tmp_path: Any) -> None:
    table = pa.table({"c": array})
    with pytest.raises(BaseException):  # noqa: B017, PT011 - it panics on some
        lance.write_dataset(table, str(tmp_path / "theirs"), data_storage_version=version)
    with pytest.raises(UnsupportedFeature):
        lance_ops.write_dataset(table, str(tmp_path / "ours"), data_storage_version=version)
    assert not (tmp_path / "ours").exists() or not list((tmp_path / "ours").glob("**/*.lance"))


@pytest.mark.parametrize(
    ("array", "metadata", "versions"),
    [
        (pa.array([["a", "b"]], pa.list_(pa.string(), 2)), None, ("0.1", "2.0", "2.1", "2.2")),
        (pa.array([[[[b"a"]]]], pa.list_(pa.list_(pa.list_(pa.large_binary(), 1), 1))), None, ("2.1", "2.2")),
        (pa.array([b"", None], pa.binary(0)), None, ("2.0", "2.1")),
        (pa.array(["a"], pa.large_string()), {"lance-encoding:blob": "true"}, ("2.0", "2.1", "2.2")),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())), None, ("2.0", "2.1")),
    ],
    ids=["lists of text", "lists of lists of bytes", "no bytes", "text as blobs", "maps"],
)
def test_features_that_a_version_s_readers_do_not_expect_are_not_written(
    array: pa.Array, metadata: dict[str, str] | None, versions: tuple[str, ...], dataset_uri: str
) -> None:
    table = pa.table([array], schema=pa.schema([pa.field("c", array.type, metadata=metadata)]))
    for version in versions:
        with pytest.raises(UnsupportedFeature, match=f"file version {version}"):
            lance_ops.write_dataset(table, dataset_uri, data_storage_version=version)
