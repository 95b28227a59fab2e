"""`alter_columns` casts every pair of types as the reference does, except where a value would lose digits."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, LanceOpsError

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

UNITS = ("s", "ms", "us", "ns")
TYPES: list[pa.DataType] = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float16(), pa.float32(), pa.float64(), pa.decimal128(10, 2), pa.decimal128(20, 4), pa.decimal256(40, 2)),
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(2), pa.bool_()),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp(unit) for unit in UNITS),
    *(pa.timestamp("us", "UTC"), pa.timestamp("s", "America/New_York")),
    *(pa.duration(unit) for unit in UNITS),
]
FRACTIONS = {"s": 0, "ms": 789_000, "us": 789_012, "ns": 789_012}


def values(kind: pa.DataType, fine: bool) -> pa.Array:
    """Return values of a type; `fine` ones have all the digits of their unit, the others fit every unit."""
    found: list[Any]
    fraction = FRACTIONS[kind.unit] if fine and not pt.is_date(kind) else 0
    if pt.is_string(kind) or pt.is_large_string(kind):
        found = ["0", "ab", None, "12"]
    elif pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind):
        found = [b"ab", b"12", None, b"cd"]
    elif pt.is_boolean(kind):
        found = [True, False, None, True]
    elif pt.is_decimal(kind):
        found = [Decimal(0), Decimal(1), None, Decimal(7)]
    elif pt.is_date(kind):
        found = [dt.date(1970, 1, 1), dt.date(2020, 1, 2), None, dt.date(1960, 5, 6)]
    elif pt.is_time(kind):
        found = [dt.time(0), dt.time(12, 34, 56, fraction), None, dt.time(23, 59, 59)]
    elif pt.is_timestamp(kind):
        clock = (12, 34, 56, fraction) if fine else ()
        found = [dt.datetime(1970, 1, 1), dt.datetime(2020, 1, 2, *clock), None, dt.datetime(1960, 5, 6, *clock)]
    elif pt.is_duration(kind):
        found = [dt.timedelta(0), dt.timedelta(seconds=5, microseconds=fraction), None, dt.timedelta(days=-1)]
    else:
        found = [0, 1, None, 7]
    return pa.array(found, kind)


def cast_by(library: Any, root: Path, column: pa.Array) -> tuple[dict[int, str], pa.Table]:
    """Cast copies of a column to each type; return the errors by position, and the table."""
    uri = str(root / library.__name__)
    lance.write_dataset(pa.table([column] * len(TYPES), names=[f"c{at}" for at in range(len(TYPES))]), uri)
    dataset, errors = library.dataset(uri), {}
    for at, target in enumerate(TYPES):
        try:
            dataset.alter_columns({"path": f"c{at}", "data_type": target})
        except (OSError, ValueError, LanceOpsError) as error:
            errors[at] = str(error)
    table = lance_ops.dataset(uri).to_table()
    assert lance.dataset(uri).to_table().equals(table)
    return errors, table


@pytest.mark.parametrize(
    ("kind", "fine"),
    [(kind, fine) for kind, fine in product(TYPES, (False, True)) if not fine or hasattr(kind, "unit")],
    ids=str,
)
def test_every_cast_gives_the_reference_s_values_or_none_at_all(tmp_path: Path, kind: pa.DataType, fine: bool) -> None:
    column = values(kind, fine)
    (mine, ours), (other, theirs) = (cast_by(library, tmp_path, column) for library in (lance_ops, lance))
    same = 0
    for at, target in enumerate(TYPES):
        found, expected = ours.column(at), theirs.column(at)
        pair = f"{kind} to {target}"
        if target == kind:
            assert at not in mine and found.chunk(0).equals(column), pair
        elif at in mine and at not in other:
            assert "lose data" in mine[at], pair
            assert fine and UNITS.index(target.unit) < UNITS.index(kind.unit), pair
        elif pt.is_timestamp(kind) and pt.is_date64(target):
            assert found.equals(ours.column(TYPES.index(pa.date32())).cast(target)), pair
        else:
            assert (at in mine) == (at in other), f"{pair}: {mine.get(at)}, {other.get(at)}"
            assert found.equals(expected), pair
            same += at not in mine
    assert same or kind in (pa.binary(2), pa.bool_())


DAY, NEW_YORK = dt.date(2020, 7, 1), pa.timestamp("us", "America/New_York")
LISTS: dict[str, tuple[list[Any], pa.DataType, pa.DataType]] = {
    "dates": ([[DAY], [], None, [None, DAY]], pa.list_(pa.date32()), pa.list_(pa.timestamp("us"))),
    "large": ([[DAY], None], pa.list_(pa.date32()), pa.large_list(NEW_YORK)),
    "fixed": ([[DAY, None], [DAY, DAY]], pa.list_(pa.date32(), 2), pa.list_(pa.timestamp("s"), 2)),
    "lists": ([[[DAY], None], None], pa.list_(pa.list_(pa.date32())), pa.list_(pa.list_(NEW_YORK))),
    "clocks": ([[dt.datetime(2020, 7, 1, 9)], None], pa.list_(pa.timestamp("us")), pa.list_(NEW_YORK)),
}


@pytest.mark.parametrize("case", LISTS)
def test_items_of_lists_are_cast_as_columns_are(tmp_path: Path, case: str) -> None:
    rows, given, wanted = LISTS[case]
    dataset = lance_ops.write_dataset(pa.table({"l": pa.array(rows, given)}), tmp_path / "t")
    dataset.alter_columns({"path": "l", "data_type": wanted})
    assert dataset.to_table().equals(lance.dataset(str(tmp_path / "t")).to_table())
    midnight = [[dt.datetime.combine(DAY, dt.time(9 if case == "clocks" else 0))]]
    clock = dataset.to_table().column("l").combine_chunks().flatten()
    flat = clock.flatten() if case == "lists" else clock
    assert str(flat[0].as_py())[:19] == str(midnight[0][0])
    assert dataset.to_table().column("l").null_count == rows.count(None)


def test_a_clock_that_a_zone_skips_is_an_error(tmp_path: Path) -> None:
    skipped = pa.table({"t": [dt.datetime(2020, 3, 8, 2, 30)]})
    for library in (lance_ops, lance):
        dataset = library.dataset(lance.write_dataset(skipped, str(tmp_path / library.__name__)).uri)
        with pytest.raises((OSError, InvalidInput)):
            dataset.alter_columns({"path": "t", "data_type": NEW_YORK})
        assert dataset.version == 1
