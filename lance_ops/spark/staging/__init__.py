"""Write DataFrames as datasets for the steps of a verb that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.staging.staged_frame import write_frame, write_row_values

__all__ = ["write_frame", "write_row_values"]

_MODULES = dict.fromkeys(__all__, "staged_frame")

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
