"""Where compiled kernels are cached, and when the cache is valid; seen from fresh processes."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lance_ops import kernels
from lance_ops.kernels.compile.source_hash import module_of, sources_of
from lance_ops.kernels.without_numba import FirstCalls

pytestmark = pytest.mark.xdist_group("compiled kernels")  # one worker compiles what tests copy

PACKAGE = Path(kernels.__file__).parent.parent
PLAIN = {"cached_code", "do_without_numba", "load_kernels", "read_only"}
COMPILED = [name for name in kernels.__all__ if name not in PLAIN and not name.isupper()]

USE = """
import sys
import numpy as np
from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only
none = read_only(np.zeros(0, np.int64))
kernels.copy_ranges(read_only(np.zeros(8, np.uint8)), none, none, np.zeros(8, np.uint8), none)
stats = kernels.copy_ranges.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
print("numba.np.linalg" in sys.modules)
"""


def copy_kernels(root: Path, *left_out: str) -> Path:
    """Copy the kernels without files of these names, importable from the root that is returned."""
    shutil.copytree(PACKAGE / "kernels", root / "lance_ops" / "kernels", ignore=shutil.ignore_patterns(*left_out))
    (root / "lance_ops" / "__init__.py").touch()
    (root / "lance_ops" / "core").mkdir()
    for name in ("lazy_import.py", "ndarrays.py", "tricks.py"):
        shutil.copy(PACKAGE / "core" / name, root / "lance_ops" / "core")
    return root


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the kernels without anything compiled."""
    return copy_kernels(tmp_path / "site", "__pycache__")


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the kernels in which one process compiled one, beside its source."""
    root = copy_kernels(tmp_path_factory.mktemp("compiled") / "site", "__pycache__")
    assert use(root) == (0, 1, str(root / "lance_ops" / "kernels" / "__pycache__"))
    return root


@pytest.fixture
def filled(compiled_once: Path, tmp_path: Path) -> Path:
    """A copy of that folder, for a test of its own: what is cached does not depend on where it is."""
    return Path(shutil.copytree(compiled_once, tmp_path / "site"))


def use(root: Path, **environment: str) -> tuple[int, int, str]:
    """Call a kernel in a fresh process; return the cache's hits, its misses and its folder.

    A process that finds the kernel in our cache does not load what only a compilation needs.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "PYTHONDONT"))}
    environ = inherited | {"PYTHONPATH": str(root), "HOME": str(root / "home")} | environment
    environ.pop("XDG_CACHE_HOME", None)
    command = [sys.executable, "-c", USE]
    done = subprocess.run(command, env=environ, cwd=root, capture_output=True, text=True, check=True)
    found, can_compile = done.stdout.splitlines()
    hits, misses, path = found.split(maxsplit=2)
    if "LANCE_OPS_DISABLE" not in environment:
        assert (can_compile == "True") == (misses != "0")
    return int(hits), int(misses), path


def test_compiled_code_is_cached_beside_the_source_and_found_again(filled: Path) -> None:
    assert use(filled) == (1, 0, str(filled / "lance_ops" / "kernels" / "__pycache__"))


@pytest.mark.parametrize(("changed", "compiled"), [("unaligned.py", True), ("strings.py", False)])
def test_a_kernel_is_compiled_again_after_a_file_that_it_imports_changed(
    filled: Path, changed: str, compiled: bool
) -> None:
    with (filled / "lance_ops" / "kernels" / changed).open("a") as source:
        source.write("# changed\n")
    assert use(filled)[:2] == ((0, 1) if compiled else (1, 0))


SOURCES = sorted(map(str, Path(kernels.__file__).parent.rglob("*.py")))


@pytest.mark.parametrize("path", SOURCES, ids=module_of)
def test_the_source_hash_covers_every_kernel_module_that_a_file_imports(path: str) -> None:
    tree = ast.parse(Path(path).read_bytes())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    ours = {name for name in imported if name.startswith("lance_ops")}
    others = {f"lance_ops.core.{name}" for name in ("lazy_import", "ndarrays", "threads", "tricks")}  # not compiled
    assert all(name.startswith("lance_ops.kernels.") for name in ours - others)
    assert {name.removeprefix("lance_ops.kernels.") for name in ours - others} <= sources_of(module_of(path))


def test_the_source_hash_covers_every_function_that_is_compiled_into_a_kernel() -> None:
    for name in COMPILED:
        seen, waiting = set(), [compiled(name).py_func]
        module = name_of(waiting[0])
        while waiting:
            function = waiting.pop()
            if function in seen:
                continue
            seen.add(function)
            assert name_of(function) in sources_of(module), (name, function)
            used = [function.__globals__.get(used) for used in function.__code__.co_names]
            waiting += [found.py_func for found in used if hasattr(found, "py_func")]


def test_a_filled_read_only_cache_folder_is_used(filled: Path) -> None:
    folder = filled / "lance_ops" / "kernels" / "__pycache__"
    blocked = deny_writing(folder)
    try:
        assert use(filled, PYTHONDONTWRITEBYTECODE="1", **blocked) == (1, 0, str(folder))
    finally:
        folder.chmod(0o755)


