"""Numbers of type bfloat16 are the reference's bits, and travel through tables."""

from __future__ import annotations

import math
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import lance_ops
from lance_ops import arrow
from lance_ops.errors import InvalidInput, MissingPackage

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

REFERENCE = import_module("lance.arrow")
VALUES = [
    *(
        0.0,
        -0.0,
        1.0,
        1.1,
        -1.1,
        1.00390625,
        1.01171875,
        3.00390625,
        1e-45,
        1e-40,
        3.3895e38,
        3.4e38,
        1e300,
        123456.789,
    ),
    *(math.inf, -math.inf, math.nan, -math.nan),
    *np.random.default_rng(0).standard_normal(2000).tolist(),
    *(np.random.default_rng(1).integers(0, 1 << 32, 2000).astype(np.uint32).view(np.float32).tolist()),
]


def bits(array: pa.Array) -> list[bytes | None]:
    """Return what is stored; every NaN counts as the same."""
    return [
        None if each is None else b"nan" if float(str(number)) != float(str(number)) else each
        for each, number in zip(array.storage.to_pylist(), array.to_pylist(), strict=True)
    ]


def test_numbers_are_rounded_to_the_reference_s_bits() -> None:
    values = [*VALUES, None]
    mine, other = arrow.bfloat16_array(values), REFERENCE.bfloat16_array(values)
    assert bits(mine) == bits(other)
    shown = [
        [np.float32("nan" if each is None else str(each)) for each in array.to_pylist()] for array in (mine, other)
    ]
    np.testing.assert_array_equal(shown[0], shown[1])
    assert mine.type.extension_name == other.type.extension_name
    assert mine.null_count == 1


def test_a_number_compares_and_prints_as_in_the_reference() -> None:
    for library in (arrow, REFERENCE):
        one = library.BFloat16(1.5)
        assert one == library.BFloat16(1.5) != library.BFloat16(2)
        two = library.BFloat16(2)
        assert [one < two, one <= one, two > one, two >= two] == [True] * 4
        assert [two < one, two <= one, one > two, one >= two, one < one, one > one] == [False] * 6
        nan = library.BFloat16(math.nan)
        assert not (nan >= nan or nan <= nan)
        with pytest.raises(TypeError):
            _ = one >= 1.5
        assert one != 1.5
        assert one.as_float() == 1.5
        assert library.BFloat16.from_bytes(b"\x80?") == library.BFloat16(1)
        assert library.BFloat16(math.nan) != library.BFloat16(math.nan)
        with pytest.raises(ValueError, match="2 bytes"):
            library.BFloat16.from_bytes(b"1")
        with pytest.raises(TypeError):
            hash(one)


def test_a_value_of_an_array_compares_as_in_the_reference() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes, numpy's bfloat16, is not installed")
    for library in (arrow, REFERENCE):
        one, two, null = library.bfloat16_array([1.5, 2.0, None])
        assert one == library.BFloat16(1.5) != two
        assert one == library.bfloat16_array([1.5])[0] != two
        assert one == ml_dtypes.bfloat16(1.5) != two
        assert one != 1.5
        assert one != null
        with pytest.raises(TypeError):
            hash(one)


@pytest.mark.parametrize("length", [0, 3, 21, 50])
def test_an_array_prints_as_in_the_reference(length: int) -> None:
    values = [None, *range(length - 1)] if length else []
    mine, other = arrow.bfloat16_array(values), REFERENCE.bfloat16_array(values)
    if length != 21:  # the reference shows 21 values whole
        assert str(mine) == str(other)
    assert "BFloat16Array" in repr(mine)


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("name", ["bfloat16", "bf16", arrow.BFloat16Type()])
def test_floats_are_cast_there_and_back(kind: pa.DataType, name: str | pa.DataType) -> None:
    values = pa.array([1.5, None, -2.25, 0.0], kind)
    there = arrow.cast(values, name)
    assert there.type.extension_name == "lance.bfloat16"
    assert arrow.cast(there, kind).equals(values)
    assert arrow.cast(there.slice(2), kind).equals(values.slice(2))
    assert arrow.cast(there, name).equals(there)


