"""The record of an erasure that has begun: it blocks restores, and tells the same erasure that it was interrupted.

The pins of an erasure have its id in their names. After a crash they stay, and keep the versions that it is to remove:
the erasure that goes on removes them. If the first run is still alive, a clean-up may then void its work.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from lance_ops.core.errors import ObjectNotFound
from lance_ops.maintenance.erasure.report import ErasedBranch, ErasureReport
from lance_ops.maintenance.erasure.searching import Holdings
from lance_ops.maintenance.erasure.subject import Subject
from lance_ops.refs import PINS_DIR, is_pin_of_work, list_erasures
from lance_ops.store import Store

__all__ = ["begin_record", "interrupted_erasure", "remove_pins"]


def interrupted_erasure(store: Store, subject: Subject) -> str | None:
    """Return the id of an erasure of the subject that did not end; None if there is none."""
    for record in list_erasures(store):
        number = str(record["id"])
        if not record.get("finished_at") and record.get("subject") == subject.digest(number):
            return number
    return None


def begin_record(store: Store, number: str, subject: Subject, reason: str, found: Holdings) -> ErasureReport:
    """Write the record, before anything is changed."""
    report = ErasureReport(
        number,
        found.main.head.uri,
        reason,
        subject.digest(number),
        datetime.now(UTC).isoformat(timespec="seconds"),
        branches={branch.name: ErasedBranch(branch.head.version + 1) for branch in found.branches},
    )
    report.save(store)
    return report


def remove_pins(number: str, found: Holdings) -> None:
    """Remove the pins that the erasure left on any branch when it was interrupted."""
    for branch in found.branches:
        store = branch.head.store
        for info in list(store.list(PINS_DIR)):
            if is_pin_of_work(info.path, number):
                with suppress(ObjectNotFound):
                    store.delete(info.path)
