"""Read whether the caller lifts the limits of `snapshot/expansion.py`, because the caller trusts the table.

The storage option `allow_expansion` lifts them, and so does the environment variable `LANCE_OPS_ALLOW_EXPANSION`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lance_ops.store import read_bool

__all__ = ["ALLOW_EXPANSION_OPTION", "allows_expansion"]

ALLOW_EXPANSION_OPTION = "allow_expansion"
_ENVIRONMENT = "LANCE_OPS_ALLOW_EXPANSION"


def allows_expansion(storage_options: Mapping[str, str] | None) -> bool:
    """Return whether the limits of expansion are lifted. Raises `InvalidInput` for a value that is not a boolean."""
    given = {_ENVIRONMENT: os.environ.get(_ENVIRONMENT) or "false"}
    return read_bool(storage_options or {}, ALLOW_EXPANSION_OPTION) or read_bool(given, _ENVIRONMENT)
