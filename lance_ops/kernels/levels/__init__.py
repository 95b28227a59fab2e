"""Repetition and definition levels: made from lists, folded back into lists, searched for rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.kernels.levels.collapsing import collapse_lists, keep_levels
    from lance_ops.kernels.levels.expanding import count_children, expand_lists, mark_nulls, renumber_levels
    from lance_ops.kernels.levels.rows import find_rows

__all__ = [
    "collapse_lists",
    "count_children",
    "expand_lists",
    "find_rows",
    "keep_levels",
    "mark_nulls",
    "renumber_levels",
]

_MODULES = {
    "collapse_lists": "collapsing",
    "count_children": "expanding",
    "expand_lists": "expanding",
    "find_rows": "rows",
    "keep_levels": "collapsing",
    "mark_nulls": "expanding",
    "renumber_levels": "expanding",
}

__getattr__ = import_on_first_use(__name__, _MODULES)
