"""Data with the interface of Hugging Face's `datasets`, for installations that lack the package.

`tests/interop/test_hugging_face.py` asserts the same with the package itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput, WrongType

ROWS = pa.table({"id": [1, 2, 3]}).replace_schema_metadata({"huggingface": "{}"})


class StandIn:
    """A dataset that hands out its rows in Arrow's form only after it was asked for that form."""

    def __init__(self, rows: pa.Table = ROWS, *, knows_features: bool = True) -> None:
        self._rows = rows
        self._in_arrow = False
        self.features = SimpleNamespace(arrow_schema=rows.schema) if knows_features else None

    def with_format(self, type: str) -> StandIn:  # noqa: A002 # the package's name
        assert type == "arrow"
        made = StandIn(self._rows)
        made._in_arrow = True
        return made

    def iter(self, batch_size: int) -> Iterator[Any]:
        assert self._in_arrow, "rows of another form may be decoded images"
        yield from (self._rows.slice(at, batch_size) for at in range(0, len(self._rows), batch_size))


class StandInDict(dict[str, Any]):
    pass


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = ModuleType("datasets")
    vars(stand_in).update(Dataset=StandIn, DatasetDict=StandInDict)
    monkeypatch.setitem(sys.modules, "datasets", stand_in)


def test_rows_and_the_description_of_the_features_are_stored(tmp_path: Path) -> None:
    made = lance_ops.write_dataset(StandIn(), tmp_path / "t")
    made.insert(StandIn(ROWS.slice(1)))
    assert made.to_table()["id"].to_pylist() == [1, 2, 3, 2, 3]
    assert made.schema.metadata == {b"huggingface": b"{}"}


def test_many_rows_arrive_in_order(tmp_path: Path) -> None:
    ids = list(range(5000))
    assert lance_ops.write_dataset(StandIn(pa.table({"id": ids})), tmp_path / "t").to_table()["id"].to_pylist() == ids


def test_rows_are_cast_to_the_given_schema(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int8())])
    assert lance_ops.write_dataset(StandIn(knows_features=False), tmp_path / "t", schema).schema == schema


def test_unknown_features_need_a_schema(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="schema="):
        lance_ops.write_dataset(StandIn(knows_features=False), tmp_path / "t")


def test_several_datasets_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(WrongType, match="'train', 'test'"):
        lance_ops.write_dataset(StandInDict(train=StandIn(), test=StandIn()), tmp_path / "t")
    assert not (tmp_path / "t").exists()
