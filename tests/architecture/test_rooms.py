"""Rooms and their doors, checked on the imports that the source states."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.xdist_group("rooms")  # one worker parses the library

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "lance_ops"

DOORLESS = {"lance_ops", "lance_ops.core", "lance_ops.pb"}
"""Packages whose modules are imported by name: each module of the core is small and stands alone."""

SIBLINGS = {
    "lance_ops.pb": "generated",
    "lance_ops.transactions.operations": "one file an operation",
}
"""Folders that may hold more than `MOST_MODULES`, since they hold siblings of one contract."""

MOST_MODULES = 15

SHARED_NAMES = {"contract", "registry", "reader", "writer"}
"""Module names that mean the same thing in every room that has one."""


_STANDARD_DATACLASS = re.compile(
    r"^from dataclasses import (\([^)]*|.*)\bdataclass\b|^ *@dataclasses\.dataclass.*$", re.MULTILINE
)


class Import(NamedTuple):
    """One `from lance_ops… import …` of a module."""

    importer: str
    package: str
    """The package that the importing module lies in."""
    imported: str
    line: int


def name_of(path: Path) -> str:
    """Return the dotted name of a module, or of a package for its `__init__.py`."""
    dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return dotted.removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    """Return every module of the library by its dotted name, packages included."""
    return {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def packages() -> frozenset[str]:
    """Return the names of all packages."""
    return frozenset(name for name, path in modules().items() if path.name == "__init__.py")


@cache
def tree_of(name: str) -> ast.Module:
    """Return what a module's text parses to."""
    return ast.parse(modules()[name].read_text())


@pytest.fixture(scope="module", autouse=True)
def _trees_are_forgotten() -> Iterator[None]:
    yield
    tree_of.cache_clear()


def run_time_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements, nested ones too, but for what only type checkers run."""
    for statement in body:
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            yield from run_time_statements(statement.orelse)
            continue
        yield statement
        for part in ("body", "orelse", "finalbody"):
            yield from run_time_statements(getattr(statement, part, []))
        for handler in getattr(statement, "handlers", []):
            yield from run_time_statements(handler.body)


@cache
def imports() -> list[Import]:
    """Return the library's imports of itself."""
    found = []
    for name, path in modules().items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        for statement in run_time_statements(tree_of(name).body):
            if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("lance_ops"):
                assert statement.module is not None
                for each in statement.names:
                    below = f"{statement.module}.{each.name}"
                    whole = (
                        below in modules() and modules()[below].name == "__init__.py"
                    )  # `from lance_ops import refs`
                    imported = below if whole else statement.module
                    found.append(Import(name, package, imported, statement.lineno))
    return found


def names_imported(package: str) -> set[str]:
    """Return the names that a door imports, at once or for type checkers."""
    at_once = [each for each in tree_of(package).body if isinstance(each, ast.ImportFrom)]
    return {alias.asname or alias.name for each in (*at_once, *for_type_checkers(package)) for alias in each.names}


def for_type_checkers(package: str) -> list[ast.ImportFrom]:
    """Return the imports of a door that only type checkers run."""
    return [
        each
        for statement in tree_of(package).body
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
        for each in statement.body
        if isinstance(each, ast.ImportFrom)
    ]


@cache
def offered(package: str) -> set[str]:
    """Return the names in the `__all__` of a door."""
    return set(importlib.import_module(package).__all__)


def is_within(name: str, package: str) -> bool:
    """Return whether a package is `package` or lies beneath it."""
    return name == package or name.startswith(f"{package}.")


def test_the_scan_of_imports_sees_the_library() -> None:
    assert len(modules()) > 300
    assert len(imports()) > 1000
    assert {"lance_ops.core", "lance_ops.table", "lance_ops.api"} <= packages()


def test_a_module_outside_a_package_imports_the_package_and_no_module_of_it() -> None:
    past_a_door = []
    for each in imports():
        home = each.imported.rpartition(".")[0]
        if each.imported in packages() or home in DOORLESS or is_within(each.package, home):
            continue
        past_a_door.append(f"{modules()[each.importer].relative_to(ROOT)}:{each.line} imports {each.imported}")
    assert not past_a_door, "import these names from the package instead:\n" + "\n".join(past_a_door)


