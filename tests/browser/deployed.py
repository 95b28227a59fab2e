"""The code location that the browser looks at. Its folders stand beneath `BROWSED_ROOT`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dagster as dg

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.fleet import FleetConfig, build_fleet_definitions

ROOT = Path(os.environ["BROWSED_ROOT"])


def table(name: str, **declared: Any) -> dg.Definitions:
    """Return the definitions of a dataset in the lake."""
    uri = str(ROOT / "lake" / f"{name}.lance")
    return build_definitions(DatasetConfig.model_validate({"name": name, "uri": uri, "runner": "threads", **declared}))


defs = dg.Definitions.merge(
    table("trips", raw={"uri": str(ROOT / "landing"), "glob": "*.parquet"}, description="One file lands each day."),
    table("orders"),
    table("people"),
    table("readings"),
    build_fleet_definitions(
        # Without a schedule: a second night, at one o'clock, would find nothing left to do.
        FleetConfig.model_validate({"name": "silver", "root": str(ROOT / "silver"), "runner": "threads", "cron": None})
    ),
    dg.Definitions(executor=dg.in_process_executor),
)
