"""Derive Dagster names from a dataset's name: assets, pool, partitions and safe keys, jobs of any verb."""

from __future__ import annotations

import hashlib
import re

import dagster as dg

from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration.batch_partitions import BatchPartitions

__all__ = ["MAX_KEY_LENGTH", "DatasetNames", "safe_key"]

MAX_KEY_LENGTH = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9._=-]+|\.{2,}")


@dataclass(frozen=True)
class DatasetNames:
    """Every Dagster name that follows from a dataset's name."""

    name: str

    @property
    def head(self) -> dg.AssetKey:
        """The head asset: one materialization for each committed version."""
        return dg.AssetKey(self.name.split("/"))

    @property
    def batches(self) -> dg.AssetKey:
        """The asset of ingested batches: one partition for each batch of raw files."""
        return dg.AssetKey([*self.name.split("/"), "batches"])

    def index(self, name: str) -> dg.AssetKey:
        """Return the asset of an index."""
        return dg.AssetKey([*self.name.split("/"), "indices", name])

    @property
    def partitions(self) -> BatchPartitions:
        """The keys of the batches seen so far."""
        return BatchPartitions(name=f"{self.identifier}_batches")

    @property
    def identifier(self) -> str:
        """The dataset's name with only letters, digits and underscores, as Dagster requires for jobs."""
        return self.name.replace("/", "_")

    @property
    def pool(self) -> str:
        """The concurrency pool of all steps that write to the dataset."""
        return f"{self.identifier}_writers"

    def of(self, what: str) -> str:
        """Return the name of a job, sensor or schedule of this dataset."""
        return f"{self.identifier}_{what}"

    def op(self, verb: str) -> str:
        """Return the name of a verb's op; Dagster refuses an op that has the name of its job."""
        return f"{self.identifier}__{verb}"


def safe_key(text: str) -> str:
    """Make a partition key of a path: equal texts give equal keys, different texts different ones.

    A key must not disturb Dagster's range syntax (`[a...b]`), its URLs or its tags.
    """
    readable = _UNSAFE.sub("-", text)
    if text and len(text) <= MAX_KEY_LENGTH and readable == text:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    return f"{readable.strip('-')[: MAX_KEY_LENGTH - 11]}-{digest}".strip("-")
