"""The bits of a manifest's two words of feature flags."""

from __future__ import annotations

from enum import IntFlag

__all__ = ["FeatureFlag"]


class FeatureFlag(IntFlag):
    """Every bit that the format defines up to release 14."""

    DELETION_FILES = 1
    STABLE_ROW_IDS = 2
    V2_FORMAT = 4
    TABLE_CONFIG = 8
    BASE_PATHS = 16
    INLINE_TRANSACTIONS_ONLY = 32
    DATA_OVERLAYS = 64
    COVERING_INDICES = 128
    MIXED_FILE_VERSIONS = 256
    FRAGMENT_REUSE_OF_STABLE_ROWS = 512
    FRAGMENT_REUSE_TRANSITIONS = 1024
    MANAGED_BLOBS = 2048
