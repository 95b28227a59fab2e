"""The committers, in one explicit tuple. A new one is a file and a line in `ALL_COMMITTERS`."""

from __future__ import annotations

from lance_ops.committers.contract import Committer
from lance_ops.committers.external import ExternalManifestCommitter
from lance_ops.committers.put_if_absent import PutIfAbsentCommitter

__all__ = ["ALL_COMMITTERS"]

ALL_COMMITTERS: tuple[type[Committer], ...] = (PutIfAbsentCommitter, ExternalManifestCommitter)
