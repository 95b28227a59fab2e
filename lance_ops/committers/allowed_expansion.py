"""Say whether the caller trusts a table to expand: see `snapshot/expansion.py` for the limits that this lifts.

It is the storage option `allow_expansion` or the environment variable `LANCE_OPS_ALLOW_EXPANSION`; either may be true.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lance_ops.store import read_bool

__all__ = ["ALLOW_EXPANSION_OPTION", "allows_expansion"]

ALLOW_EXPANSION_OPTION = "allow_expansion"
_ENVIRONMENT = "LANCE_OPS_ALLOW_EXPANSION"


def allows_expansion(storage_options: Mapping[str, str] | None) -> bool:
    """Return whether the limits of expansion are lifted. Raises `InvalidInput` for a value that is no switch."""
    given = {_ENVIRONMENT: os.environ.get(_ENVIRONMENT) or "false"}
    return read_bool(storage_options or {}, ALLOW_EXPANSION_OPTION) or read_bool(given, _ENVIRONMENT)
