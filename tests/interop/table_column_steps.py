"""Hypothesis strategies for steps on columns: add, drop, rename, cast, replace values."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import lance.file
import pyarrow as pa

import lance_ops
from lance_ops.api.fragments.fragment import LanceFragment
from lance_ops.core.file_names import data_file_name
from lance_ops.table import DataFile
from lance_ops.transactions import DataReplacement, DataReplacementGroup, PendingFiles
from lance_ops.writing.commit import commit_operation
from tests.interop.table_changes import AddColumn, AddField, Cast, DropColumn, Rename, ReplaceValues
from tests.interop.table_model import KEY, Column, Leaf, State
from tests.interop.table_steps import Step
from tests.interop.table_values import NAMES, TYPES, new_column, values_of

__all__ = ["CASTS", "add_column", "add_field", "cast", "drop", "free_names", "rename", "replace_values"]

CASTS = {pa.int64(): pa.int32(), pa.int32(): pa.int64(), pa.float64(): pa.float32(), pa.float32(): pa.float64()}


def free_names(columns: tuple[Column, ...]) -> list[str]:
    """Return names for one more column or field."""
    return [name for name in NAMES if name not in {column.name for column in columns}]


@st.composite
def add_column(draw: st.DrawFn, state: State, ids: Iterator[int], *, nested: bool) -> Step:
    """Draw a new column whose values are null, come from an expression or from a stream."""
    name = draw(st.sampled_from(free_names(state.columns)))
    match draw(st.sampled_from(["computed", "null", "stream"])):
        case "null":
            column = draw(new_column(ids, name, nested=nested))
            field = pa.field(name, column.type)
            return Step(lambda handle: handle.add_columns(field), AddColumn(column, None))
        case "stream":

            def act(handle: Any) -> Any:
                keys = handle.to_table([KEY]).column(KEY).to_pylist()
                return handle.add_columns(pa.table({name: pa.array([key % 3 for key in keys], pa.int32())}))

            return Step(act, AddColumn(Column(next(ids), name, pa.int32()), lambda record: record[KEY] % 3))
        case _:
            return Step(
                lambda handle: handle.add_columns({name: f"{KEY} * 2"}),
                AddColumn(Column(next(ids), name, pa.int64()), lambda record: record[KEY] * 2),
            )


@st.composite
def add_field(draw: st.DrawFn, structs: list[Column], ids: Iterator[int]) -> Step:
    """Draw a new all-null field for a struct."""
    struct = draw(st.sampled_from(structs))
    new = Column(
        next(ids), draw(st.sampled_from(free_names(struct.fields))), draw(st.sampled_from(TYPES)), is_late=True
    )
    wrapped = pa.field(struct.name, pa.struct([(new.name, new.type)]))
    return Step(lambda handle: handle.add_columns(wrapped), AddField(struct.name, new))


def drop(path: str) -> Step:
    return Step(lambda handle: handle.drop_columns([path]), DropColumn(path))


def rename(path: str, name: str) -> Step:
    return Step(lambda handle: handle.alter_columns({"path": path, "name": name}), Rename(path, name))


def cast(leaf: Leaf, column_id: int) -> Step:
    kind = CASTS[leaf.type]
    return Step(
        lambda handle: handle.alter_columns({"path": leaf.path, "data_type": kind}), Cast(leaf.path, column_id, kind)
    )


@st.composite
def replace_values(draw: st.DrawFn, dataset: lance_ops.LanceDataset, state: State, folder: Path) -> Step | None:
    """Draw a fragment, a column that has a separate file or none there, and new values for it.

    `dataset` is the version that the step is planned on, `folder` contains its files.
    """
    snapshot, known = dataset.snapshot, {field.name: field.id for field in dataset.snapshot.schema.fields}
    places = [
        (fragment, column)
        for fragment in snapshot.fragments
        for column in state.columns[1:]
        if not column.fields
        and all(known[column.name] not in file.fields or len(file.fields) == 1 for file in fragment.files)
    ]
    if not places:
        return None
    fragment, column = draw(st.sampled_from(places))
    addresses = LanceFragment.of(snapshot, fragment).to_table(columns=[KEY], with_row_address=True).to_pydict()
    offsets = {address & 0xFFFF_FFFF: key for address, key in zip(addresses["_rowaddr"], addresses[KEY], strict=True)}
    drawn = draw(st.lists(values_of(column), min_size=fragment.physical_rows, max_size=fragment.physical_rows))
    table = pa.table({column.name: pa.array(drawn, column.type)})
    name = data_file_name()
    path = Path(folder, "data", name)

    def act(handle: Any) -> Any:
        with lance.file.LanceFileWriter(str(path), table.schema, version=dataset.data_storage_version) as writer:
            writer.write_batch(table)
        field_ids, version, size = [known[column.name]], snapshot.file_version.data_file, path.stat().st_size
        if isinstance(handle, lance_ops.LanceDataset):
            file = DataFile(name, tuple(field_ids), (0,), *version, size)
            operation = DataReplacement((DataReplacementGroup(fragment.id, file),))
            pending = PendingFiles.at(handle.snapshot.store, [f"data/{name}"])
            return lance_ops.LanceDataset.of(commit_operation(handle.snapshot, operation, pending=pending))
        theirs = lance.fragment.DataFile(name, field_ids, [0], *version, size)
        replacement = lance.LanceOperation.DataReplacement(
            [lance.LanceOperation.DataReplacementGroup(fragment.id, theirs)]
        )
        return lance.LanceDataset.commit(handle, replacement, read_version=handle.version)

    return Step(act, ReplaceValues(column.name, {key: drawn[offset] for offset, key in offsets.items()}))