def test_kernels_work_when_no_folder_can_be_written(copied: Path) -> None:
    source = copied / "lance_ops" / "kernels"
    (copied / "home").touch()  # a file: no folder can be made below it
    (source / "__pycache__").touch()
    assert use(copied, PYTHONDONTWRITEBYTECODE="1") == (0, 1, "None")


def test_with_the_kernel_cache_off_numba_caches_itself(copied: Path) -> None:
    folder = str(copied / "lance_ops" / "kernels" / "__pycache__")
    assert use(copied, LANCE_OPS_DISABLE="kernel-cache") == (0, 1, folder)
    assert use(copied, LANCE_OPS_DISABLE="kernel-cache") == (1, 0, folder)


def test_with_the_kernel_cache_off_kernels_work_when_no_folder_can_be_written(copied: Path) -> None:
    (copied / "home").touch()
    (copied / "lance_ops" / "kernels" / "__pycache__").touch()
    assert use(copied, PYTHONDONTWRITEBYTECODE="1", LANCE_OPS_DISABLE="kernel-cache") == (0, 1, "None")


SPLIT = """
import sys
import numpy as np
from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only
kernels.split_strings.load()  # before, its twin would answer
data, offsets = read_only(np.arange(40, dtype=np.uint8)), read_only(np.array([0, 7, 7, 20, 40]))
out, sizes = np.zeros(120, np.uint8), np.zeros(2, np.int64)
kernels.split_strings(data, offsets, read_only(np.array([3, 1])), 4, out, sizes)
print(sizes.tolist(), out.tobytes().hex())
hits = sum(kernels.split_strings.stats.cache_hits.values())
print(hits, "numba.np.arrayobj" in sys.modules)
if hits:  # another signature is compiled after the first was loaded
    again = np.zeros(120, np.uint8)
    kernels.split_strings(data, offsets, np.array([3, 1]), 4, again, sizes)
    assert again.tobytes() == out.tobytes() and kernels.split_strings.stats.cache_misses
"""


def test_loading_a_kernel_does_not_import_the_modules_that_its_parts_come_from(copied: Path) -> None:
    environ = os.environ | {"PYTHONPATH": str(copied)}
    environ.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", SPLIT]
    compiled, loaded = (
        subprocess.run(command, env=environ, cwd=copied, capture_output=True, text=True, check=True).stdout.splitlines()
        for _ in range(2)
    )
    assert compiled[0] == loaded[0]
    assert compiled[1] == "0 True"
    assert loaded[1] == "1 False"


WORDS = """
import hashlib
import numpy as np
from lance_ops import kernels
from lance_ops.kernels import read_only
kernels.pack_runs.load()  # before, its twin would answer
values = np.random.default_rng(0).integers(0, 1 << 20, 3000, np.uint64)
data = read_only(values.view(np.uint8))
counts, offsets = read_only(np.array([1024, 1024, 952])), read_only(np.arange(0, 24_001, 8))
packed, sizes, hashes = np.zeros(30_000, np.uint8), np.zeros(3, np.int64), np.zeros(3000, np.uint64)
kernels.pack_runs(data, counts, -1, 64, packed, sizes)
kernels.xxh64(data, offsets, hashes)
print(hashlib.sha256(packed.tobytes() + sizes.tobytes() + hashes.tobytes()).hexdigest())
print(sum(kernels.pack_runs.stats.cache_misses.values()))
"""


def packed_words(root: Path, disabled: str) -> list[str]:
    """Run copied kernels in a fresh process; return the digest of what they wrote, and what was not in their cache."""
    environ = os.environ | {"PYTHONPATH": str(root), "LANCE_OPS_DISABLE": disabled}
    environ.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", WORDS]
    done = subprocess.run(command, env=environ, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def with_every_trick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A copy of the kernels with their compiled code, and the digest of a process that has every trick on.

    What other workers are writing is left out.
    """
    root = copy_kernels(tmp_path_factory.mktemp("tricks") / "site", "*.tmp.*", "*.pyc*")
    return root, packed_words(root, "")[0]


@pytest.mark.parametrize("trick", ["unaligned-words", "uncounted-arrays"])
def test_kernels_write_the_same_bytes_with_a_trick_of_the_compiler_off(
    with_every_trick: tuple[Path, str], tmp_path: Path, trick: str
) -> None:
    root, digest = with_every_trick
    off = packed_words(shutil.copytree(root, tmp_path / "site"), trick)
    assert off[0] == digest
    assert off[1] != "0"  # code that was compiled with the trick is not loaded without it


def test_importing_the_package_does_not_import_numba() -> None:
    modules = "lance_ops.encodings.compressive.registry, lance_ops.encodings.choosing.choose"
    code = f"import sys, {modules}; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert done.stdout.strip() == "False"


def test_an_unknown_kernel_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_kernel"):
        kernels.no_such_kernel  # noqa: B018 # what raises


def test_warm_compiles_every_kernel() -> None:
    from lance_ops.kernels.warm import warm

    warm()
    for name in COMPILED:
        assert compiled(name).signatures, name


def compiled(name: str) -> Any:
    found = getattr(kernels, name)
    return found.load() if isinstance(found, FirstCalls) else found


def name_of(function: object) -> str:
    return function.__module__.removeprefix("lance_ops.kernels.")


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
