"""Look for what would stop this machine, a store or a Dagster instance from doing its work.

Each module examines one thing and yields its findings. What needs Spark or Dagster is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.cli.doctor.dagster_home import examine_dagster
    from lance_ops.cli.doctor.diagnosis import Diagnosis, Verdict
    from lance_ops.cli.doctor.machine import examine_machine
    from lance_ops.cli.doctor.spark_runtime import examine_spark
    from lance_ops.cli.doctor.table_store import examine_store

__all__ = ["Diagnosis", "Verdict", "examine_dagster", "examine_machine", "examine_spark", "examine_store"]

_MODULES = {
    "Diagnosis": "diagnosis",
    "Verdict": "diagnosis",
    "examine_dagster": "dagster_home",
    "examine_machine": "machine",
    "examine_spark": "spark_runtime",
    "examine_store": "table_store",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
