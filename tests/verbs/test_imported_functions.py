"""A plan of a function is executed by the code that it was made with, wherever the function comes from."""

from __future__ import annotations

import importlib
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.core.errors import InvalidInput, PlanOutdated
from lance_ops.verbs import AddColumns, StoredPlan, execute_plan, make_plan
from lance_ops.verbs.imported_functions import function_token

CODE = "import pyarrow as pa\n\ndef priced(batch):\n    return pa.table({'price': batch['x']})\n"
CHANGED = CODE.replace("batch['x']", "pa.nulls(len(batch))")
PRICED = AddColumns(function="priced_columns:priced")


@pytest.fixture
def numbers(dataset_uri: str) -> LanceDataset:
    return write_dataset(pa.table({"x": range(12)}), dataset_uri)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules that can be imported; those of it are not loaded after the test."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    unload(folder)


def unload(folder: Path) -> None:
    """Forget the modules of a folder, as a new process has none of them."""
    for name in [name for name, module in sys.modules.items() if str(folder) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]


def save(file: Path, text: str) -> None:
    file.write_text(text)
    importlib.invalidate_caches()


def test_a_plan_is_refused_when_the_code_of_its_function_has_changed(numbers: LanceDataset, modules: Path) -> None:
    file = modules / "priced_columns.py"
    save(file, CODE)
    plan = StoredPlan.from_json(make_plan(PRICED, numbers)[0].to_json())
    unload(modules)
    save(file, CHANGED)
    with pytest.raises(PlanOutdated, match="priced_columns:priced has changed since the plan"):
        execute_plan(plan, dataset(numbers.uri))
    assert dataset(numbers.uri).version == 1
    unload(modules)
    save(file, CODE)
    assert execute_plan(plan, dataset(numbers.uri)).version == 2


def test_a_process_that_still_runs_the_old_code_neither_plans_nor_executes(
    numbers: LanceDataset, modules: Path
) -> None:
    file = modules / "priced_columns.py"
    save(file, CODE)
    plan, _ = make_plan(PRICED, numbers)
    save(file, CHANGED)
    with pytest.raises(InvalidInput, match="priced_columns has changed since its import: restart"):
        make_plan(PRICED, numbers)
    with pytest.raises(InvalidInput, match="priced_columns has changed since its import: restart"):
        execute_plan(plan, numbers)
    unload(modules)
    make_plan(PRICED, numbers)


def test_functions_without_a_file_of_their_own_have_no_token(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = ModuleType("notebook_of_a_test")
    exec("def f(batch): return batch", vars(notebook))
    monkeypatch.setitem(sys.modules, notebook.__name__, notebook)
    archive = modules / "archive.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("module_in_an_archive.py", CODE)
    monkeypatch.syspath_prepend(str(archive))
    for path in ("notebook_of_a_test:f", "module_in_an_archive:priced", "builtins:len", "math:sqrt"):
        assert function_token(path) == "", path


@pytest.mark.parametrize(
    "named",
    [
        "priced = functools.partial(defining.priced)",
        "priced = functools.wraps(defining.priced)(lambda batch: defining.priced(batch))",
        "priced = defining.made(defining.priced)",
    ],
    ids=["partial", "wrapper", "closure of a decorator"],
)
@pytest.mark.parametrize("changed", ["naming", "defining"])
def test_the_module_that_is_named_and_the_one_that_defines_the_function_count(
    modules: Path, named: str, changed: str
) -> None:
    texts = {
        "naming": f"import functools, defining\n{named}\n",
        "defining": f"{CODE}\ndef made(function):\n    return lambda batch: function(batch)\n",
    }
    token = _written_token(modules, texts)
    assert token() == token()
    before = token()
    texts[changed] += "# changed\n"
    assert token() != before


def _written_token(folder: Path, texts: dict[str, str]) -> Callable[[], str]:
    """Return a function that writes the modules and gives the token of `naming:priced` in what is as a new process."""

    def token() -> str:
        unload(folder)
        for name, text in texts.items():
            save(folder / f"{name}.py", text)
        return function_token("naming:priced")

    return token