@pytest.mark.parametrize("package", sorted(packages()))
def test_a_package_says_what_happens_in_it_and_lists_what_it_offers(package: str) -> None:
    tree = tree_of(package)
    assert ast.get_docstring(tree), f"{package} has no docstring"
    imports_anything = any(isinstance(each, (ast.Import, ast.ImportFrom)) for each in tree.body)
    lists = any(isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__" for each in tree.body)
    assert lists or not imports_anything, f"{package} has no __all__"


@pytest.mark.parametrize("package", sorted(packages()))
def test_a_door_offers_no_name_that_one_of_its_modules_has(package: str) -> None:
    folder = modules()[package].parent
    beside = {path.stem for path in folder.glob("*.py")} | {path.name for path in folder.iterdir() if path.is_dir()}
    taken = names_imported(package) & beside
    assert not taken, f"{package} hides its modules {sorted(taken)} behind names that it exports"


@pytest.mark.parametrize("package", sorted(name for name in packages() if "_MODULES" in modules()[name].read_text()))
def test_a_door_that_loads_on_first_use_finds_the_names_that_type_checkers_see(package: str) -> None:
    door = importlib.import_module(package)
    imported = {
        alias.asname or alias.name: f"{statement.module}:{alias.name}"
        for statement in for_type_checkers(package)
        for alias in statement.names
    }
    places = {name: place.partition(":") for name, place in door._MODULES.items()}
    assert imported == {
        name: f"{module if module.startswith('lance_ops.') else f'{package}.{module}'}:{other or name}"
        for name, (module, _, other) in places.items()
    }
    assert imported.keys() <= set(door.__all__)
    assert all(getattr(door, name) is not None for name in imported)


def test_a_name_that_is_used_through_a_door_is_one_that_the_door_offers() -> None:
    missing = []
    with_doors = packages() - DOORLESS
    for name in modules():
        tree = tree_of(name)
        doors = {
            alias.asname or alias.name: f"{statement.module}.{alias.name}"
            for statement in tree.body
            if isinstance(statement, ast.ImportFrom)
            for alias in statement.names
            if f"{statement.module}.{alias.name}" in with_doors
        }
        missing += [
            f"{name}:{node.lineno} uses {ast.unparse(node)}, which {doors[node.value.id]} does not list"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in doors
            if node.attr not in offered(doors[node.value.id])
        ]
    assert not missing, "\n".join(missing)


def test_no_folder_holds_more_modules_than_a_reader_can_survey() -> None:
    sizes = Counter(name.rpartition(".")[0] for name in modules() if name not in packages())
    crowded = {name: size for name, size in sizes.items() if size > MOST_MODULES and name not in SIBLINGS}
    assert not crowded


def test_packages_beside_each_other_do_not_import_in_a_circle() -> None:
    beside: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in imports():
        if each.importer in packages():
            continue
        theirs, ours = each.imported.split("."), each.importer.split(".")
        shared = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
        if shared is not None:
            beside[".".join(ours[:shared])][ours[shared]].add(theirs[shared])
    for package, edges in beside.items():
        order = topological(edges)
        assert order is not None, f"packages and modules of {package} import each other in a circle: {dict(edges)}"


def topological(edges: dict[str, set[str]]) -> list[str] | None:
    """Return the nodes with every import after its importer; None if there is a circle."""
    waiting = {node: set(targets) for node, targets in edges.items()}
    for targets in edges.values():
        for target in targets:
            waiting.setdefault(target, set())
    order: list[str] = []
    while waiting:
        free = [node for node, targets in waiting.items() if not targets]
        if not free:
            return None
        for node in free:
            del waiting[node]
        for targets in waiting.values():
            targets.difference_update(free)
        order += free
    return order


def test_a_circle_is_found() -> None:
    assert topological({"a": {"b"}, "b": {"c"}}) == ["c", "b", "a"]
    assert topological({"a": {"b"}, "b": {"a"}}) is None


def test_only_classes_with_an_order_use_the_standard_decorator_for_fields() -> None:
    found = [
        (name, use[0])
        for name, path in modules().items()
        if "\nfrom lance_ops" in (text := path.read_text())  # a module without it runs without this package
        for use in _STANDARD_DATACLASS.finditer(text)
    ]
    assert found
    assert [each for each in found if "order=True" not in each[1]] == [], "use lance_ops.core.records.dataclass"
