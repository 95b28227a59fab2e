"""What commands use of the Dagster room. Importing this module needs the `dagster` extra."""

from __future__ import annotations

from lance_ops.dagster.project import defs_schema, start_project

__all__ = ["defs_schema", "start_project"]
