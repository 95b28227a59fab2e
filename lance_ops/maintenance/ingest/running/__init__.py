"""Run the tasks of an ingestion, which refuse what the table cannot hold unchanged, and commit what they wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.ingest.running.ingest_commit import IngestResult, commit_ingest
    from lance_ops.maintenance.ingest.running.ingest_tasks import (
        WrittenFiles,
        execute,
        pending_files,
        run_tasks,
        store_of_rows,
    )

__all__ = [
    "IngestResult",
    "WrittenFiles",
    "commit_ingest",
    "execute",
    "pending_files",
    "run_tasks",
    "store_of_rows",
]

_MODULES = {
    "IngestResult": "ingest_commit",
    "WrittenFiles": "ingest_tasks",
    "commit_ingest": "ingest_commit",
    "execute": "ingest_tasks",
    "pending_files": "ingest_tasks",
    "run_tasks": "ingest_tasks",
    "store_of_rows": "ingest_tasks",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
