"""Look at what landed for a declared dataset. Dagster is imported when a command asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.cli.landing.declared_batches import STATES, report_of

__all__ = ["STATES", "report_of"]

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, {"STATES": "declared_batches", "report_of": "declared_batches"})
