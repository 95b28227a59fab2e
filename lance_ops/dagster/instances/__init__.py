"""The settings of a Dagster instance under which datasets stay healthy unattended, as files to copy.

`laptop.yaml` stores in SQLite, `team.yaml` in PostgreSQL. The tests run the daemon on
these very files, and kill a run under `team.yaml`.
"""

from __future__ import annotations

from importlib import resources
from typing import Literal

__all__ = ["instance_file"]


def instance_file(which: Literal["laptop", "team"]) -> str:
    """Return the text of an instance file, for `$DAGSTER_HOME/dagster.yaml`."""
    return resources.files(__name__).joinpath(f"{which}.yaml").read_text("utf-8")
