"""FSST string compression: train a symbol table, encode with it, decode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.kernels.fsst.decoding import fsst_decode, fsst_decode_chunks
    from lance_ops.kernels.fsst.encoding import fsst_encode
    from lance_ops.kernels.fsst.training import fsst_train

__all__ = [
    "fsst_decode",
    "fsst_decode_chunks",
    "fsst_encode",
    "fsst_train",
]

_MODULES = {
    "fsst_decode": "decoding",
    "fsst_decode_chunks": "decoding",
    "fsst_encode": "encoding",
    "fsst_train": "training",
}

__getattr__ = import_on_first_use(__name__, _MODULES)
