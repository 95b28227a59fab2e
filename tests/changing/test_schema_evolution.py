"""Schemas that grow with incoming data."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.changing.columns import SchemaChange, change_schema, changed_schema, plan_schema_change
from lance_ops.errors import RetryableConflict
from lance_ops.runners import InThreads, Job
from lance_ops.snapshot import Snapshot

NUMBERS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64()),
]


def bounds(number: pa.DataType) -> list[Any]:
    """The values of a type that another type is most likely to lose."""
    if pa.types.is_floating(number):
        return [0.5, {16: 65504.0, 32: 1.0 + 2**-23, 64: 1.0 + 2**-52}[number.bit_width]]
    signed = number in NUMBERS[:4]
    top = 2 ** (number.bit_width - signed) - 1
    return [-top - 1 if signed else 0, top]


def holds(wide: pa.DataType, narrow: pa.DataType) -> bool:
    values = pa.array(bounds(narrow), narrow)
    try:
        return bool(values.cast(wide).cast(narrow).equals(values))
    except pa.ArrowInvalid:
        return False


@pytest.mark.parametrize("old", NUMBERS, ids=str)
@pytest.mark.parametrize("new", NUMBERS, ids=str)
def test_a_number_widens_to_a_type_that_holds_all_its_values_and_no_other(old: pa.DataType, new: pa.DataType) -> None:
    change = plan_schema_change(pa.schema([("x", old)]), pa.schema([("x", new)]))
    assert bool(change) == (old != new and holds(new, old))
    assert not change.added.names


@pytest.mark.parametrize(
    ("old", "new", "widened"),
    [
        (pa.decimal128(5, 2), pa.decimal128(7, 3), {"x": pa.decimal128(7, 3)}),
        (pa.decimal128(5, 2), pa.decimal128(6, 4), {}),
        (pa.null(), pa.list_(pa.string()), {"x": pa.list_(pa.string())}),
        (pa.list_(pa.int32(), 2), pa.list_(pa.int64()), {"x": pa.list_(pa.int64(), 2)}),
        (pa.struct([("a.b", pa.int8())]), pa.struct([("a.b", pa.int16())]), {"x.`a.b`": pa.int16()}),
        (pa.string(), pa.int64(), {}),
        (pa.int64(), pa.string(), {}),
    ],
    ids=str,
)
def test_other_types_widen_where_every_value_fits(
    old: pa.DataType, new: pa.DataType, widened: dict[str, pa.DataType]
) -> None:
    change = plan_schema_change(pa.schema([("x", old)]), pa.schema([("x", new)]))
    assert (change.widened, change.added.names) == (widened, [])


def grown(uri: str) -> tuple[Snapshot, SchemaChange]:
    lance_ops.write_dataset(
        pa.table(
            {
                "x": pa.array([1, 2], pa.int32()),
                "n": pa.nulls(2),
                "s": [{"a": 1}, None],
                "v": [[1.0], []],
                "f": pa.array([7, None], pa.int8()),
            }
        ),
        uri,
    )
    snapshot = Snapshot.open(uri)
    given = pa.schema(
        [
            ("x", pa.int64()),
            ("n", pa.string()),
            ("s", pa.struct([("a", pa.int64()), pa.field("b", pa.int8(), nullable=False)])),
            ("v", pa.list_(pa.float64())),
            ("f", pa.float64()),
            pa.field("new", pa.struct([pa.field("c", pa.int8(), nullable=False)]), nullable=False),
        ]
    )
    return snapshot, plan_schema_change(snapshot.schema.to_arrow_storage(), given)


def test_all_changes_are_one_version_and_only_wider_columns_are_written(dataset_uri: str) -> None:
    jobs: list[int] = []

    class Counting:
        def map(self, function: Any, tasks: Any, job: Job | None = None, discard: Any = None) -> list[Any]:
            jobs.append(len(tasks))
            return InThreads().map(function, tasks, job, discard)

    snapshot, change = grown(dataset_uri)
    assert set(change.widened) == {"x", "n", "f"}
    wanted = changed_schema(snapshot, change)
    changed = change_schema(snapshot, change, wanted, Counting())
    assert (changed.version, jobs) == (2, [1])
    assert changed.schema == wanted
    dataset = lance_ops.dataset(dataset_uri)
    assert dataset.to_table().to_pylist() == [
        {"x": 1, "n": None, "s": {"a": 1, "b": None}, "v": [1.0], "f": 7.0, "new": None},
        {"x": 2, "n": None, "s": None, "v": [], "f": None, "new": None},
    ]
    assert (dataset.schema.field("x").type, dataset.schema.field("n").type) == (pa.int64(), pa.string())
    again = change_schema(snapshot, change, wanted, Counting())
    assert (again.version, jobs) == (2, [1]), "the schema was there, as after a crash before the rows"


def test_rows_appended_meanwhile_get_the_change_too(dataset_uri: str) -> None:
    snapshot, change = grown(dataset_uri)
    wanted = changed_schema(snapshot, change)
    lance_ops.write_dataset(pa.table({"x": pa.array([3], pa.int32())}), dataset_uri, mode="append")
    changed = change_schema(snapshot, change, wanted, InThreads())
    assert changed.version == 3
    assert lance_ops.dataset(dataset_uri).to_table(["x", "new"]).to_pylist()[-1] == {"x": 3, "new": None}


def test_another_change_of_the_schema_meanwhile_asks_for_the_rows_again(dataset_uri: str) -> None:
    snapshot, change = grown(dataset_uri)
    wanted = changed_schema(snapshot, change)
    lance_ops.dataset(dataset_uri).add_columns({"other": "x + 1"})
    with pytest.raises(RetryableConflict, match="schema changed after the rows were written"):
        change_schema(snapshot, change, wanted, InThreads())
    assert lance_ops.dataset(dataset_uri).version == 2
