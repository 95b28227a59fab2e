"""Fork Spark's Python workers from a process that has loaded this library: `spark.python.daemon.module`.

The processes in which Spark plans a query, and those that commit a write, do not heed the setting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.worker_daemon.serving import serve
    from lance_ops.spark.worker_daemon.spark_archives import drop_zipped_pyspark

__all__ = ["drop_zipped_pyspark", "serve"]

_MODULES = {"drop_zipped_pyspark": "spark_archives", "serve": "serving"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
