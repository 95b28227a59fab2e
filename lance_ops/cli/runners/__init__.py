"""Let a command run its tasks on Spark, which is imported only if the command line names a Spark master."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.cli.runners.spark_master import start_spark

__all__ = ["start_spark"]

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, dict.fromkeys(__all__, "spark_master"))
