"""Verbs that keep a table healthy and change no row."""

from lance_ops.verbs.upkeep.cleanup import Cleanup
from lance_ops.verbs.upkeep.compact import Compact
from lance_ops.verbs.upkeep.reindex import DropIndex, Reindex

__all__ = ["Cleanup", "Compact", "DropIndex", "Reindex"]
