"""What files of one table have in common is read once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.schema import Dictionary, Schema
from lance_ops.encodings import Encoding, encoding_from_pb
from lance_ops.file.v2_1.layouts import mini_block_description
from lance_ops.file.v2_1.layouts.mini_block_description import MiniBlockDescription
from lance_ops.pb import encodings_v2_1_pb2 as pb
from lance_ops.wire import schema_from_pb, schema_to_pb

FILES = 9


@pytest.fixture
def uri(tmp_path: Path) -> str:
    rng = np.random.default_rng(4)
    rows = FILES * 200
    table = pa.table({"n": rng.normal(size=rows), "s": [f"text {number}" for number in rng.integers(0, 1 << 40, rows)]})
    return lance_ops.write_dataset(table, tmp_path / "table", max_rows_per_file=200).uri


def test_pages_with_equal_descriptions_share_one(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mini_block_description._shared.cache_clear()
    read: list[Encoding] = []

    def counted(described: pb.CompressiveEncoding) -> Encoding:
        read.append(encoding_from_pb(described))
        return read[-1]

    monkeypatch.setattr(mini_block_description, "encoding_from_pb", counted)
    dataset = lance_ops.dataset(uri)
    assert len(dataset.snapshot.fragments) == FILES
    assert dataset.to_table().num_rows == FILES * 200
    descriptions = {
        layout
        for fragment in dataset.snapshot.fragments
        for column in dataset.snapshot.open_data_file(fragment.files[0]).describe()
        for layout in column
    }
    assert {layout[0] for layout in descriptions} == {"mini_block"}
    assert len(read) < FILES, "not one description for each file"


def test_long_descriptions_are_not_kept(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mini_block_description, "_MAX_SHARED_BYTES", 0)
    mini_block_description._shared.cache_clear()
    made: list[MiniBlockDescription] = []
    describe = mini_block_description._describe
    monkeypatch.setattr(
        mini_block_description,
        "_describe",
        lambda *key: made.append(describe(*key)) or made[-1],  # type: ignore[func-returns-value]
    )
    # A read with a limit opens files one by one; a whole scan asks once for each description in a group of files.
    assert lance_ops.dataset(uri).to_table(limit=FILES * 200).num_rows == FILES * 200
    assert len(made) >= 2 * FILES
    assert mini_block_description._shared.cache_info().currsize == 0


def test_equal_fields_of_decoded_schemas_are_one_object() -> None:
    rows = pa.table({"n": [1], "s": [{"a": 1, "b": "x"}], "d": pa.array(["x"]).dictionary_encode()})
    stated = Schema.from_arrow(rows.schema)
    stated = Schema((*stated.fields[:2], replace(stated.fields[2], dictionary=Dictionary(64, 10))))
    first, second = (schema_from_pb(schema_to_pb(stated), {"number": number}, "") for number in (b"1", b"2"))
    assert first.fields == second.fields
    assert [one is other for one, other in zip(first.fields, second.fields, strict=True)] == [True, True, False]
    projected = first.project(["s", "n"])
    assert projected.fields[0] is first.fields[1]
    assert projected.fields[1] is first.fields[0]
    assert first.project(["s.a"]).fields[0].children == first.fields[1].children[:1]
