"""The long signatures of scans are stated once each; every argument must reach the scan's options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import argument_checks
from lance_ops.api.fragments import fragment as fragment_module
from lance_ops.api.lance_dataset import scan_methods as dataset_module
from lance_ops.api.scanning import ScanOptions
from lance_ops.errors import InvalidInput, WrongType

METHODS = ("scanner", "to_table", "to_batches", "to_pandas")
NO_OPTIONS = {"self", "kwargs", "schema", "blob_mode"}
"""Parameters that are no scan options."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[ScanOptions]:
    """Record the options of each scanner instead of making it."""
    options: list[ScanOptions] = []

    def make(_: object, asked: ScanOptions) -> MagicMock:
        options.append(asked)
        return MagicMock()

    monkeypatch.setattr(dataset_module, "make_scanner", make)
    monkeypatch.setattr(fragment_module, "make_scanner", make)
    return options


@pytest.fixture
def dataset(tmp_path: Path) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(pa.table({"a": [1]}), str(tmp_path / "a.lance"))


def distinct_arguments(method: Callable[..., Any]) -> dict[str, object]:
    """Return another object for each option among a method's parameters."""
    return {name: object() for name in inspect.signature(method).parameters if name not in NO_OPTIONS}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("owner", ["dataset", "fragment"])
def test_each_argument_arrives_under_its_own_name(
    owner: str, method: str, dataset: lance_ops.LanceDataset, made: list[ScanOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(argument_checks, "_rules", lambda function: {})  # the objects that are forwarded fit no option
    scanned = dataset if owner == "dataset" else dataset.get_fragments()[0]
    call = getattr(scanned, method)
    arguments = distinct_arguments(call)
    if "fragments" in arguments:
        arguments["fragments"] = dataset.get_fragments()
    call(**arguments)
    [options] = made
    expected = arguments | ({"fragment_ids": (0,)} if owner == "fragment" or "fragments" in arguments else {})
    expected.pop("fragments", None)
    assert len(expected) > 8
    assert {name: getattr(options, name) for name in expected} == expected


def test_an_option_that_a_batched_scan_does_not_name_arrives_through_its_kwargs(
    dataset: lance_ops.LanceDataset, made: list[ScanOptions]
) -> None:
    dataset.to_batches(fast_search=True)
    assert made[0].fast_search is True


@pytest.mark.parametrize("method", ["scanner", "to_table", "to_batches"])
def test_an_unknown_option_is_refused(method: str, dataset: lance_ops.LanceDataset) -> None:
    with pytest.raises(TypeError, match="no_such_option"):
        getattr(dataset, method)(no_such_option=1)


def test_a_scan_checks_its_options_once(dataset: lance_ops.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset.to_table()  # the first call of each function reads its annotations
    checked: list[str] = []
    rules = argument_checks._rules

    def recorded(function: Callable[..., Any]) -> Any:
        checked.append(function.__qualname__)
        return rules(function)

    monkeypatch.setattr(argument_checks, "_rules", recorded)
    assert dataset.to_table(columns=["a"], filter="a = 1", limit=5).num_rows == 1
    assert checked == ["Scanning.to_table", "LanceScanner.__init__", "LanceScanner.to_table"]
    with pytest.raises(WrongType, match=r"to_table: limit"):
        dataset.to_table(limit="five")  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize("given", [[0, 2**63], [-(2**63) - 1, 0], [0, "a"], [0, 1.5], [None]])
def test_a_list_of_numbers_is_refused_for_one_that_does_not_fit(
    dataset: lance_ops.LanceDataset, given: list[Any]
) -> None:
    with pytest.raises(InvalidInput, match="take: indices"):
        dataset.take(given)


def test_a_list_of_numbers_is_checked_by_its_least_and_greatest() -> None:
    asked: list[int] = []

    def rule(value: int) -> bool:
        asked.append(value)
        return 0 <= value < 10

    fits = argument_checks._items_of(rule, has_length=True, are_numbers=True)
    assert [fits([5, 9, 0, 3]), fits([5, 10, 0])] == [True, False]
    assert asked == [0, 9, 0, 10]
    asked.clear()
    assert fits([True, 5]) and asked == [True, 5]  # not only integers of Python
    assert not fits(np.ma.array([5, 6], mask=[False, True])), "a masked item is no number"
