"""Pages ready to be written, of either way to describe them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

__all__ = ["EncodedPage"]


@dataclass(frozen=True, eq=False)
class EncodedPage:
    """A page's description, its buffers in the order the description counts them, and its rows (or items)."""

    description: Message
    buffers: tuple[npt.NDArray[np.uint8], ...]
    length: int
