"""Say in a sensor's own words why it cannot look at a table that is damaged.

A sensor cannot mend a damage, and a tick that fails shows a traceback every minute. Where the newest version does not
open, the tick is skipped instead, with the table and the remedy. The check `valid` is red meanwhile, so alerts tell of
the damage once. No check tells of a damage of older versions, so a tick that needs these fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import dagster as dg

from lance_ops.core.errors import CorruptFile
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.opening import open_to_look

__all__ = ["damage_sentence", "remedy_of_damage", "skip_tick_if_damaged", "why_unopened"]

_Result = TypeVar("_Result")
_Tick = Callable[[dg.SensorEvaluationContext], _Result]


def skip_tick_if_damaged(config: DatasetConfig) -> Callable[[_Tick[_Result]], _Tick[_Result | dg.SkipReason]]:
    """Return a decorator of a sensor's function: a newest version that does not open skips the tick."""

    def decorate(evaluate: _Tick[_Result]) -> _Tick[_Result | dg.SkipReason]:
        @wraps(evaluate)
        def evaluate_or_skip(context: dg.SensorEvaluationContext) -> _Result | dg.SkipReason:
            try:
                return evaluate(context)
            except CorruptFile as error:
                return dg.SkipReason(why_unopened(config, error))

        return evaluate_or_skip

    return decorate


def why_unopened(config: DatasetConfig, error: CorruptFile) -> str:
    """Return what `damage_sentence` does if the newest version does not open; raise `error` if it does."""
    try:
        open_to_look(config)
    except CorruptFile:
        return damage_sentence(config, error)
    raise error


def damage_sentence(config: DatasetConfig, error: CorruptFile) -> str:
    """Return which table is damaged, where, and what to do."""
    names = DatasetNames(config.name)
    return f"table {config.name} is damaged: {error}; {remedy_of_damage(names)}"


def remedy_of_damage(names: DatasetNames) -> str:
    """Return what to do about a damage of a dataset."""
    return f"run {names.of('verify')}, which names every damage, then {names.of('repair')}"
