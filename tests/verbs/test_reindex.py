"""`Reindex` beside indices of other kinds, and beside writers that build an index of the same name."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.maintenance.indexing.segment_builder import SegmentBuilder
from lance_ops.table import IndexDetails
from lance_ops.transactions import CreateIndex
from lance_ops.verbs import Reindex, do_now, make_plan
from lance_ops.writing import commit_operation


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    """Eight rows in two fragments, an index `z_idx` that lacks the second one, and `a_idx` of a kind of others."""
    made = write_dataset(pa.table({"x": range(4), "y": range(4)}), dataset_uri)
    made.create_scalar_index("x", "BTREE", "z_idx")
    (segment,) = made.snapshot.manifest.indices
    other = replace(
        segment, uuid=uuid.uuid4(), name="a_idx", details=IndexDetails("/lance.table.InvertedIndexDetails"), files=()
    )
    commit_operation(made.snapshot, CreateIndex((other,)))
    return write_dataset(pa.table({"x": range(4, 8), "y": range(4, 8)}), dataset_uri, mode="append")


def to_do(verb: Reindex, data: LanceDataset) -> dict[str, str]:
    """Return what a preview says of each index."""
    (indices,) = make_plan(verb, data)[1].sections
    return {name: what for name, *_, what in indices.lines}


def segments(data: LanceDataset) -> dict[str, Any]:
    return {index["name"]: index["uuid"] for index in dataset(data.uri).list_indices()}


@pytest.mark.parametrize("rebuild", [False, True])
def test_an_index_of_another_kind_is_left_alone_unless_it_is_named(numbers: LanceDataset, rebuild: bool) -> None:
    verb, before = Reindex(rebuild=rebuild), segments(numbers)
    assert to_do(verb, numbers) == {"a_idx": "left alone", "z_idx": "rebuild" if rebuild else "extend"}
    do_now(verb, numbers)
    after = segments(numbers)
    assert after["a_idx"] == before["a_idx"]
    assert after["z_idx"] != before["z_idx"]
    assert dataset(numbers.uri).stats.index_stats("z_idx")["num_unindexed_rows"] == 0
    with pytest.raises(UnsupportedFeature, match="'a_idx': an index of InvertedIndexDetails"):
        do_now(Reindex(("a_idx",), rebuild=rebuild), dataset(numbers.uri))


def test_a_preview_does_nothing_if_only_indices_of_other_kinds_lack_rows(numbers: LanceDataset) -> None:
    do_now(Reindex(), numbers)
    preview = make_plan(Reindex(), dataset(numbers.uri))[1]
    assert (preview.summary, preview.does_nothing) == ("nothing to index", True)


def test_an_index_of_another_kind_is_replaced_by_one_that_is_stated(numbers: LanceDataset) -> None:
    verb = Reindex(create={"a_idx": "y:ZONEMAP"}, rebuild=True)
    assert to_do(verb, numbers) == {"a_idx": "rebuild", "z_idx": "rebuild"}
    do_now(verb, numbers)
    assert {each.name: each.index_type for each in dataset(numbers.uri).describe_indices()} == {
        "a_idx": "ZoneMap",
        "z_idx": "BTree",
    }


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Return a function that lets another writer act while an index is trained for the first time."""

    def let(act: Callable[[], object]) -> None:
        train, waiting = SegmentBuilder.train, [act]

        def trained(*arguments: Any) -> Any:
            made = train(*arguments)
            if waiting:
                waiting.pop()()
            return made

        monkeypatch.setattr(SegmentBuilder, "train", trained)

    return let


@pytest.mark.parametrize("column", ["x", "y"])
def test_an_index_that_another_writer_builds_meanwhile_is_not_replaced(
    numbers: LanceDataset, beside: Callable[[Callable[[], object]], None], column: str
) -> None:
    beside(lambda: dataset(numbers.uri).create_scalar_index(column, "BTREE", "new"))
    if column == "y":
        with pytest.raises(InvalidInput, match="has an index new already, of type BTree on y"):
            do_now(Reindex(("new",), {"new": "x"}), numbers)
    else:
        do_now(Reindex(("new",), {"new": "x"}), numbers)
    (made,) = (each for each in dataset(numbers.uri).describe_indices() if each.name == "new")
    assert (made.field_names, made.num_rows_indexed) == ((column,), 8)


def test_an_index_of_another_column_that_is_built_meanwhile_is_replaced_on_demand(
    numbers: LanceDataset, beside: Callable[[Callable[[], object]], None]
) -> None:
    beside(lambda: dataset(numbers.uri).create_scalar_index("y", "BTREE", "new"))
    do_now(Reindex(("new",), {"new": "x"}, rebuild=True), numbers)
    (made,) = (each for each in dataset(numbers.uri).describe_indices() if each.name == "new")
    assert made.field_names == ("x",)
