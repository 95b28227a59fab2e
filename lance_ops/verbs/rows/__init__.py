"""Verbs that change rows."""

from lance_ops.verbs.rows.delete_rows import DeleteRows
from lance_ops.verbs.rows.erase import Erase
from lance_ops.verbs.rows.restore import Restore

__all__ = ["DeleteRows", "Erase", "Restore"]
