"""A user moves by changing the import: same names, same argument order, same defaults."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import lance_ops
from lance_ops import fragment
from lance_ops.api import (
    Branches,
    ColumnOrdering,
    DatasetDelta,
    DatasetOptimizer,
    LanceScanner,
    MergeInsertBuilder,
    ScannerBuilder,
    Tags,
)

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

OURS_ALONE = {"runner", "transaction_properties", "index_names"}
"""Arguments that the reference does not have, or takes as `**kwargs`; all are keyword-only."""

PYARROWS = {"schema"}
"""Arguments that pyarrow's own datasets have, and engines pass, in the first place."""

OPEN_ENDED = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


def pairs() -> list[Any]:
    reference = import_module("lance.dataset")  # the package's attribute of that name is the function
    functions: list[tuple[Any, Any]] = [
        (lance_ops.write_dataset, lance.write_dataset),
        (lance_ops.dataset, lance.dataset),
        (fragment.write_fragments, import_module("lance.fragment").write_fragments),
        (ColumnOrdering, reference.ColumnOrdering),
    ]
    classes = [
        (lance_ops.LanceDataset, lance.LanceDataset),
        (DatasetOptimizer, reference.DatasetOptimizer),
        (Tags, reference.Tags),
        (Branches, reference.Branches),
        (MergeInsertBuilder, reference.MergeInsertBuilder),
        (lance_ops.LanceFragment, lance.LanceFragment),
        (DatasetDelta, reference.DatasetDelta),
        (LanceScanner, lance.LanceScanner),
        (ScannerBuilder, reference.ScannerBuilder),
    ]
    for ours, theirs in classes:
        for name, method in inspect.getmembers(ours):
            if not name.startswith("_") and inspect.isroutine(method) and hasattr(theirs, name):
                functions.append((method, getattr(theirs, name)))
    return [pytest.param(ours, theirs, id=ours.__qualname__) for ours, theirs in functions]


@pytest.mark.parametrize(("ours", "theirs"), pairs())
def test_arguments_have_the_reference_s_names_order_and_defaults(
    ours: Callable[..., Any], theirs: Callable[..., Any]
) -> None:
    mine, other = (list(inspect.signature(function).parameters.values()) for function in (ours, theirs))
    by_name = {parameter.name: parameter for parameter in other}
    mine = [parameter for parameter in mine if parameter.name in by_name or parameter.name not in PYARROWS]
    takes_any = any(parameter.kind in OPEN_ENDED for parameter in other)
    for parameter in mine:
        if parameter.name in OURS_ALONE and parameter.name not in by_name:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        elif parameter.name in by_name:
            assert parameter.default == by_name[parameter.name].default, parameter.name
        else:
            assert takes_any, f"{parameter.name} is not an argument of the reference"
    positional = [p.name for p in mine if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    reference = [p.name for p in other if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    shared = [name for name in positional if name in reference]
    assert shared == reference[: len(shared)]
