"""What a user says of blobs that are URIs of other objects."""

from __future__ import annotations

from lance_ops.core.errors import InvalidInput
from lance_ops.snapshot.blob_writer import ExternalBlobs

__all__ = ["external_blobs"]


def external_blobs(mode: str, allow_outside_bases: bool) -> ExternalBlobs:
    """Return what is done with them; raise `InvalidInput` for a mode there is not, and for both at once."""
    match mode:
        case "reference":
            return ExternalBlobs.REFERENCE if allow_outside_bases else ExternalBlobs.REFUSE
        case "ingest" if not allow_outside_bases:
            return ExternalBlobs.INGEST
        case "ingest":
            raise InvalidInput(
                "allow_external_blob_outside_bases is for blobs that stay there: none does that is ingested"
            )
        case _:
            raise InvalidInput(f"external_blob_mode {mode!r} is none of reference, ingest")
