"""Where a declared table or landing folder is, once its variables are expanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from lance_ops.core.records import dataclass
from lance_ops.core.redaction import REDACTED, public_uri

__all__ = ["StoreLocation"]


@dataclass(frozen=True)
class StoreLocation:
    """A URI and its storage options, with variables expanded; `repr` never shows a secret."""

    uri: str = field(repr=False)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def public_uri(self) -> str:
        """The URI without password and query."""
        if "://" not in self.uri:
            return self.uri
        return public_uri(self.uri).partition("?")[0].replace(f"{REDACTED}@", "")

    def __repr__(self) -> str:
        return f"StoreLocation({self.public_uri!r})"
