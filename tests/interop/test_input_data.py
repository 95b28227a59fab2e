"""Every verb that takes data takes every form of it that the reference takes, and writes the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, SchemaMismatch, WrongType
from lance_ops.fragment import write_fragments

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
pytestmark = pytest.mark.interop

ROWS = pa.table({"id": [1, 2, 3], "x": [0.5, None, 2.5]})
OLD = pa.table({"id": pa.array([0, 1, 2])})


class Stream:
    """Data of a library that knows nothing of this one: it exports an Arrow stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return ROWS.__arrow_c_stream__(requested_schema)


class Array:
    """Data of a library that exports one Arrow array of structs."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        return ROWS.to_batches()[0].__arrow_c_array__(requested_schema)


class Row(pydantic.BaseModel):  # type: ignore[misc, name-defined]  # found by importorskip
    id: int | None
    x: float | None


def batches() -> Iterator[pa.RecordBatch]:
    yield from ROWS.to_batches(max_chunksize=2)


def stored(tmp_path: Path) -> str:
    uri = str(tmp_path / "source")
    if not Path(uri).exists():
        lance.write_dataset(ROWS, uri)
        pq.write_table(ROWS, tmp_path / "source.parquet")
    return uri


Form = Callable[[Path], tuple[Any, pa.Schema | None]]

FORMS: dict[str, Form] = {
    "a table": lambda _: (ROWS, None),
    "a batch": lambda _: (ROWS.to_batches()[0], None),
    "a reader": lambda _: (ROWS.to_reader(), None),
    "a generator": lambda _: (batches(), ROWS.schema),
    "a generator to cast": lambda _: (
        (pa.record_batch({"id": pa.array([1, 2, 3], pa.int8()), "x": [0.5, None, 2.5]}) for _ in range(1)),
        ROWS.schema,
    ),
    "a list of batches": lambda _: (list(batches()), ROWS.schema),
    "rows": lambda _: (ROWS.to_pylist(), None),
    "rows with a schema": lambda _: (ROWS.to_pylist(), ROWS.schema),
    "columns": lambda _: (ROWS.to_pydict(), None),
    "columns of arrays": lambda _: ({name: ROWS[name].combine_chunks() for name in ROWS.schema.names}, None),
    "models of pydantic": lambda _: ([Row(**row) for row in ROWS.to_pylist()], None),
    "models of pydantic with a schema": lambda _: ([Row(**row) for row in ROWS.to_pylist()], ROWS.schema),
    "a pandas frame": lambda _: (pd.DataFrame({"id": [1, 2, 3], "x": [0.5, None, 2.5]}), None),
    "a pandas frame with a schema": lambda _: (pd.DataFrame({"id": [1, 2, 3], "x": [0.5, None, 2.5]}), ROWS.schema),
    "a Polars frame": lambda _: (pl.from_arrow(ROWS), None),
    "a pyarrow dataset": lambda path: (pads.dataset(stored(path) + ".parquet"), None),
    "a pyarrow scanner": lambda path: (pads.dataset(stored(path) + ".parquet").scanner(), None),
    "the reference's dataset": lambda path: (lance.dataset(stored(path)), None),
    "the reference's scanner": lambda path: (lance.dataset(stored(path)).scanner(columns=["id", "x"]), None),
}

ONLY_HERE: dict[str, Form] = {
    "our dataset": lambda path: (lance_ops.dataset(stored(path)), None),
    "our scanner": lambda path: (lance_ops.dataset(stored(path)).scanner(columns=["id", "x"]), None),
    "an Arrow stream": lambda _: (Stream(), None),
    "an Arrow array": lambda _: (Array(), None),
    "columns of chunked arrays": lambda _: ({name: ROWS[name] for name in ROWS.schema.names}, None),
    "a list of tables": lambda _: ([ROWS.slice(0, 1), ROWS.slice(1)], ROWS.schema),
    "a pandas frame with a named index": lambda _: (
        pd.DataFrame({"id": [1, 2, 3], "x": [0.5, None, 2.5]}).set_index("x"),
        None,
    ),
    "a shuffled pandas frame": lambda _: (
        pd.DataFrame({"id": [3, 1, 2], "x": [2.5, 0.5, None]}).sort_values("id"),
        None,
    ),
}
"""Forms that the reference refuses, or from which it loses or adds something."""


def insert(library: Any, uri: str, data: Any, schema: pa.Schema | None) -> None:
    library.write_dataset(ROWS.slice(0, 0), uri).insert(data, schema=schema)


def merge_insert(library: Any, uri: str, data: Any, schema: pa.Schema | None) -> None:
    dataset = library.write_dataset(ROWS.slice(1), uri)
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(data, schema=schema)


def create_fragment(library: Any, uri: str, data: Any, schema: pa.Schema | None) -> None:
    fragment = library.LanceFragment.create(uri, data, schema=schema)
    operation = library.LanceOperation.Overwrite(ROWS.schema, [fragment])
    library.LanceDataset.commit(uri, operation)


def write_uncommitted(library: Any, uri: str, data: Any, schema: pa.Schema | None) -> None:
    write = write_fragments if library is lance_ops else lance.fragment.write_fragments
    library.LanceDataset.commit(uri, write(data, uri, schema, mode="create", return_transaction=True))


def merge(library: Any, uri: str, data: Any, schema: pa.Schema | None) -> None:
    library.write_dataset(OLD, uri).merge(data, "id", schema=schema)


def add_columns(library: Any, uri: str, data: Any, schema: pa.Schema | None) -> None:
    library.write_dataset(pa.table({"old": range(3)}), uri).add_columns(data, reader_schema=schema)


def merge_columns(library: Any, uri: str, data: Any, schema: pa.Schema | None) -> None:
    dataset = library.write_dataset(pa.table({"old": range(3)}), uri)
    fragment, changed = dataset.get_fragments()[0].merge_columns(data, reader_schema=schema)
    library.LanceDataset.commit(uri, library.LanceOperation.Merge([fragment], changed), read_version=1)


VERBS: dict[str, Callable[[Any, str, Any, pa.Schema | None], Any]] = {
    "write_dataset": lambda library, uri, data, schema: library.write_dataset(data, uri, schema),
    "insert": insert,
    "merge_insert": merge_insert,
    "LanceFragment.create": create_fragment,
    "write_fragments": write_uncommitted,
    "merge": merge,
    "add_columns": add_columns,
    "merge_columns": merge_columns,
}

KEEPS_METADATA = {"write_dataset", "insert", "merge_insert", "write_fragments"}
"""Verbs after which the table's metadata is compared. New columns bring theirs only in the reference."""

