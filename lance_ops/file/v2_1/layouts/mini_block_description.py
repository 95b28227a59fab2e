"""The description of mini-block pages, which the pages of a table's files have in common."""

from __future__ import annotations

from functools import lru_cache

from lance_ops.core.records import dataclass
from lance_ops.encodings import Encoding, check, encoding_from_pb
from lance_ops.file.leaves import Leaf
from lance_ops.file.v2_1.layouts.chunk_format import ChunkFormat
from lance_ops.file.v2_1.layouts.contract import read_scheme
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = ["MiniBlockDescription", "describe_mini_block"]

_MAX_NUM_BUFFERS = 64

_MAX_SHARED_BYTES = 4096
"""Longer descriptions are read each time: they hold symbol tables, which no two pages have in common."""


@dataclass(frozen=True, eq=False)
class MiniBlockDescription:
    """How pages are encoded: everything but their length and where their buffers are."""

    format: ChunkFormat
    dictionary: Encoding | None
    num_dictionary_items: int
    num_items: int
    index_depth: int

    @property
    def num_buffers(self) -> int:
        """The number of a page's buffers: words, chunks, and the dictionary and repetition index if there are any."""
        return 2 + (self.dictionary is not None) + (self.format.rep is not None)


def describe_mini_block(message: pb.MiniBlockLayout, leaf: Leaf) -> MiniBlockDescription:
    """Read the message. Pages of one leaf with equal messages share the result, in whichever files they are.

    Raises as `layout_from_pb` does.
    """
    data = message.SerializeToString()
    return _shared(data, leaf) if len(data) <= _MAX_SHARED_BYTES else _describe(data, leaf)


def _describe(data: bytes, leaf: Leaf) -> MiniBlockDescription:
    message = pb.MiniBlockLayout.FromString(data)
    scheme = read_scheme(message.layers, leaf)
    rep = encoding_from_pb(message.rep_compression) if message.HasField("rep_compression") else None
    definition = encoding_from_pb(message.def_compression) if message.HasField("def_compression") else None
    values = encoding_from_pb(message.value_compression)
    chunk_format = ChunkFormat(scheme, rep, definition, values, message.num_buffers, message.has_large_chunk)
    dictionary = encoding_from_pb(message.dictionary) if message.HasField("dictionary") else None
    check(message.num_buffers <= _MAX_NUM_BUFFERS, f"{message.num_buffers} buffers in a chunk")
    check(rep is not None or not scheme.max_rep, "lists without repetition levels")
    numbers = message.num_dictionary_items, message.num_items, message.repetition_index_depth
    return MiniBlockDescription(chunk_format, dictionary, *numbers)


_shared = lru_cache(maxsize=1024)(_describe)
