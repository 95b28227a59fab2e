"""Rewrite fragments with their rows in the order of columns, so that pages and fragments hold neighbouring values."""

from lance_ops.maintenance.compaction.clustering.clustering import cluster_files

__all__ = ["cluster_files"]
