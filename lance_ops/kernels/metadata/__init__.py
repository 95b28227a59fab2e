"""Metadata of files that is read for many columns at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.kernels.metadata.columns import read_columns

__all__ = ["read_columns"]

_MODULES = {"read_columns": "columns"}

__getattr__ = import_on_first_use(__name__, _MODULES)
