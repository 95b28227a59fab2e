"""Say in a sensor's own words why it cannot look at a table that is damaged.

A sensor cannot mend a damage, and a tick that fails shows a traceback every minute. Its tick is skipped instead, with
the table and the remedy. The check `valid` is red meanwhile, so alerts tell of the damage once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import dagster as dg

from lance_ops.core.errors import CorruptFile
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames

__all__ = ["damage_sentence", "remedy_of_damage", "skipping_damage"]

_Result = TypeVar("_Result")
_Tick = Callable[[dg.SensorEvaluationContext], _Result]


def skipping_damage(config: DatasetConfig) -> Callable[[_Tick[_Result]], _Tick[_Result | dg.SkipReason]]:
    """Return a decorator of a sensor's function: a damage of the table skips the tick, which keeps its cursor."""

    def decorate(evaluate: _Tick[_Result]) -> _Tick[_Result | dg.SkipReason]:
        @wraps(evaluate)
        def evaluate_or_skip(context: dg.SensorEvaluationContext) -> _Result | dg.SkipReason:
            try:
                return evaluate(context)
            except CorruptFile as error:
                return dg.SkipReason(damage_sentence(config, error))

        return evaluate_or_skip

    return decorate


def damage_sentence(config: DatasetConfig, error: CorruptFile) -> str:
    """Return which table is damaged, where, and what to do."""
    names = DatasetNames(config.name)
    return f"table {config.name} is damaged: {error}; {remedy_of_damage(names)}"


def remedy_of_damage(names: DatasetNames) -> str:
    """Return what to do about a damage of a dataset."""
    return f"run {names.of('verify')}, which names every damage, then {names.of('repair')}"
