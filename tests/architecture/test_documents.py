"""Documents name modules and functions of the library; each of them must exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    "docs/architecture.md",
    "docs/security.md",
    "CONTRIBUTING.md",
    *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/adr/*.md")),
]

NAMED = re.compile(r"`((?:lance_ops/)?[a-z0-9_]+(?:/[a-z0-9_]+)*(?:/|/[a-z0-9_]+\.py))(?:::([A-Za-z0-9_.]+))?`")
"""A folder (`store/`) or a module, and perhaps a name in it."""

OUTSIDE = ("tests", "docs", "jobs", "assets", "protos")


def path_of(name: str) -> Path:
    """Return where a document's path is: beside the library's folder, or in it."""
    inside = name.removeprefix("lance_ops/")
    return ROOT / inside if inside.split("/")[0] in OUTSIDE else ROOT / "lance_ops" / inside


def defines(module: Path, name: str) -> bool:
    """Return whether a module defines a function, class, method or value of this dotted name."""
    body: list[ast.stmt] = ast.parse(module.read_text()).body
    for part in name.split("."):
        found = [each for each in body if part in names_of(each)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def names_of(statement: ast.stmt) -> set[str]:
    """Return the names that a statement defines."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_module_and_function_that_a_document_names_is_there(document: str) -> None:
    missing = []
    for path, name in NAMED.findall((ROOT / document).read_text()):
        module = path_of(path)
        if not module.exists() or (name and not defines(module, name)):
            missing.append(f"{path}::{name}" if name else path)
    assert not missing, f"{document} names what is not there: {missing}"


def test_the_map_names_more_than_fifty_modules() -> None:
    assert len(set(NAMED.findall((ROOT / "docs/architecture.md").read_text()))) > 50


def test_a_name_that_is_not_there_is_found_missing() -> None:
    assert NAMED.findall("`store/no_such.py::f` and `store/`") == [("store/no_such.py", "f"), ("store/", "")]
    assert not defines(ROOT / "lance_ops/core/errors.py", "NoSuchError")
    assert defines(ROOT / "lance_ops/store/contract.py", "Store.get")
