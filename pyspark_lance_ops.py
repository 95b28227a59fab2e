"""Where Spark looks for data sources: a module named `pyspark_*` with a `DefaultSource`.

Installed beside `lance_ops`, it makes `spark.read.format("lance")` work without a call.
"""

from lance_ops.spark import LanceSource as DefaultSource

__all__ = ["DefaultSource"]
