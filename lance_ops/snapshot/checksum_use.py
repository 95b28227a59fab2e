"""Which reads of a table verify the checksums of pages: an option of the table that a handle can override.

Whatever the option says, metadata, manifests, deletion files and indices are verified at every read. So are all pages
whose rows are written again or decide what is written: by compactions, changes of rows and columns, and index builds.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from lance_ops.core.errors import InvalidInput

__all__ = ["VERIFY_CHECKSUMS_KEY", "ChecksumUse"]

VERIFY_CHECKSUMS_KEY = "lance_ops.verify_checksums"
"""The key of the table's configuration."""


class ChecksumUse(Enum):
    """The reads that verify pages: all of them, or only those of maintenance and changes."""

    ALWAYS = "always"
    MAINTENANCE = "maintenance"

    @classmethod
    def parse(cls, text: str, place: str) -> ChecksumUse:
        """Return the option of this name; raise `InvalidInput`, which names the place of the text."""
        try:
            return cls(text)
        except ValueError:
            known = " or ".join(repr(use.value) for use in cls)
            raise InvalidInput(f"{place} is {text!r}: set it to {known}") from None

    @classmethod
    def of_table(cls, config: Mapping[str, str], uri: str) -> ChecksumUse:
        """Return what a table's configuration says, `MAINTENANCE` if it says nothing."""
        text = config.get(VERIFY_CHECKSUMS_KEY)
        return cls.MAINTENANCE if text is None else cls.parse(text, f"{uri}: the config key {VERIFY_CHECKSUMS_KEY}")
