"""Verbs that change rows and their columns."""

from lance_ops.verbs.rows.add_columns import AddColumns
from lance_ops.verbs.rows.delete_duplicates import DeleteDuplicates
from lance_ops.verbs.rows.delete_rows import DeleteRows
from lance_ops.verbs.rows.erase import Erase
from lance_ops.verbs.rows.ingest_files import IngestedFiles, IngestFiles, declared_schema
from lance_ops.verbs.rows.restore import Restore
from lance_ops.verbs.rows.update import Update
from lance_ops.verbs.rows.upsert import Upsert

__all__ = [
    "AddColumns",
    "DeleteDuplicates",
    "DeleteRows",
    "Erase",
    "IngestFiles",
    "IngestedFiles",
    "Restore",
    "Update",
    "Upsert",
    "declared_schema",
]