TAKES_EXPRESSIONS = {"add_columns", "merge_columns"}
"""Verbs to which a dictionary is one of SQL expressions."""


def pairs(forms: dict[str, Form]) -> list[tuple[str, str]]:
    """Every verb with every form that is data to it."""
    return [
        (verb, form)
        for verb in VERBS
        for form in forms
        if not (verb in TAKES_EXPRESSIONS and form.startswith("columns"))
    ]


@pytest.mark.parametrize(("verb", "form"), pairs(FORMS))
def test_both_libraries_write_the_same_rows_of_the_same_data(tmp_path: Path, verb: str, form: str) -> None:
    found = []
    for library in (lance_ops, lance):
        uri = str(tmp_path / library.__name__)
        data, schema = FORMS[form](tmp_path)
        VERBS[verb](library, uri, data, schema)
        dataset = lance.dataset(uri)
        metadata = dataset.schema.metadata if verb in KEEPS_METADATA else None
        found.append((dataset.schema, metadata, dataset.to_table().sort_by(dataset.schema.names[0])))
    ours, theirs = found
    assert ours[2].num_rows == 3
    assert ours == theirs


@pytest.mark.parametrize(("verb", "form"), pairs(ONLY_HERE))
def test_forms_that_only_this_library_takes_give_the_rows_of_a_table(tmp_path: Path, verb: str, form: str) -> None:
    found: list[pa.Table] = []
    for given in (ONLY_HERE[form](tmp_path), (ROWS, None)):
        uri = str(tmp_path / f"table{len(found)}")
        VERBS[verb](lance_ops, uri, *given)
        dataset = lance_ops.dataset(uri)
        found.append(dataset.to_table().sort_by(dataset.schema.names[0]))
    assert found[0].equals(found[1]) and found[0].num_rows == 3


