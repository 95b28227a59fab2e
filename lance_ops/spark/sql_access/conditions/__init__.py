"""Conditions of Spark's SQL as predicates of this library, with the constants in them as Spark evaluates them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.spark.sql_access.conditions.evaluated_constants import EvaluatedConstants
    from lance_ops.spark.sql_access.conditions.translation import ConditionTranslation

__all__ = ["ConditionTranslation", "EvaluatedConstants"]

_MODULES = {"ConditionTranslation": "translation", "EvaluatedConstants": "evaluated_constants"}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
