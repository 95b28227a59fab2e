"""The daemon of workers imports pyspark from its folder, and only if the archive before it is of the same release."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from lance_ops.core.tricks import Trick

_LOOK = """
import sys
from lance_ops.spark.worker_daemon.spark_archives import drop_zipped_pyspark

if "imported" in sys.argv:
    import pyspark
drop_zipped_pyspark()
import pyspark

print(pyspark.__file__)
print(*sys.path, sep="\\n")
"""
_INSIDE = Path("python", "lib", "pyspark.zip")


def installed(site: Path, release: str) -> Path:
    """Make a folder of packages with a pyspark, which holds itself as an archive too; return the archive."""
    package = site / "pyspark"
    archive = package / _INSIDE
    archive.parent.mkdir(parents=True)
    (package / "__init__.py").write_text(f"release = {release!r}\n")
    with zipfile.ZipFile(archive, "w") as written:
        written.write(package / "__init__.py", "pyspark/__init__.py")
    return archive


def imported_from(*path: Path, words: tuple[str, ...] = (), disabled: str = "") -> tuple[str, list[str]]:
    """Return the file of the pyspark that a process imports with this module path, and the path at the end."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*map(str, path), str(Path(__file__).parents[2])]),
        "LANCE_OPS_DISABLE": disabled,
    }
    command = [sys.executable, "-c", _LOOK, *words]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=120)
    file, *entries = shown.stdout.splitlines()
    return file, entries


def test_the_package_that_holds_the_archive_is_imported_and_nothing_else_moves(tmp_path: Path) -> None:
    site, own = tmp_path / "site", tmp_path / "own"
    archive = installed(site, "1")
    own.mkdir()
    _, before = imported_from(archive, own, site, disabled=Trick.SPARK_ARCHIVES.value)
    file, after = imported_from(archive, own, site)
    assert file == str(site / "pyspark" / "__init__.py")
    assert after == [entry for entry in before if entry != str(archive)]


def test_a_link_to_the_installation_is_the_installation(tmp_path: Path) -> None:
    installed(tmp_path / "site", "1")
    (tmp_path / "linked").symlink_to(tmp_path / "site")
    file, _ = imported_from(tmp_path / "linked" / "pyspark" / _INSIDE, tmp_path / "site")
    assert file == str(tmp_path / "site" / "pyspark" / "__init__.py")


def test_an_archive_of_another_installation_is_kept(tmp_path: Path) -> None:
    archive = installed(tmp_path / "spark", "1")
    installed(tmp_path / "site", "2")
    file, _ = imported_from(archive, tmp_path / "site")
    assert file == str(archive / "pyspark" / "__init__.py")


def test_an_archive_is_kept_if_another_pyspark_stands_before_the_package_that_holds_it(tmp_path: Path) -> None:
    archive = installed(tmp_path / "site", "1")
    installed(tmp_path / "other", "2")
    file, _ = imported_from(archive, tmp_path / "other", tmp_path / "site")
    assert file == str(archive / "pyspark" / "__init__.py")


def test_what_is_imported_stays_and_so_does_its_path(tmp_path: Path) -> None:
    archive = installed(tmp_path / "site", "1")
    file, entries = imported_from(archive, tmp_path / "site", words=("imported",))
    assert file == str(archive / "pyspark" / "__init__.py")
    assert str(archive) in entries


def test_the_archive_is_kept_with_the_trick_off(tmp_path: Path) -> None:
    archive = installed(tmp_path / "site", "1")
    file, _ = imported_from(archive, tmp_path / "site", disabled="aio,spark-archives")
    assert file == str(archive / "pyspark" / "__init__.py")


_WORKER = """
import importlib, sys, zipimport
from lance_ops.spark.worker_daemon.spark_archives import forget_archives

read = []
own = zipimport._read_directory
zipimport._read_directory = lambda archive: read.append(archive) or own(archive)
import first
forget_archives()
importlib.invalidate_caches()  # as a new worker does
import second
print(*read, second.__file__, sep="\\n")
"""


def test_a_worker_reads_no_directory_of_an_archive_again(tmp_path: Path) -> None:
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as written:
        for name in ("first", "second"):
            written.writestr(f"{name}.py", "")
    for disabled, times in ((Trick.SPARK_ARCHIVES.value, 1), ("", 0)):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(archive), str(Path(__file__).parents[2])]),
            "LANCE_OPS_DISABLE": disabled,
        }
        command = [sys.executable, "-c", _WORKER]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=120)
        *read, file = shown.stdout.splitlines()
        assert read.count(str(archive)) == times
        assert file == str(archive / "second.py")
