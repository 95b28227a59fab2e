"""Row ids, addresses, positions and versions: wherever a caller can ask for them, both libraries return the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidFilter, InvalidInput

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

ROW_COLUMNS = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]
KINDS = ["deleted from", "stable", "stable, updated"]

NAMED: list[Any] = [spec for name in ROW_COLUMNS for spec in ([name], [name, "s", "a"])]
RENAMED: list[Any] = [spec for name in ROW_COLUMNS for spec in ({name: name}, {"a": "a", "x": name})]
SPECS: list[Any] = [
    None,
    ["a"],
    *NAMED,
    *RENAMED,
    ROW_COLUMNS,
    [*reversed(ROW_COLUMNS), "st.x"],
    {"x": "_rowid + 1", "a": "a"},
    {"y": "_rowaddr + _rowid"},
    [],
    {},
]

Read = Callable[[Any, dict[str, Any]], pa.Table]

SCANS: dict[str, Read] = {
    "a table": lambda dataset, columns: dataset.to_table(**columns),
    "with ids": lambda dataset, columns: dataset.to_table(**columns, with_row_id=True),
    "with addresses": lambda dataset, columns: dataset.to_table(**columns, with_row_address=True),
    "with both": lambda dataset, columns: dataset.to_table(**columns, with_row_id=True, with_row_address=True),
    "filtered": lambda dataset, columns: dataset.to_table(**columns, filter="a > 4", with_row_id=True),
    "a part": lambda dataset, columns: dataset.to_table(**columns, limit=4, offset=3),
    "a filtered part": lambda dataset, columns: dataset.to_table(**columns, filter="a > 2", limit=4, offset=2),
    "late columns": lambda dataset, columns: dataset.to_table(**columns, filter="a = 4", late_materialization=True),
    "the head": lambda dataset, columns: dataset.head(4, **columns),
    "batches": lambda dataset, columns: pa.Table.from_batches(
        dataset.to_batches(**columns, batch_size=3), dataset.scanner(**columns).projected_schema
    ),
    "a fragment": lambda dataset, columns: dataset.get_fragments()[1].to_table(**columns, with_row_address=True),
    "ordered": lambda dataset, columns: dataset.to_table(**columns, order_by=["a"]),
    "ordered, limited": lambda dataset, columns: dataset.to_table(**columns, order_by=["a"], limit=5, offset=1),
}

TAKES: dict[str, Read] = {
    "by position": lambda dataset, columns: dataset.take([0, 8, 3, 3], **columns),
    "nothing": lambda dataset, columns: dataset.take([], **columns),
    "by id": lambda dataset, columns: dataset._take_rows(
        dataset.to_table(columns=["_rowid"])["_rowid"].to_pylist()[2:4], **columns
    ),
}

FILTERS = [
    *(f"{name} {rest}" for name in ROW_COLUMNS for rest in ("= 3", "IN (1, 5)", "= 1 AND a > 0")),
    *(f"{name} {rest}" for name in ROW_COLUMNS if name != "_rowoffset" for rest in ("> 2", "IS NULL", "IS NOT NULL")),
]


@pytest.fixture(scope="module", params=KINDS)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    kind, uri = request.param, str(tmp_path_factory.mktemp("rows") / "t")
    rows = pa.table(
        {"a": pa.array(range(12), pa.int32()), "s": [str(i) for i in range(12)], "st": [{"x": i} for i in range(12)]}
    )
    dataset = lance.write_dataset(rows, uri, max_rows_per_file=5, enable_stable_row_ids="stable" in kind)
    if kind == "deleted from":
        dataset.delete("a IN (1, 6, 7)")
    if kind == "stable, updated":
        dataset.update({"s": "'new'"}, where="a = 3")
        dataset.delete("a = 0")
    return lance_ops.dataset(uri), lance.dataset(uri)


def described(table: pa.Table) -> Any:
    """Return fields and rows."""
    fields = [(field.name, str(field.type), field.nullable) for field in table.schema]
    return fields, table.num_rows, table.to_pylist() if fields else None


def answer(read: Callable[[], Any]) -> Any:
    """Return what a read of the reference returns, or None if it is refused or fails."""
    try:
        return described(read())
    except BaseException as error:  # a panic of Rust is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None


def compare(both: tuple[Any, Any], reads: dict[str, Read]) -> int:
    ours, theirs = both
    num_compared = 0
    for spec in SPECS:
        columns = {} if spec is None else {"columns": spec}
        for name, read in reads.items():
            expected = answer(lambda: read(theirs, columns))  # noqa: B023 # called at once
            if expected is not None:
                assert described(read(ours, columns)) == expected, (spec, name)
                num_compared += 1
    return num_compared


def test_scans_return_the_reference_s_columns_in_its_order(both: tuple[Any, Any]) -> None:
    assert compare(both, SCANS) > 200


def test_takes_return_the_reference_s_columns_in_its_order(both: tuple[Any, Any]) -> None:
    assert compare(both, TAKES) > 40


@pytest.mark.parametrize("matching", FILTERS)
def test_filters_on_row_columns_find_the_reference_s_rows(both: tuple[Any, Any], matching: str) -> None:
    ours, theirs = both
    assert described(ours.to_table(["a"], filter=matching)) == described(theirs.to_table(["a"], filter=matching))
    assert ours.count_rows(matching) == len(theirs.to_table(filter=matching))


@pytest.mark.parametrize("comparison", ["> 2", "BETWEEN 1 AND 4", "% 2 = 0", "IS NOT NULL", "IN (1, 5) AND a > 2"])
def test_filters_of_scans_compare_positions_in_any_way(both: tuple[Any, Any], tmp_path: Path, comparison: str) -> None:
    ours, _ = both
    positions = pa.table({"p": ours.to_table(["_rowoffset"])["_rowoffset"], "a": ours.to_table(["a"])["a"]})
    plain = lance_ops.write_dataset(positions, tmp_path / "positions")
    expected = plain.to_table(["a"], filter=f"p {comparison}")
    assert ours.to_table(["a"], filter=f"_rowoffset {comparison}").equals(expected)
    assert expected.num_rows


def test_positions_are_those_that_take_counts(both: tuple[Any, Any]) -> None:
    for dataset in both:
        found = dataset.to_table(["_rowoffset", "a"], filter="a > 4")
        assert dataset.take(found["_rowoffset"].to_pylist(), columns=["a"])["a"].equals(found["a"])


def test_a_change_of_rows_does_not_read_positions(tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(pa.table({"a": range(5)}), tmp_path / "t")
    with pytest.raises(InvalidFilter, match="_rowoffset"):
        dataset.delete("_rowoffset = 2")
    with pytest.raises(InvalidFilter, match="_rowoffset"):
        dataset.to_table({"next": "_rowoffset + 1"})
    assert dataset.count_rows() == 5


@pytest.mark.parametrize("name", [*ROW_COLUMNS, "a"])
def test_a_column_that_is_asked_for_twice_is_refused(both: tuple[Any, Any], name: str) -> None:
    ours, theirs = both
    for verb in ("to_table", "scanner"):
        with pytest.raises(InvalidInput, match=f"{name}.*twice"):
            getattr(ours, verb)([name, name])
        assert answer(lambda: getattr(theirs, verb)([name, name])) is None  # noqa: B023 # called at once
    with pytest.raises(InvalidInput, match=f"{name}.*twice"):
        ours.take([0], columns=[name, name])


def test_deleted_rows_have_the_position_of_the_next_live_row_in_both(both: tuple[Any, Any]) -> None:
    ours, theirs = both
    options: dict[str, Any] = {"columns": ["a", "_rowoffset"], "with_row_id": True, "include_deleted_rows": True}
    mine, other = (dataset.scanner(**options).to_table() for dataset in (ours, theirs))
    assert described(mine) == described(other)


def test_samples_and_fragments_return_row_columns(both: tuple[Any, Any]) -> None:
    ours, _ = both
    sampled = ours.sample(4, columns=["a", "_rowoffset", "_rowid"], randomize_order=False)
    everything = {row["_rowid"]: row for row in ours.to_table(["a", "_rowoffset", "_rowid"]).to_pylist()}
    assert [everything[row["_rowid"]] for row in sampled.to_pylist()] == sampled.to_pylist()
    fragment = ours.get_fragments()[1]
    taken = fragment.take([1, 0], columns=["_rowid", "_rowoffset", "a"])
    assert taken.to_pylist() == fragment.to_table(["_rowid", "_rowoffset", "a"]).to_pylist()[1::-1]
