"""Where compiled code is kept, asked of fresh processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lance_ops import kernels

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
    shutil.copy(PACKAGE / "core" / "on_demand.py", root / "lance_ops" / "core")
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


def test_a_change_in_any_kernel_file_compiles_anew(copied: Path) -> None:
    use(copied)
    with (copied / "lance_ops" / "kernels" / "strings.py").open("a") as source:
        source.write("# changed\n")
    assert use(copied)[:2] == (0, 1)


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
        kernels.no_such_kernel  # noqa: B018


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
