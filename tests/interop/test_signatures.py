"""Public functions have the reference's argument names, order and defaults."""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from lance_ops.api import ColumnOrdering
from tests.interop.test_names import CLASSES, MADE_BY_THE_LIBRARY, MODULES, names, names_of

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

OURS_ALONE = {
    "checkpoint",
    "cluster_by",
    "cluster_order",
    "compacted_sstables",
    "config_upsert_values",
    "conflict_retries",
    "files",
    "fragment",
    "index_names",
    "inserted_rows",
    "max_commits",
    "max_seconds",
    "runner",
    "storage_type",
    "tag",
    "verify_checksums",
    "transaction_properties",
    "unknown",
    "worst_first",
}
"""Arguments that the reference does not have, or takes as `**kwargs`; all are keyword-only."""

OPTIONAL_HERE = {"file_size_bytes", "physical_rows"}
"""Arguments that the reference requires, or that are None there if unknown; here, and in the protobuf, they are 0."""

PYARROWS = {"schema"}
"""Arguments that pyarrow's datasets have in first position, where engines pass them."""

OPEN_ENDED = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


def pairs() -> list[Any]:
    """Every function, method and class that both libraries have with a readable signature."""
    reference = import_module("lance.dataset")  # the attribute of that name is the function
    found: dict[str, tuple[Any, Any]] = {"ColumnOrdering": (ColumnOrdering, reference.ColumnOrdering)}
    for scope, (ours, theirs) in (MODULES | CLASSES).items():
        for name in names_of(theirs) if scope in MODULES else names(theirs):
            mine, other = getattr(ours, name, None), getattr(theirs, name)
            if name not in MADE_BY_THE_LIBRARY and callable(mine) and callable(other):
                found[f"{scope}.{name}"] = mine, other
    return [pytest.param(*pair, id=name) for name, pair in sorted(found.items()) if all(map(says_arguments, pair))]


def is_alike(ours: Any, theirs: Any) -> bool:
    """Return whether two defaults mean the same; our empty default equals None or a default factory."""
    if ours is None and theirs is inspect.Parameter.empty:
        return True  # a call that passes it means the same in both
    is_empty = ours == () or repr(ours) == "<factory>"
    return bool(ours == theirs or (is_empty and (theirs is None or repr(theirs) == "<factory>")))


def says_arguments(function: Callable[..., Any]) -> bool:
    try:
        return bool(inspect.signature(function))
    except ValueError:  # one that is made in Rust and does not say
        return False


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
            assert parameter.name in OPTIONAL_HERE or is_alike(parameter.default, by_name[parameter.name].default)
        else:
            assert takes_any, f"{parameter.name} is not an argument of the reference"
    positional = [p.name for p in mine if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    reference = [p.name for p in other if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    shared = [name for name in positional if name in reference]
    assert shared == reference[: len(shared)]
