"""Examine the Dagster instance of this environment. Importing this module needs the `dagster` extra."""

from __future__ import annotations

import os
from collections.abc import Iterator

from lance_ops.cli.doctor.diagnosis import Diagnosis, Verdict
from lance_ops.core.errors import ConfigError
from lance_ops.dagster import inspect_instance

__all__ = ["examine_dagster"]

_HOME = "DAGSTER_HOME"


def examine_dagster() -> Iterator[Diagnosis]:
    """Yield whether the instance is reached, and which of the settings that keep it going it lacks."""
    home = os.environ.get(_HOME)
    if home is None:
        yield Diagnosis("dagster", Verdict.WARN, f"{_HOME} is not set", "set it before you start Dagster's daemon")
        return
    try:
        settings = inspect_instance()
    except ConfigError as error:
        yield Diagnosis("dagster", Verdict.FAIL, str(error), f"mend dagster.yaml in {home}, or its database")
        return
    yield Diagnosis("dagster", Verdict.OK, f"{home}; runs are kept by {settings.run_storage}")
    for lack, remedy in settings.lacks:
        yield Diagnosis("dagster", Verdict.WARN, lack, remedy)
