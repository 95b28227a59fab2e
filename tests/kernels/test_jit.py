"""Where compiled code is kept, asked of fresh processes."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lance_ops import kernels
from lance_ops.kernels.stamp import sources_of

PACKAGE = Path(kernels.__file__).parent.parent

USE = """
import sys
import numpy as np
from lance_ops import kernels
from lance_ops.kernels.arrays import readable
none = readable(np.zeros(0, np.int64))
kernels.copy_ranges(readable(np.zeros(8, np.uint8)), none, none, np.zeros(8, np.uint8), none)
stats = kernels.copy_ranges.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
print("numba.np.linalg" in sys.modules)
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the kernels without anything compiled, importable from its root."""
    root = tmp_path / "site"
    shutil.copytree(PACKAGE / "kernels", root / "lance_ops" / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "lance_ops" / "__init__.py").touch()
    (root / "lance_ops" / "core").mkdir()
    for name in "ndarrays.py", "lazy_import.py":
        shutil.copy(PACKAGE / "core" / name, root / "lance_ops" / "core")
    return root


def use(root: Path, **environment: str) -> tuple[int, int, str]:
    """Call a kernel in a fresh process; return the cache's hits, its misses and where it is.

    What compiling needs is loaded by those processes alone that compile.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "PYTHONDONT"))}
    environ = inherited | {"PYTHONPATH": str(root), "HOME": str(root / "home")} | environment
    environ.pop("XDG_CACHE_HOME", None)
    command = [sys.executable, "-c", USE]
    done = subprocess.run(command, env=environ, cwd=root, capture_output=True, text=True, check=True)
    found, can_compile = done.stdout.splitlines()
    hits, misses, path = found.split(maxsplit=2)
    assert (can_compile == "True") == (misses != "0")
    return int(hits), int(misses), path


def test_compiled_code_is_kept_beside_the_source_and_found_again(copied: Path) -> None:
    folder = str(copied / "lance_ops" / "kernels" / "__pycache__")
    assert use(copied) == (0, 1, folder)
    assert use(copied) == (1, 0, folder)


@pytest.mark.parametrize(("changed", "compiled"), [("unaligned.py", True), ("strings.py", False)])
def test_a_change_in_a_file_that_a_kernel_is_made_of_compiles_it_anew(
    copied: Path, changed: str, compiled: bool
) -> None:
    use(copied)
    with (copied / "lance_ops" / "kernels" / changed).open("a") as source:
        source.write("# changed\n")
    assert use(copied)[:2] == ((0, 1) if compiled else (1, 0))


@pytest.mark.parametrize("path", sorted(Path(kernels.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_a_stamp_covers_every_module_that_a_file_imports_of_ours(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    ours = {name for name in imported if name.startswith("lance_ops")} - {"lance_ops.core.ndarrays"}  # types alone
    if path.stem == "__init__":  # makes kernels known, and has none
        return
    assert all(name.startswith("lance_ops.kernels.") for name in ours)
    assert {name.rpartition(".")[2] for name in ours} <= sources_of(path.stem)


def test_whatever_is_compiled_into_a_kernel_is_in_its_stamp() -> None:
    for name in kernels.__all__:
        seen, waiting = set(), [getattr(kernels, name).py_func]
        module = waiting[0].__module__.rpartition(".")[2]
        while waiting:
            function = waiting.pop()
            if function in seen:
                continue
            seen.add(function)
            assert function.__module__.rpartition(".")[2] in sources_of(module), (name, function)
            used = [function.__globals__.get(used) for used in function.__code__.co_names]
            waiting += [found.py_func for found in used if hasattr(found, "py_func")]


def test_a_filled_read_only_folder_is_used_as_it_is(copied: Path) -> None:
    use(copied)
    folder = copied / "lance_ops" / "kernels" / "__pycache__"
    blocked = deny_writing(folder)
    try:
        assert use(copied, PYTHONDONTWRITEBYTECODE="1", **blocked) == (1, 0, str(folder))
    finally:
        folder.chmod(0o755)


def test_without_any_folder_to_write_to_kernels_still_work(copied: Path) -> None:
    source = copied / "lance_ops" / "kernels"
    (copied / "home").touch()  # a file: no folder can be made below it
    (source / "__pycache__").touch()
    assert use(copied, PYTHONDONTWRITEBYTECODE="1") == (0, 1, "None")


def test_importing_the_package_does_not_import_numba() -> None:
    code = "import sys, lance_ops.encodings.registry, lance_ops.encodings.choose; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert done.stdout.strip() == "False"


def test_an_unknown_kernel_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_kernel"):
        kernels.no_such_kernel  # noqa: B018 # what raises


def test_warming_calls_every_kernel() -> None:
    from lance_ops.kernels.warm import warm

    warm()
    for name in kernels.__all__:
        assert getattr(kernels, name).signatures, name


def deny_writing(folder: Path) -> dict[str, str]:
    """Make a folder read-only; root writes anyway, so `os.access` has to be told."""
    folder.chmod(0o555)
    if os.geteuid():
        return {}
    hook = folder.parent.parent.parent / "sitecustomize.py"
    hook.write_text(
        "import os\n"
        "access = os.access\n"
        "def may(path, mode, **options):\n"
        f"    return access(path, mode, **options) and not (mode == os.W_OK and str(path) == {str(folder)!r})\n"
        "os.access = may\n"
    )
    return {}
