"""Import pyspark from its folder rather than from the archive that Spark puts before it.

Spark gives its Python processes a module path that begins with `python/lib/pyspark.zip`. Python keeps no bytecode of an
archive's modules, so each process compiles them again. PySpark as pip installs it has the archive inside the package,
so the package's own folder holds the same release.

Switch off with `LANCE_OPS_DISABLE=unzipped-pyspark`.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

from lance_ops.core.tricks import Trick

__all__ = ["leave_zipped_pyspark"]

_ARCHIVE = Path("python", "lib", "pyspark.zip")


def leave_zipped_pyspark() -> None:
    """Take the archive of pyspark from `sys.path` if the package that holds it is what Python then finds.

    An archive of another installation stays, for its release may be another: that of a Spark that was not installed by
    pip, or of a driver whose folders the executor's Python does not use. So it does when pyspark has been imported.
    """
    if "pyspark" in sys.modules or not Trick.UNZIPPED_PYSPARK.is_on():
        return
    archives = [entry for entry in sys.path if Path(entry).parts[-3:] == _ARCHIVE.parts]
    others = [entry for entry in sys.path if entry not in archives]
    found = PathFinder.find_spec("pyspark", others) if archives else None
    if found is None or found.origin is None:
        return
    package = Path(found.origin).parent.resolve()
    if all(Path(archive).resolve() == package / _ARCHIVE for archive in archives):
        sys.path[:] = others
