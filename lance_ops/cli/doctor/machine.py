"""Examine the machine: Python, its cores, the packages of each extra, and the compiled kernels."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

import lance_ops
from lance_ops.cli.doctor.diagnosis import Diagnosis, Verdict
from lance_ops.core.threads import available_cores
from lance_ops.kernels import cached_code

__all__ = ["examine_machine"]

_OF_EXTRA = re.compile(r"(?P<package>[A-Za-z0-9_.-]+).*;.*\bextra == ['\"](?P<extra>[a-z-]+)['\"]")
_COLLECTIONS = {"all"}
"""Extras that name other extras, and no package of their own."""


def examine_machine() -> Iterator[Diagnosis]:
    """Yield what this machine has: Python and cores, each extra, and whether the kernels are compiled."""
    python = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    yield Diagnosis(
        "lance-ops", Verdict.OK, f"{lance_ops.__version__}, {python} {platform.machine()}, {available_cores()} cores"
    )
    for extra, packages in _packages_of_extras().items():
        yield _extra(extra, packages)
    yield _kernels()


def _packages_of_extras() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for requirement in requires("lance-ops") or ():
        match = _OF_EXTRA.match(requirement)
        if match is not None and match["extra"] not in _COLLECTIONS:
            found.setdefault(match["extra"], []).append(match["package"])
    return found


def _extra(extra: str, packages: list[str]) -> Diagnosis:
    installed, missing = [], []
    for package in packages:
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        what = f"{', '.join(missing)} not installed"
        return Diagnosis(f"extra {extra}", Verdict.ABSENT, what, f"if you need it: pip install 'lance-ops[{extra}]'")
    return Diagnosis(f"extra {extra}", Verdict.OK, ", ".join(installed))


def _kernels() -> Diagnosis:
    folder, count = cached_code()
    if folder is None:
        what = "no folder can be written, so every process compiles its kernels again"
        return Diagnosis("kernels", Verdict.WARN, what, "set NUMBA_CACHE_DIR to a folder that can be written")
    if not count:
        what = "nothing is compiled yet, so the first use of each kernel takes seconds"
        return Diagnosis("kernels", Verdict.WARN, what, "run `python -m lance_ops.kernels.warm` when an image is built")
    return Diagnosis("kernels", Verdict.OK, f"{count} are compiled, in {folder}")
