"""What a writer does with a blob that is the URI of another object."""

from __future__ import annotations

from enum import Enum

__all__ = ["ExternalBlobs"]


class ExternalBlobs(Enum):
    """What the writer does with a blob that is the URI of another object."""

    REFUSE = "refuse"
    REFERENCE = "reference"
    INGEST = "ingest"
