"""Verbs that keep a table healthy and change no row, but for a repair that its options allow to lose some."""

from lance_ops.verbs.upkeep.cleanup import Cleanup
from lance_ops.verbs.upkeep.compact import Compact
from lance_ops.verbs.upkeep.migrate import Migrate
from lance_ops.verbs.upkeep.reindex import DropIndex, Reindex
from lance_ops.verbs.upkeep.repair import Repair
from lance_ops.verbs.upkeep.verify import Verify

__all__ = ["Cleanup", "Compact", "DropIndex", "Migrate", "Reindex", "Repair", "Verify"]
