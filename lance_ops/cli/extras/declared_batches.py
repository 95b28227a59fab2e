"""Ask a declaration and this environment's Dagster instance for batches. Importing this needs the `dagster` extra."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

from dotenv import load_dotenv

from lance_ops.core.errors import ConfigError
from lance_ops.dagster import BatchReport, BatchState, batch_states, load_dataset, open_instance
from lance_ops.maintenance.ingest import local_path

__all__ = ["STATES", "report_of"]

STATES = tuple(state.value for state in BatchState)
"""The states that a batch can be in."""

_HOME = "DAGSTER_HOME"


def report_of(declaration: Path) -> BatchReport:
    """Return the states of a dataset's batches; without DAGSTER_HOME, those that folder and table tell.

    Variables that are not set come from `.env` in the working folder, as for Dagster's commands.
    Raises `ConfigError` for a wrong declaration, an instance that cannot be opened, or a landing folder that is not
    there and of which nothing is known.
    """
    load_dotenv(Path(".env"))
    config = load_dataset(declaration)
    with open_instance() if os.environ.get(_HOME) else nullcontext() as instance:
        report = batch_states(config, instance)
    folder = local_path(config.landing().location().uri)
    if not report.batches and folder is not None and not os.path.isdir(os.path.expanduser(folder)):
        raise ConfigError(f"{declaration}: raw.uri: there is no folder {folder}: create it, or mend the declaration")
    return report
