"""Spare Spark's Python workers the archives on their module path.

Spark gives its Python processes a module path that begins with `python/lib/pyspark.zip`, and names a JAR of 6,000
files. Python keeps no bytecode of an archive's modules, so each process compiles them again. PySpark as pip installs it
has the archive inside the package, so the package's own folder holds the same release. And each new worker
calls `importlib.invalidate_caches`. The importers of archives then read the whole directory of their archive again.

Switch off with `LANCE_OPS_DISABLE=spark-archives`.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from zipimport import zipimporter

from lance_ops.core.tricks import Trick

__all__ = ["drop_zipped_pyspark", "forget_archives"]

_ARCHIVE = Path("python", "lib", "pyspark.zip")


def drop_zipped_pyspark() -> None:
    """Remove pyspark's archive from `sys.path`, if Python then finds the package that contains this archive.

    The archive of another installation stays, as its release may differ: that of a Spark that was not installed by pip,
    or of a driver whose folders the executor's Python does not use. Nothing changes if pyspark has been imported.
    """
    if "pyspark" in sys.modules or not Trick.SPARK_ARCHIVES.is_on():
        return
    archives = [entry for entry in sys.path if Path(entry).parts[-3:] == _ARCHIVE.parts]
    others = [entry for entry in sys.path if entry not in archives]
    found = PathFinder.find_spec("pyspark", others) if archives else None
    if found is None or found.origin is None:
        return
    package = Path(found.origin).parent.resolve()
    if all(Path(archive).resolve() == package / _ARCHIVE for archive in archives):
        sys.path[:] = others


def forget_archives() -> None:
    """Drop Python's importers of archives, so that a forked worker has none that reads its archive's directory again.

    An import makes them anew, from the directories that Python has read.
    """
    if Trick.SPARK_ARCHIVES.is_on():
        for path, importer in list(sys.path_importer_cache.items()):
            if isinstance(importer, zipimporter):
                del sys.path_importer_cache[path]