def test_a_key_that_only_later_rows_have_becomes_a_column(tmp_path: Path) -> None:
    rows = [{"id": 1}, {"id": 2, "s": "x"}]
    assert lance_ops.write_dataset(rows, tmp_path / "ours").to_table().to_pylist() == [{"id": 1, "s": None}, rows[1]]
    assert lance.write_dataset(rows, str(tmp_path / "theirs")).schema.names == ["id"]


def test_a_schema_casts_a_table_too(tmp_path: Path) -> None:
    wanted = pa.schema([pa.field("x", pa.float32()), pa.field("id", pa.int8(), nullable=False)], {"k": "v"})
    for data in (ROWS, ROWS.to_reader(), pl.from_arrow(ROWS), Stream(), Array()):
        dataset = lance_ops.write_dataset(data, tmp_path / f"{type(data).__name__}", schema=wanted)
        assert dataset.schema == wanted and dataset.schema.metadata == {b"k": b"v"}
        assert dataset.to_table().to_pydict() == {"x": [0.5, None, 2.5], "id": [1, 2, 3]}


REFUSED: dict[str, tuple[Callable[[], Any], pa.Schema | None, type[InvalidInput], str]] = {
    "a number": (lambda: 3, None, WrongType, "int"),
    "nothing": (lambda: None, None, WrongType, "NoneType"),
    "text": (lambda: "abc", ROWS.schema, WrongType, "str"),
    "a series": (lambda: pd.Series([1]), None, SchemaMismatch, "Series"),
    "a row among batches": (lambda: ({"id": 1} for _ in range(1)), ROWS.schema, WrongType, "dict"),
    "a number among rows": (lambda: [{"id": 1}, 3], None, WrongType, "row 1"),
    "a generator without a schema": (batches, None, InvalidInput, "schema="),
    "an empty list without a schema": (list, None, InvalidInput, "schema="),
    "rows of two types": (lambda: [{"id": 1}, {"id": "x"}], None, SchemaMismatch, "int64"),
    "rows with a key too many": (lambda: [{"id": 1, "t": 2}], ROWS.schema, SchemaMismatch, "'t'"),
    "columns of two lengths": (lambda: {"id": [1, 2], "x": [0.5]}, None, SchemaMismatch, "length"),
    "columns that the schema lacks": (lambda: ROWS, ROWS.schema.remove(1), SchemaMismatch, "has id"),
    "batches that do not fit": (batches, pa.schema([("id", "int64"), ("x", "int8")]), SchemaMismatch, "'x'"),
    "nulls where there may be none": (
        batches,
        pa.schema([("id", "int64"), pa.field("x", "float64", nullable=False)]),
        SchemaMismatch,
        "'x'",
    ),
}


def test_a_lazy_frame_is_data_for_this_library_alone(tmp_path: Path) -> None:
    frame = pl.LazyFrame({"id": [1, 2]})
    assert lance_ops.write_dataset(frame, tmp_path / "ours").to_table().to_pydict() == {"id": [1, 2]}
    with pytest.raises((TypeError, ValueError, OSError)):
        lance.write_dataset(frame, str(tmp_path / "theirs"))


@pytest.mark.parametrize("name", REFUSED)
def test_data_that_cannot_be_written_is_refused_by_both_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    data, schema, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        lance_ops.write_dataset(data(), tmp_path / "ours", schema=schema)
    assert not (tmp_path / "ours").exists()
    if name not in ("rows with a key too many", "columns that the schema lacks"):  # which the reference drops
        with pytest.raises((TypeError, ValueError, OSError)):
            lance.write_dataset(data(), str(tmp_path / "theirs"), schema=schema)
