"""Files of releases before 0.14, which store text and bytes as lists of bytes, with a second column for the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
import pytest

from lance_ops.core.errors import CorruptFile
from lance_ops.core.schema import Schema
from lance_ops.core.versions import FileVersion
from lance_ops.file import FileReader, container_body
from lance_ops.file.writer import FileWriter
from lance_ops.pb import file_pb2
from lance_ops.store.memory import MemoryStore
from lance_ops.wire import schema_to_pb
from tests.file.streaming import StreamedStore

PATH = "data/old.lance"
WORDS = ["foo", None, "", "bär", "x" * 400, None, "🙂"] * 40
TABLE = pa.table(
    {
        "n": pa.array(range(280)),
        "s": pa.array(WORDS),
        "S": pa.array(WORDS, pa.large_string()),
        "b": pa.array([None if word is None else word.encode() for word in WORDS], pa.binary()),
        "B": pa.array([b"", None, b"\xff\x00", b"z"] * 70, pa.large_binary()),
        "all null": pa.nulls(280, pa.string()),
        "l": pa.array([["a", None], None, [], ["bc", ""]] * 70),
        "p": pa.array([{"t": word, "i": 1} for word in WORDS]),
        "ll": pa.array([[[b"a"], [], None], [[b"bc", None]]] * 140, pa.list_(pa.list_(pa.binary()))),
        "last": pa.array([1, None] * 140, pa.int8()),
    }
)
ITEM = pa.field("item", pa.uint8(), nullable=False)


def is_variable(kind: pa.DataType) -> bool:
    checks = (pt.is_string, pt.is_binary, pt.is_large_string, pt.is_large_binary)
    return any(check(kind) for check in checks)


def list_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with lists of bytes in place of text and bytes."""
    if is_variable(kind):
        return pa.large_list(ITEM) if str(kind).startswith("large") else pa.list_(ITEM)
    if pt.is_list(kind):
        return pa.list_(list_type(kind.value_type))
    if pt.is_struct(kind):
        return pa.struct([pa.field(child.name, list_type(child.type)) for child in kind])
    return kind


def written(monkeypatch: pytest.MonkeyPatch, table: pa.Table, page_bytes: int = 1500) -> MemoryStore:
    """Return a store with a file of lists of bytes whose schema says text and bytes."""
    as_lists = pa.schema([field.with_type(list_type(field.type)) for field in table.schema])
    rows = [{name: as_bytes(value) for name, value in row.items()} for row in table.to_pylist()]
    said = file_pb2.Schema(fields=schema_to_pb(Schema.from_arrow(table.schema)))
    monkeypatch.setattr(container_body, "_fields_to_pb", lambda _: said)
    store = MemoryStore()
    schema = Schema.from_arrow(as_lists)
    with FileWriter(store, PATH, schema, FileVersion.V2_0, page_bytes=page_bytes) as writer:
        writer.write_batch(pa.Table.from_pylist(rows, as_lists))
    return store


def as_bytes(value: Any) -> Any:
    if isinstance(value, list):
        return [as_bytes(item) for item in value]
    if isinstance(value, dict):
        return {key: as_bytes(item) for key, item in value.items()}
    return list(value.encode() if isinstance(value, str) else value) if isinstance(value, str | bytes) else value


def test_text_and_bytes_at_any_depth_are_read_whole_sliced_and_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    store = written(monkeypatch, TABLE)
    reader = FileReader(store, PATH)
    found = reader.read()
    found.validate(full=True)
    assert found.equals(TABLE)
    assert max(len(reader.column(index).pages) for index in range(reader.num_columns)) > 1
    assert reader.read(None, 3, 77).equals(TABLE.slice(3, 74))
    offsets = np.array([279, 0, 5, 5, 140])
    assert reader.take(None, offsets).to_pylist() == [TABLE.to_pylist()[at] for at in offsets]
    one = reader.schema.project(["p.t"])
    assert FileReader(StreamedStore(store), PATH).read(one).column(0).to_pylist() == [{"t": word} for word in WORDS]
    assert reader.encoded_bytes(reader.schema.project(["s"])) > sum(len(word or "") for word in WORDS)
    assert [kind for column in reader.describe() for kind in column[:1]][1][0] == "list"


def test_a_file_without_rows_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TABLE.slice(0, 0)
    assert FileReader(written(monkeypatch, table), PATH).read().equals(table)


def test_bytes_that_are_not_utf8_are_corrupt_as_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"b": pa.array([b"\xff\xfe", b"a"])})
    store = written(monkeypatch, table)
    reader = FileReader(store, PATH)
    assert reader.read().equals(table)
    text = Schema.from_arrow(pa.schema({"b": pa.string()}))
    with pytest.raises(CorruptFile, match=r"column 0 \(b\)"):
        reader.read(text)


def test_more_columns_than_either_form_has_are_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    wider = TABLE.append_column("more", pa.array([[1]] * 280))
    said = file_pb2.Schema(fields=schema_to_pb(Schema.from_arrow(TABLE.schema)))
    store = written(monkeypatch, wider)
    monkeypatch.setattr(container_body, "_fields_to_pb", lambda _: said)
    with FileWriter(store, "other", Schema.from_arrow(wider.schema), FileVersion.V2_0) as writer:
        writer.write_batch(wider)
    with pytest.raises(CorruptFile, match="other: schema: 17 columns where the schema has 15"):
        FileReader(store, "other")
