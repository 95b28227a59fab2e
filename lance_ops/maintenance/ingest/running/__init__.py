"""Write raw files as fragments, in tasks that refuse what the table cannot hold unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.ingest.running.value_checks import ValueChecks

__all__ = ["ValueChecks"]

_MODULES = {
    "ValueChecks": "value_checks",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
