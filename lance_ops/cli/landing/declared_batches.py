"""Ask a declaration and this environment's Dagster instance for batches. Importing this needs the `dagster` extra."""

from __future__ import annotations

import os
from pathlib import Path

from dotenv import load_dotenv

from lance_ops.dagster import BatchReport, BatchState, batch_states, load_dataset, open_instance

__all__ = ["STATES", "report_of"]

STATES = tuple(state.value for state in BatchState)
"""The states that a batch can be in."""

_HOME = "DAGSTER_HOME"


def report_of(declaration: Path) -> BatchReport:
    """Return the states of a dataset's batches; without DAGSTER_HOME, those that folder and table tell.

    Variables that are not set come from `.env` in the working folder, as for Dagster's commands.
    Raises `ConfigError` for a wrong declaration, or an instance that cannot be opened.
    """
    load_dotenv(Path(".env"))
    config = load_dataset(declaration)
    if not os.environ.get(_HOME):
        return batch_states(config)
    with open_instance() as instance:
        return batch_states(config, instance)
