"""Verify that the files of a version are there, whole, and consistent with the manifest and with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.verification.findings import DamageKind, Finding, FindingSeverity
    from lance_ops.maintenance.verification.report import VerificationLevel, VerificationReport
    from lance_ops.maintenance.verification.verification import (
        execute,
        unreadable_newest_version,
        unreadable_version,
        verify,
        verify_uri,
    )
    from lance_ops.maintenance.verification.verification_plan import (
        VerificationOptions,
        VerificationPlan,
        plan_verification,
    )

__all__ = [
    "DamageKind",
    "Finding",
    "FindingSeverity",
    "VerificationLevel",
    "VerificationOptions",
    "VerificationPlan",
    "VerificationReport",
    "execute",
    "plan_verification",
    "unreadable_newest_version",
    "unreadable_version",
    "verify",
    "verify_uri",
]

_MODULES = {
    "DamageKind": "findings",
    "Finding": "findings",
    "FindingSeverity": "findings",
    "VerificationLevel": "report",
    "VerificationOptions": "verification_plan",
    "VerificationPlan": "verification_plan",
    "VerificationReport": "report",
    "execute": "verification",
    "plan_verification": "verification_plan",
    "unreadable_newest_version": "verification",
    "verify": "verification",
    "unreadable_version": "verification",
    "verify_uri": "verification",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
