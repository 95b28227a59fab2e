"""Values as Python has them, with the bits of floats: NaNs are compared, and zeros with their signs."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

__all__ = ["exact"]

_FLOATS, _LISTS = (float, np.floating), (list, tuple)
_PLAIN = frozenset({int, str, bytes, bool, type(None)})
"""Most values are of these types, and stand for themselves."""


def exact(value: Any) -> Any:
    """Return a value in which the bits of its floats stand for these, at any depth."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, _FLOATS):
        return struct.pack("<d", value)
    if isinstance(value, _LISTS):
        return [exact(item) for item in value]
    if isinstance(value, dict):
        return {name: exact(item) for name, item in value.items()}
    return value