def test_lists_of_one_size_are_cast_item_by_item() -> None:
    floats = pa.array([[1.5, 2.0], None, [3.0, 4.25]], pa.list_(pa.float32(), 2))
    there = arrow.cast(floats, pa.list_(arrow.BFloat16Type(), 2))
    assert arrow.cast(there, pa.list_(pa.float32(), 2)).to_pylist() == floats.to_pylist()
    assert arrow.cast(there[2:], pa.list_(pa.float64(), 2)).to_pylist() == [[3.0, 4.25]]
    with pytest.raises(pa.ArrowTypeError):
        arrow.cast(floats, pa.list_(pa.float16(), 3))


def test_other_casts_are_pyarrow_s() -> None:
    assert arrow.cast(pa.array([1, 2]), "int8").type == pa.int8()
    with pytest.raises(pa.ArrowInvalid):
        arrow.cast(pa.array([300]), pa.int8())


def test_numpy_gets_numbers_by_ml_dtypes() -> None:
    with pytest.raises(InvalidInput, match="1 nulls"):
        arrow.bfloat16_array([1.0, None]).to_numpy()
    with pytest.raises(InvalidInput, match="float32"):
        arrow.BFloat16Array.from_numpy(np.zeros(1, np.float32))
    try:
        import_module("ml_dtypes")
    except ImportError:
        with pytest.raises(MissingPackage, match="ml_dtypes"):
            arrow.bfloat16_array([1.0]).to_numpy()
    else:
        array = arrow.bfloat16_array([1.0, 2.5])
        assert arrow.BFloat16Array.from_numpy(array.to_numpy()).equals(array)


def test_tables_of_either_library_hold_the_same_numbers(tmp_path: Path) -> None:
    values = [1.5, None, -3.0]
    lance_ops.write_dataset(pa.table({"b": arrow.bfloat16_array(values)}), tmp_path / "ours")
    lance.write_dataset(pa.table({"b": REFERENCE.bfloat16_array(values)}), tmp_path / "theirs")
    for name in ("ours", "theirs"):
        for library in (lance_ops, lance):
            column = library.dataset(str(tmp_path / name)).to_table()["b"]
            assert [str(each) for each in column.to_pylist()] == ["1.5", "None", "-3"]


def vectors(library: ModuleType) -> pa.Table:
    """Return columns of bfloat16 in fixed-size lists, alone, nested, with nulls and as tensors."""
    items = library.bfloat16_array([1.5, -2.0, 3.25, 0.0, None, 1e30, 7.0, 8.0])
    pairs = pa.FixedSizeListArray.from_arrays(items, 2)
    shape = pa.fixed_shape_tensor(items.type, [2])
    return pa.table(
        {
            "pairs": pairs,
            "gaps": pa.FixedSizeListArray.from_arrays(items, 2, mask=pa.array([False, True, False, True])),
            "tensors": pa.ExtensionArray.from_storage(shape, pairs),
            "nested": pa.FixedSizeListArray.from_arrays(
                pa.FixedSizeListArray.from_arrays(library.bfloat16_array([float(each) for each in range(16)]), 2), 2
            ),
            "number": [0, 1, 2, 3],
        }
    )


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_vectors_of_either_library_hold_the_same_numbers(tmp_path: Path, writer: str, version: str) -> None:
    given, library = (vectors(arrow), lance_ops) if writer == "ours" else (vectors(REFERENCE), lance)
    library.write_dataset(given, tmp_path / "t", data_storage_version=version)
    ours, theirs = (each.dataset(str(tmp_path / "t")) for each in (lance_ops, lance))
    expected = vectors(REFERENCE)
    assert theirs.to_table() == ours.to_table() == expected
    assert ours.schema == theirs.schema == expected.schema
    types = [(field.name(), field.id(), field.to_arrow().type) for field in ours.lance_schema.fields()]
    assert types == [(field.name(), field.id(), field.to_arrow().type) for field in theirs.lance_schema.fields()]

    lance_ops.write_dataset(ours.to_table(), tmp_path / "t", mode="append")
    ours = lance_ops.dataset(tmp_path / "t")
    ours.delete("number = 1")
    ours.optimize.compact_files()
    kept = pa.concat_tables([expected.take([0, 2, 3])] * 2).to_pylist()
    assert len(ours.get_fragments()) == 1
    assert ours.to_table().to_pylist() == lance.dataset(str(tmp_path / "t")).to_table().to_pylist() == kept
    assert ours.take([2, 0], columns=["pairs"]).to_pylist() == [{"pairs": kept[at]["pairs"]} for at in (2, 0)]


