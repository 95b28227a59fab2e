"""Erase a subject's rows from every retained version, tag and branch, and prove that they are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.erasure.erasing import erase, plan_erasure
    from lance_ops.maintenance.erasure.permission import ErasureOptions, check_permitted
    from lance_ops.maintenance.erasure.report import ErasureReport
    from lance_ops.maintenance.erasure.searching import Cause, Holdings
    from lance_ops.maintenance.erasure.subject import Subject

__all__ = [
    "Cause",
    "ErasureOptions",
    "ErasureReport",
    "Holdings",
    "Subject",
    "check_permitted",
    "erase",
    "plan_erasure",
]

_MODULES = {
    "Cause": "searching",
    "ErasureOptions": "permission",
    "ErasureReport": "report",
    "Holdings": "searching",
    "Subject": "subject",
    "check_permitted": "permission",
    "erase": "erasing",
    "plan_erasure": "erasing",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
