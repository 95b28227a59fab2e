"""Verify that the files of a version are there, whole, and consistent with the manifest and with each other."""

from lance_ops.maintenance.verification.findings import DamageKind, Finding, FindingSeverity
from lance_ops.maintenance.verification.report import VerificationLevel, VerificationReport
from lance_ops.maintenance.verification.verification import execute, verify, verify_uri
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
    "verify",
    "verify_uri",
]
