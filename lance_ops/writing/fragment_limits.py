"""When a fragment is full, and how its files are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops import file
from lance_ops.blobs import ExternalBlobs
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass

if TYPE_CHECKING:
    from lance_ops.writing.write_progress import FragmentWriteProgress

__all__ = ["MAX_BYTES_PER_FILE", "MAX_ROWS_PER_FILE", "FragmentLimits"]

MAX_ROWS_PER_FILE = 1024 * 1024
MAX_BYTES_PER_FILE = 90 * 1024**3


@dataclass(frozen=True)
class FragmentLimits:
    """When a fragment is full, and how its files are written.

    The byte limit is checked after each batch, so a fragment may exceed it by one batch. `external_blobs` says what to
    do with blobs that are URIs. `pack_file_bytes` limits the size of sidecars with many blobs, instead of the field's
    own limit. `cache_bytes` and `max_page_bytes` are as for `page_budget`.
    """

    max_rows_per_file: int = MAX_ROWS_PER_FILE
    max_bytes_per_file: int = MAX_BYTES_PER_FILE
    external_blobs: ExternalBlobs = ExternalBlobs.REFERENCE
    cache_bytes: int | None = None
    max_page_bytes: int | None = None
    pack_file_bytes: int | None = None
    progress: FragmentWriteProgress | None = None

    def __post_init__(self) -> None:
        if self.pack_file_bytes is not None and self.pack_file_bytes < 0:
            raise InvalidInput(f"blob_pack_file_size_threshold must not be negative, not {self.pack_file_bytes}")
        file.page_budget(1, self.cache_bytes, self.max_page_bytes)
        for name in ("max_rows_per_file", "max_bytes_per_file"):
            if not 0 < getattr(self, name) < 2**63:
                raise InvalidInput(f"{name} must be positive and fit into 64 bits, not {getattr(self, name)}")
