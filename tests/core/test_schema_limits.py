"""The limits of schemas: every verb that takes a schema or a name refuses what is beyond them, and leaves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceOperation
from lance_ops.core.schema import MAX_DEPTH, NO_PARENT, ROW_COLUMN_NAMES, Schema, check_column_name, depth_of
from lance_ops.core.schema.field import field_from_arrow
from lance_ops.errors import InvalidInput, SchemaMismatch, UnsupportedFeature
from lance_ops.reading.row_columns import ROW_COLUMNS
from lance_ops.schema import LanceSchema
from lance_ops.table import Manifest, decode_manifest, encode_manifest
from lance_ops.table.manifest import invariants
from tests.table.samples import manifest

REFUSED_NAMES = ["", ".", "a.b", "a`b", "a\0b", *sorted(ROW_COLUMN_NAMES)]
ALLOWED_NAMES = [" ", "'", '"', "*", "ä", "🙂", "_distance", "_RowId", "select", "x" * 300, "a\nb"]
WRAPPERS: dict[str, tuple[Callable[[pa.DataType], pa.DataType], int]] = {
    "list": (pa.list_, 1),
    "large list": (pa.large_list, 1),
    "struct": (lambda kind: pa.struct([("f", kind)]), 1),
    "fixed-size list": (lambda kind: pa.list_(kind, 1), 1),
    "map": (lambda kind: pa.map_(pa.int8(), kind), 2),
}


def nested(kind: str, levels: int) -> pa.DataType:
    arrow_type, (wrap, each) = pa.int32(), WRAPPERS[kind]
    for _ in range(levels // each):
        arrow_type = wrap(arrow_type)
    return arrow_type


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", REFUSED_NAMES)
def test_no_verb_gives_a_column_a_name_beyond_the_limits(tmp_path: Path, name: str) -> None:
    uri, named = tmp_path / "t", pa.table({name: [1], "z": [2]})
    with pytest.raises(InvalidInput, match="choose another name"):
        lance_ops.write_dataset(named, tmp_path / "new")
    dataset = lance_ops.write_dataset(pa.table({"a": [1], "z": [2]}), uri)
    before = files(tmp_path)
    operation = LanceOperation.Overwrite(named.schema, [])
    project = LanceOperation.Project(LanceSchema.from_pyarrow(named.schema))
    verbs: list[Callable[[], object]] = [
        lambda: lance_ops.write_dataset(named, uri, mode="overwrite"),
        lambda: dataset.alter_columns({"path": "a", "name": name}),
        lambda: dataset.add_columns(pa.field(name, pa.int32())),
        lambda: dataset.add_columns({name: "z + 1"}),
        lambda: dataset.add_columns(pa.table({name: [1]})),
        lambda: dataset.merge(named, "z"),
        lambda: lance_ops.LanceDataset.commit(uri, operation, read_version=1),
        lambda: lance_ops.LanceDataset.commit(tmp_path / "made", operation),
        lambda: lance_ops.LanceDataset.commit(uri, project, read_version=1),
    ]
    names_rows = "has no column beside" if name in ("_rowaddr", "_rowid") else "choose another name"
    for verb in verbs:
        with pytest.raises(InvalidInput, match=f"choose another name|{names_rows}"):
            verb()
        assert lance_ops.dataset(uri).version == 1
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ALLOWED_NAMES)
def test_other_names_are_taken_by_every_verb(tmp_path: Path, name: str) -> None:
    table = pa.table({name: [1], "z": [2]})
    created = lance_ops.write_dataset(table, tmp_path / "created")
    assert lance_ops.dataset(created.uri).to_table(columns=[name]).to_pydict() == {name: [1]}
    renamed = lance_ops.write_dataset(pa.table({"a": [1], "z": [2]}), tmp_path / "renamed")
    renamed.alter_columns({"path": "a", "name": name})
    assert lance_ops.dataset(renamed.uri).to_table() == table


def test_the_names_of_row_columns_are_reserved() -> None:
    assert set(ROW_COLUMNS) < ROW_COLUMN_NAMES
    for name in ROW_COLUMNS:
        with pytest.raises(InvalidInput, match="scans add"):
            check_column_name(name)


@pytest.mark.parametrize(
    "column",
    [pa.struct([("a", pa.int8()), ("a", pa.int8())]), pa.list_(pa.struct([("a\0", pa.int8())]))],
    ids=["twice", "NUL"],
)
def test_fields_in_a_column_have_names_of_their_own_without_a_nul(tmp_path: Path, column: pa.DataType) -> None:
    with pytest.raises(InvalidInput, match="column 'c': (two fields are named 'a'|field 'a.x00' has a NUL)"):
        lance_ops.write_dataset(pa.table({"c": pa.nulls(2, column)}), tmp_path / "t")
    assert not files(tmp_path)


@pytest.mark.parametrize("kind", WRAPPERS)
def test_a_column_nests_as_deeply_as_readers_read_and_no_deeper(tmp_path: Path, kind: str) -> None:
    table = pa.table({"c": pa.nulls(2, nested(kind, MAX_DEPTH)), "z": [1, 2]})
    assert depth_of(table.schema.field("c").type) == MAX_DEPTH
    assert lance_ops.write_dataset(table, tmp_path / "t").to_table() == table
    for levels in (MAX_DEPTH + 1, MAX_DEPTH + 2, 200, 1000):
        deeper = pa.field("d", nested(kind, levels + 1))
        verbs: tuple[Callable[[], object], ...] = (
            lambda field=deeper: lance_ops.write_dataset(pa.schema([field]).empty_table(), tmp_path / "u"),  # type: ignore[misc]
            lambda field=deeper: lance_ops.dataset(tmp_path / "t").add_columns(field),  # type: ignore[misc]
        )
        for verb in verbs:
            with pytest.raises(InvalidInput, match="column 'd' nests more than 62 levels"):
                verb()
    assert lance_ops.dataset(tmp_path / "t").version == 1
    assert not files(tmp_path / "u")


def test_mixed_kinds_of_nesting_count_together() -> None:
    mixed = pa.list_(pa.dictionary(pa.int8(), pa.string()))
    for wrap, _ in WRAPPERS.values():
        mixed = wrap(mixed)
    assert depth_of(mixed) == 2 + sum(each for _, each in WRAPPERS.values())
    assert depth_of(pa.struct([("t", pa.fixed_shape_tensor(pa.int8(), [4]))])) == 2


def test_a_manifest_beyond_the_depth_is_refused_by_its_name() -> None:
    deep, deeper = (
        Schema((field_from_arrow(pa.field("c", nested("list", levels)), NO_PARENT, count()),))
        for levels in (MAX_DEPTH, MAX_DEPTH + 1)
    )
    assert decode_manifest(encode_manifest(replace(manifest(), schema=deep), b""), "m").schema == deep
    with pytest.raises(UnsupportedFeature, match="m: field .*, which nests more than 62 levels"):
        decode_manifest(encode_manifest(replace(manifest(), schema=deeper), b""), "m")


@pytest.mark.parametrize("schema", [{b"\xff": b"x"}, None], ids=["schema", "field"])
def test_a_metadata_key_that_is_not_utf8_is_refused(tmp_path: Path, schema: Any) -> None:
    field = pa.field("a", pa.int8(), metadata=None if schema else {b"\xff": b"x"})
    with pytest.raises(InvalidInput, match=r"metadata key b'\\xff' is not UTF-8"):
        lance_ops.write_dataset(pa.schema([field], schema).empty_table(), tmp_path / "t")
    assert not files(tmp_path)


def test_rows_without_columns_are_refused_and_a_table_without_both_is_not(tmp_path: Path) -> None:
    rows = pa.table({"a": [1, 2]}).select([])
    with pytest.raises(SchemaMismatch, match="2 rows and no columns"):
        lance_ops.write_dataset(rows, tmp_path / "t")
    assert not files(tmp_path)
    empty = lance_ops.write_dataset(pa.table({}), tmp_path / "t")
    assert (empty.count_rows(), empty.to_table().num_rows) == (0, 0)
    with pytest.raises(SchemaMismatch, match="2 rows and no columns"):
        lance_ops.write_dataset(rows, tmp_path / "t", mode="append")
    empty.add_columns(pa.field("x", pa.int64()))
    assert lance_ops.write_dataset(pa.table({"x": [1]}), empty, mode="append").count_rows() == 1


def test_an_append_does_not_check_the_schema_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": [1]})
    dataset = lance_ops.write_dataset(table, tmp_path / "t")
    checked: list[Manifest] = []

    def recorded(made: Manifest) -> Iterator[str]:
        checked.append(made)
        return iter(())

    monkeypatch.setattr(invariants, "_OF_NEW_SCHEMAS", (recorded,))
    lance_ops.write_dataset(table, dataset, mode="append")
    assert not checked
    lance_ops.dataset(tmp_path / "t").add_columns(pa.field("b", pa.int8()))
    assert checked
