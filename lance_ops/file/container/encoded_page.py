"""A page that is encoded and ready to be written: its description, its buffers and its number of rows."""

from __future__ import annotations

from google.protobuf.message import Message

from lance_ops.core.ndarrays import Uint8Array
from lance_ops.core.records import dataclass

__all__ = ["EncodedPage"]


@dataclass(frozen=True, eq=False)
class EncodedPage:
    """A page's description, its buffers in the order in which the description numbers them, and its rows or items."""

    description: Message
    buffers: tuple[Uint8Array | bytes, ...]
    length: int
