"""Datasets of Hugging Face are data of every verb, as in the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lance_ops
from lance_ops.errors import InvalidInput, WrongType

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

COLUMNS = {"id": [1, 2, 3], "name": ["a", None, "c"]}


@pytest.fixture(scope="module")
def datasets() -> Any:
    """The library of Hugging Face. An import at the top of this file would cost every worker time when it collects."""
    return pytest.importorskip("datasets", reason="Hugging Face's datasets is not installed")


@pytest.mark.parametrize("streamed", [False, True])
def test_both_libraries_store_the_same_rows_and_the_description_of_the_features(
    datasets: Any, tmp_path: Path, streamed: bool
) -> None:
    found = []
    for library in (lance_ops, lance):
        data = datasets.Dataset.from_dict(COLUMNS)
        made = library.write_dataset(data.to_iterable_dataset() if streamed else data, str(tmp_path / library.__name__))
        found.append((made.schema, made.schema.metadata, made.to_table().to_pydict()))
    assert found[0] == found[1]
    assert b"huggingface" in found[0][1] and found[0][2] == COLUMNS


def test_rows_that_the_dataset_left_out_are_not_written(datasets: Any, tmp_path: Path) -> None:
    data = datasets.Dataset.from_dict(COLUMNS).select([2, 0])
    assert lance_ops.write_dataset(data, tmp_path / "ours").to_table()["id"].to_pylist() == [3, 1]
    assert lance.write_dataset(data, str(tmp_path / "theirs")).count_rows() == 3


def test_a_streamed_dataset_of_unknown_features_needs_a_schema(datasets: Any, tmp_path: Path) -> None:
    def rows() -> Any:
        yield from ({"id": number} for number in (1, 2))

    data = datasets.IterableDataset.from_generator(rows)
    with pytest.raises(InvalidInput, match="schema="):
        lance_ops.write_dataset(data, tmp_path / "t")
    schema = datasets.Dataset.from_dict({"id": [1]}).features.arrow_schema
    assert lance_ops.write_dataset(data, tmp_path / "t", schema=schema).to_table()["id"].to_pylist() == [1, 2]


@pytest.mark.parametrize("library", [lance_ops, lance])
def test_a_dictionary_of_datasets_is_refused(datasets: Any, tmp_path: Path, library: Any) -> None:
    several = datasets.DatasetDict({"train": datasets.Dataset.from_dict(COLUMNS)})
    with pytest.raises(WrongType if library is lance_ops else ValueError, match="DatasetDict"):
        library.write_dataset(several, str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()
