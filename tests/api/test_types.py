"""The alias of data for type checkers covers what the writers take."""

from __future__ import annotations

from typing import Any, get_args, get_origin

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import lance_ops
from lance_ops.types import ReaderLike

ROWS = pa.table({"a": [1, 2]})
FORMS: list[Any] = [
    ROWS,
    ROWS.to_batches()[0],
    ROWS.to_reader(),
    pads.dataset(ROWS),
    pads.dataset(ROWS).scanner(),
    {"a": [1, 2]},
    [{"a": 1}, {"a": 2}],
]


@pytest.mark.parametrize("data", FORMS, ids=lambda data: type(data).__name__)
def test_data_of_the_alias_is_written(data: Any, dataset_uri: str) -> None:
    assert isinstance(data, tuple(get_origin(each) or each for each in get_args(ReaderLike)))
    assert lance_ops.write_dataset(data, dataset_uri).to_table().equals(ROWS)
