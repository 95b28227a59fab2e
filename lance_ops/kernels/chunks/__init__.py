"""Mini-block chunks: where they end, their headers, and the copying of their parts into a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.kernels.chunks.chunk_sizes import count_chunk_rows, cut_chunks, end_chunks
    from lance_ops.kernels.chunks.headers import read_headers
    from lance_ops.kernels.chunks.parts import write_headers, write_parts

__all__ = [
    "count_chunk_rows",
    "cut_chunks",
    "end_chunks",
    "read_headers",
    "write_headers",
    "write_parts",
]

_MODULES = {
    "count_chunk_rows": "chunk_sizes",
    "cut_chunks": "chunk_sizes",
    "end_chunks": "chunk_sizes",
    "read_headers": "headers",
    "write_headers": "parts",
    "write_parts": "parts",
}

__getattr__ = import_on_first_use(__name__, _MODULES)
