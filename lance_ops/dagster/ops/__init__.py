"""Ops on a declared dataset: one file for each verb, imported here and given a job in `jobs.py`.

Each op runs its tasks by the run's runner and records the versions it commits on the head asset. By default it previews
and stores its plan; see `planned.py`.
"""

from __future__ import annotations

from lance_ops.dagster.ops.cleanup import Cleanup, cleanup_op
from lance_ops.dagster.ops.compact import Compact, compact_op
from lance_ops.dagster.ops.delete_rows import DeleteRows, delete_rows_op
from lance_ops.dagster.ops.erase import Erase, erase_op
from lance_ops.dagster.ops.health import health_op, record_verdicts, verdict_op
from lance_ops.dagster.ops.reindex import DropIndex, Reindex, drop_index_op, reindex_op
from lance_ops.dagster.ops.restore import Restore, restore_op
from lance_ops.dagster.ops.tag import Tag, tag_op
from lance_ops.dagster.ops.verb import START, Work, verb_op
from lance_ops.dagster.ops.verify import Verify, verify_op

__all__ = [
    "START",
    "Cleanup",
    "Compact",
    "DeleteRows",
    "DropIndex",
    "Erase",
    "Reindex",
    "Restore",
    "Tag",
    "Verify",
    "Work",
    "cleanup_op",
    "compact_op",
    "delete_rows_op",
    "drop_index_op",
    "erase_op",
    "health_op",
    "record_verdicts",
    "reindex_op",
    "restore_op",
    "tag_op",
    "verb_op",
    "verdict_op",
    "verify_op",
]
