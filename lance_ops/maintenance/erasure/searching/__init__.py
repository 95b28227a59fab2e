"""Find what holds a subject's rows: stored rows, indices, stated texts, and versions that the filter does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.erasure.searching.holdings import BranchHoldings, Cause, Holdings, Why
    from lance_ops.maintenance.erasure.searching.row_search import search_unnamed
    from lance_ops.maintenance.erasure.searching.version_search import Search, retained_and_detached_versions

__all__ = [
    "BranchHoldings",
    "Cause",
    "Holdings",
    "Search",
    "Why",
    "retained_and_detached_versions",
    "search_unnamed",
]

_MODULES = {
    "BranchHoldings": "holdings",
    "Cause": "holdings",
    "Holdings": "holdings",
    "Search": "version_search",
    "Why": "holdings",
    "retained_and_detached_versions": "version_search",
    "search_unnamed": "row_search",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