def test_columns_are_read_as_numbers_once_the_type_is_registered(tmp_path: Path) -> None:
    code = f"""
import pyarrow as pa, lance_ops, lance_ops.arrow as arrow
pa.register_extension_type(arrow.BFloat16Type())
ds = lance_ops.write_dataset(pa.table({{"b": arrow.bfloat16_array([1.5, None])}}), {str(tmp_path / "t")!r})
column = lance_ops.dataset({str(tmp_path / "t")!r}).to_table()["b"]
assert isinstance(column.chunk(0), arrow.BFloat16Array), column.type
print(column.to_pylist())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "[1.5, None]\n", run.stderr


def test_an_array_of_pandas_answers_as_the_reference_s() -> None:
    values = [1.5, None, -3.0, 0.25]
    ours = arrow.PandasBFloat16Array(arrow.bfloat16_array(values))
    theirs = REFERENCE.PandasBFloat16Array(REFERENCE.bfloat16_array(values))
    assert str(ours.dtype) == str(theirs.dtype) == "lance.bfloat16"
    assert len(ours) == len(theirs) == 4
    assert ours.isna().tolist() == theirs.isna().tolist() == [False, True, False, False]
    for each in (ours, theirs):
        assert [str(value) for value in each] == ["1.5", "None", "-3", "0.25"]
        assert str(each[2]) == "-3"
        assert [str(value) for value in each[:2]] == ["1.5", "None"]
        assert [str(value) for value in each[~each.isna()]] == ["1.5", "-3", "0.25"]


def test_a_series_of_pandas_is_taken_apart_and_joined() -> None:
    series = pd.Series(arrow.PandasBFloat16Array(arrow.bfloat16_array([1.5, None, -3.0])))
    assert [str(value) for value in series.iloc[[2, 0, -1]]] == ["-3", "1.5", "-3"]
    assert [str(value) for value in pd.concat([series, series[:1]])] == ["1.5", "None", "-3", "1.5"]
    assert [str(value) for value in series.reindex([0, 7])] == ["1.5", "None"]
    assert (series == series).tolist() == [True, False, True]
    np.testing.assert_array_equal(series.to_numpy(np.float32), np.array([1.5, np.nan, -3.0], np.float32))
    with pytest.raises(IndexError):
        series.array.take([5], allow_fill=True)


def test_data_frames_and_tables_are_converted_there_and_back(tmp_path: Path) -> None:
    table = pa.table({"b": pa.chunked_array([arrow.bfloat16_array([1.5, None]), arrow.bfloat16_array([2.0])])})
    frame = table.to_pandas()
    assert isinstance(frame["b"].array, arrow.PandasBFloat16Array)
    again = pa.Table.from_pandas(frame)
    assert again["b"].combine_chunks().storage.equals(table["b"].combine_chunks().storage)
    made = lance_ops.write_dataset(frame, tmp_path / "t").to_table()["b"]
    assert [str(each) for each in made.to_pylist()] == ["1.5", "None", "2"]


def test_a_series_is_made_by_the_name_of_its_type() -> None:
    code = """
import pandas as pd
from lance_ops.arrow import BFloat16, PandasBFloat16Array
series = pd.Series([1.5, None, BFloat16(2.0)], dtype="lance.bfloat16")
assert isinstance(series.array, PandasBFloat16Array)
print(series.tolist())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "[1.5, None, 2]\n", run.stderr
