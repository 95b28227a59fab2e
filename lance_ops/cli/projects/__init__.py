"""Let commands write Dagster projects; Dagster is imported only if one of them runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.cli.projects.dagster_projects import defs_schema, start_project

__all__ = ["defs_schema", "start_project"]

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(
        __name__, {"defs_schema": "dagster_projects", "start_project": "dagster_projects"}
    )
