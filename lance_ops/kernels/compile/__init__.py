"""Compile kernels with numba, and keep the compiled code in a cache on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use
from lance_ops.kernels.compile.decorators import kernel, part

if TYPE_CHECKING:
    from lance_ops.kernels.compile.word_intrinsics import load_word, store_word

__all__ = ["kernel", "load_word", "part", "store_word"]

if not TYPE_CHECKING:  # a checker that saw it would accept any name at all
    __getattr__ = import_on_first_use(__name__, {"load_word": "word_intrinsics", "store_word": "word_intrinsics"})
