"""Commands that change a dataset's rows, files, versions and names, or make a dataset."""

from __future__ import annotations

from lance_ops.cli.changing.branch_commands import branches_app
from lance_ops.cli.changing.change_commands import cleanup, compact, delete, reindex, restore
from lance_ops.cli.changing.clone_command import clone
from lance_ops.cli.changing.duplicates_command import duplicates
from lance_ops.cli.changing.erase_command import erase
from lance_ops.cli.changing.fleet_command import fleet
from lance_ops.cli.changing.ingest_command import ingest_files
from lance_ops.cli.changing.merge_command import merge
from lance_ops.cli.changing.migrate_command import migrate
from lance_ops.cli.changing.plan_commands import execute, list_verbs, plan
from lance_ops.cli.changing.repair_command import repair
from lance_ops.cli.changing.tag_commands import tags_app
from lance_ops.cli.changing.upkeep_command import upkeep
from lance_ops.cli.changing.value_commands import add_columns, update

__all__ = [
    "add_columns",
    "branches_app",
    "cleanup",
    "clone",
    "compact",
    "delete",
    "duplicates",
    "erase",
    "execute",
    "fleet",
    "ingest_files",
    "list_verbs",
    "merge",
    "migrate",
    "plan",
    "reindex",
    "repair",
    "restore",
    "tags_app",
    "update",
    "upkeep",
]
