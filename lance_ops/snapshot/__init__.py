"""A dataset at one version: open, scan, take, write, delete, tag, travel."""

from lance_ops.snapshot.snapshot import Snapshot

__all__ = ["Snapshot"]
