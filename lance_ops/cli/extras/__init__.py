"""What commands use of Dagster and of Spark, which are imported only if a command that needs them runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.cli.extras.dagster_projects import defs_schema, start_project
    from lance_ops.cli.extras.declared_batches import STATES, report_of
    from lance_ops.cli.extras.spark_master import start_spark

__all__ = ["STATES", "defs_schema", "report_of", "start_project", "start_spark"]

_MODULES = {
    "STATES": "declared_batches",
    "defs_schema": "dagster_projects",
    "report_of": "declared_batches",
    "start_project": "dagster_projects",
    "start_spark": "spark_master",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
