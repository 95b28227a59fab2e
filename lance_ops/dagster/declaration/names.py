"""What things are called: the two nodes of a dataset, its partitions, its jobs, and safe partition keys."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import dagster as dg

__all__ = ["MAX_KEY_LENGTH", "DatasetNames", "safe_key"]

MAX_KEY_LENGTH = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9._=-]+|\.{2,}")


@dataclass(frozen=True)
class DatasetNames:
    """Every Dagster name that follows from a dataset's name."""

    name: str

    @property
    def head(self) -> dg.AssetKey:
        """The dataset itself: one materialization per committed version."""
        return dg.AssetKey(self.name.split("/"))

    @property
    def batches(self) -> dg.AssetKey:
        """What is ingested: one partition per batch of raw files."""
        return dg.AssetKey([*self.name.split("/"), "batches"])

    @property
    def partitions(self) -> dg.DynamicPartitionsDefinition:
        """The keys of the batches seen so far."""
        return dg.DynamicPartitionsDefinition(name=f"{self.identifier}_batches")

    @property
    def identifier(self) -> str:
        """The name where Dagster allows letters, digits and underscores only."""
        return self.name.replace("/", "_")

    @property
    def pool(self) -> str:
        """The pool of everything that writes to the dataset."""
        return f"{self.identifier}_writers"

    def of(self, what: str) -> str:
        """Name a job, a sensor or a schedule of this dataset."""
        return f"{self.identifier}_{what}"

    def op(self, verb: str) -> str:
        """Name the op of a verb; Dagster does not let it share the name of the verb's job."""
        return f"{self.identifier}__{verb}"


def safe_key(text: str) -> str:
    """Make a partition key of a path: equal texts give equal keys, different texts different ones.

    Dagster's range syntax (`[a...b]`), its URLs and its tags are what a key must not disturb.
    """
    if text and len(text) <= MAX_KEY_LENGTH and not _UNSAFE.search(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:10]
    readable = _UNSAFE.sub("-", text).strip("-")
    return f"{readable[: MAX_KEY_LENGTH - 11]}-{digest}".strip("-")
