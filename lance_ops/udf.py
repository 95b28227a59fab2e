"""The reference's `lance.udf`: functions that make columns."""

from lance_ops.api import BatchUDF, batch_udf, batch_udf_factory

__all__ = ["BatchUDF", "batch_udf", "batch_udf_factory"]
