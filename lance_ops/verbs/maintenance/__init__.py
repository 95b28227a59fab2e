"""Verbs that keep a table healthy and change no row, but for a repair that its options allow to lose some."""

from lance_ops.verbs.maintenance.cleanup import Cleanup
from lance_ops.verbs.maintenance.compact import Compact
from lance_ops.verbs.maintenance.migrate import Migrate
from lance_ops.verbs.maintenance.reindex import DropIndex, Reindex
from lance_ops.verbs.maintenance.repair import Repair
from lance_ops.verbs.maintenance.verify import Verify

__all__ = ["Cleanup", "Compact", "DropIndex", "Migrate", "Reindex", "Repair", "Verify"]
