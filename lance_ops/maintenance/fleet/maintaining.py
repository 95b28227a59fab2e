"""Maintain all tables beneath a root within a budget: measure each, then pay the worst debt first.

    find_tables(root)                      new tables appear by themselves
    measure_tables(tables)                 metadata only, many at a time
    allot(dues of all tables, budget)      to the parts of debts that gain most for each byte
    pay_debt(table, its bytes)             and what tables before it have left of theirs
    verify_uri(table, what is left)        files that were not verified for the longest time

A table that fails does not hold the others back, until more tables have failed than the threshold tolerates: then the
fault is likely to be that of the store or of the credentials, and the rest of the night is called off. Damage and lost
races are a table's own, and call nothing off. A table that somebody removes meanwhile has not failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.maintenance.debt import (
    DebtPolicy,
    Due,
    PastCosts,
    Payment,
    PaymentStatus,
    TableDebt,
    affordable,
    pay_debt,
    plan_payment,
)
from lance_ops.maintenance.debt import unpaid as unpaid_dues
from lance_ops.maintenance.fleet.allotment import allot
from lance_ops.maintenance.fleet.discovery import ROOT_ITSELF, find_tables
from lance_ops.maintenance.fleet.ledger import Ledger, TableRecord
from lance_ops.maintenance.fleet.measuring import (
    FAILURES,
    Measured,
    MeasureTable,
    is_own_fault,
    measure_tables,
    table_uri,
)
from lance_ops.maintenance.fleet.report import FleetReport, FleetStatus, TableOutcome
from lance_ops.maintenance.verification import VerificationOptions, verify_uri
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot
from lance_ops.store import open_store

__all__ = ["Budget", "maintain"]

_SECONDS_BETWEEN_SAVES = 10.0


@dataclass(frozen=True)
class Budget:
    """What a night may cost: bytes to rewrite and verify by their prices, seconds after which no table is begun.

    `max_tables` bounds the tables that are paid. Verification also stops when that many tables were paid.
    """

    max_bytes: int | None = None
    max_seconds: float | None = None
    max_tables: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_seconds", "max_tables"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InvalidInput(f"{name} of a budget must not be negative, not {value}")


def maintain(
    root: str,
    budget: Budget | None = None,
    policy: DebtPolicy | None = None,
    *,
    failure_threshold: float = 0.1,
    verify_after: timedelta | None = None,
    night: str | None = None,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
    runner: Runner | None = None,
    on_outcome: Callable[[TableOutcome], None] | None = None,
    leave_out: Callable[[str], str | None] | None = None,
) -> FleetReport:
    """Pay the debt of the tables beneath a root, the worst first, within a budget; return what was done.

    A budget of bytes is shared among the tables by `allot`, so it pays the best parts of all debts.
    Calls with an equal `night` share one budget of bytes. `verify_after` is the age from which a table's verification
    is worth what is left of the budget. With `dry_run` nothing is written. `on_outcome` is called with the
    outcome of each table that is not left out, and again if the table's verification then finds damage or fails.
    `leave_out` takes the path of a table beneath the root, and says why the fleet leaves the table alone; None if the
    fleet maintains it.
    `failure_threshold` is a share of the tables: see `FleetReport.ok`.
    """
    if not 0 <= failure_threshold <= 1:
        raise InvalidInput(f"failure_threshold is a share of the tables, 0 to 1, not {failure_threshold}")
    options = dict(storage_options or {})
    runner = runner or InThreads()
    ledger = Ledger.load(open_store(root, options)).for_night(night)
    found = find_tables(root, options)
    reasons = {table: None if leave_out is None else leave_out(table) for table in found}
    ledger = ledger.only(found)
    measure = MeasureTable.of(root, policy or DebtPolicy(), options, ledger)
    measured = measure_tables(measure, [table for table in found if reasons[table] is None], runner)
    fleet = _Night(measure, measured, ledger, budget or Budget(), failure_threshold, dry_run, runner)
    outcomes: dict[str, TableOutcome] = {}
    try:
        for outcome in fleet.pay():
            outcomes[outcome.table] = outcome
            if on_outcome is not None:
                on_outcome(outcome)
        if verify_after is not None and not dry_run:
            for outcome in fleet.verify(outcomes, verify_after):
                outcomes[outcome.table] = outcome
                if on_outcome is not None:
                    on_outcome(outcome)
    finally:
        fleet.save()
    left_out = (
        TableOutcome(table, FleetStatus.LEFT_OUT, reason=why) for table, why in reasons.items() if why is not None
    )
    return FleetReport(root, (*outcomes.values(), *left_out), failure_threshold, dry_run)


class _Night:
    """The state of one call: the ledger, what is left of the budget, and how many failures may be of the store."""

    def __init__(
        self,
        measure: MeasureTable,
        measured: Sequence[Measured],
        ledger: Ledger,
        budget: Budget,
        failure_threshold: float,
        dry_run: bool,
        runner: Runner,
    ) -> None:
        self._measure = measure
        self._measured = measured
        self._policy = measure.policy
        self._budget = budget
        self._tolerated = failure_threshold * len(measured)
        self._dry_run = dry_run
        self._runner = runner
        self._store = open_store(measure.root, measure.storage_options)
        self._ledger = ledger
        self._is_saved = True
        self._saved_at: float | None = None
        self._planned_bytes = 0
        self._num_begun = 0
        self._num_failed = 0
        self._deadline = None if budget.max_seconds is None else time.monotonic() + budget.max_seconds

    @property
    def _left(self) -> int | None:
        if self._budget.max_bytes is None:
            return None
        return max(self._budget.max_bytes - self._ledger.spent_bytes - self._planned_bytes, 0)

    def pay(self) -> Iterator[TableOutcome]:
        """Yield the outcome of each table: first those that cannot be measured, then the worst debt first."""
        if self._measured and not self._ledger.tables and not self._dry_run:
            with suppress(*FAILURES):
                self._ledger.save(self._store)  # a root whose last table is removed is then told from a lost one
        for each in self._measured:
            if each.debt is None:
                outcome = TableOutcome(each.table, FleetStatus.FAILED, reason=each.reason)
                yield self._failed(outcome, each.is_own_fault)
        found = [(each.table, each.debt) for each in self._measured if each.debt is not None]
        debts = dict(sorted(found, key=lambda each: (-each[1].score, each[0])))
        dues = {table: unpaid_dues(debt, self._ledger.of(table).fruitless) for table, debt in debts.items()}
        allotted = self._allotted(dues)
        for table, debt in debts.items():
            owed = dues[table]
            limit = self._limit(allotted, table)
            if not owed:
                reason = "what is owed gained nothing at this version" if debt.owed else None
                yield _outcome(table, debt, FleetStatus.NOTHING_OWED, reason=reason)
                continue
            refusal = self._refusal()
            if refusal is None and not any(affordable(due, limit) for due in owed):
                least = min(map(_least_bytes, owed))
                refusal = f"needs about {least:,} bytes of the budget, and {limit:,} are left"
            if refusal is not None:
                yield _outcome(table, debt, FleetStatus.WAITING, reason=refusal)
                continue
            self._num_begun += 1
            yield self._plan(table, debt, limit) if self._dry_run else self._pay(table, debt, limit)

    def _allotted(self, dues: Mapping[str, tuple[Due, ...]]) -> dict[str, int]:
        """Share what is left of the budget among the tables that may be paid, the worst debts if not all may be."""
        if self._left is None:
            return {}
        owing = [table for table, owed in dues.items() if owed][: self._budget.max_tables]
        return allot({table: dues[table] for table in owing}, self._policy.rates, self._left)

    def _limit(self, allotted: dict[str, int], table: str) -> int | None:
        """Return what a table may rewrite: all that is left, but what is allotted to the tables after it."""
        allotted.pop(table, None)
        return None if self._left is None else max(self._left - sum(allotted.values()), 0)

    def verify(self, outcomes: Mapping[str, TableOutcome], after: timedelta) -> Iterator[TableOutcome]:
        """Verify tables, the one that waited longest first, while bytes are left; yield those that are damaged."""
        now = datetime.now(UTC)
        never = datetime.min.replace(tzinfo=UTC)
        waiting = sorted((self._ledger.of(table).verified or never, table) for table in outcomes)
        for verified_at, table in waiting:
            if now - verified_at < after or self._left == 0 or self._refusal() is not None:
                break
            if outcomes[table].status in (FleetStatus.FAILED, FleetStatus.VANISHED):
                continue
            record = self._ledger.of(table)
            options = VerificationOptions(max_bytes=self._left, first_part=record.next_part)
            try:
                uri = table_uri(self._measure.root, table)
                report = verify_uri(uri, None, dict(self._measure.storage_options), options, self._runner)
            except FAILURES as error:
                outcome = replace(outcomes[table], status=FleetStatus.FAILED, reason=f"verify: {error}")
                yield self._failed(outcome, is_own_fault(error))
                continue
            done = report.reaches_end_from(record.next_part)
            verified = now.isoformat() if done else record.verified_at
            record = replace(record, verified_at=verified, next_part=report.next_part or 0)
            self._record(table, record, report.size_bytes)
            if not report.ok:
                reason = f"{len(report.damages)} damages, the first: {report.damages[0]}; run lance-ops repair"
                yield replace(outcomes[table], status=FleetStatus.FAILED, reason=reason)

    def save(self) -> None:
        """Save the ledger if it has records that are not saved yet."""
        if self._is_saved:
            return
        self._ledger.save(self._store)
        self._is_saved, self._saved_at = True, time.monotonic()

    def _record(self, table: str, record: TableRecord, spent_bytes: int) -> None:
        """Remember what was done to a table. Saving writes the records of all tables, so it happens now and then.

        A night that is killed forgets what it spent since: another attempt may spend as much once more.
        """
        self._ledger, self._is_saved = self._ledger.with_table(table, record, spent_bytes), False
        if self._saved_at is None or time.monotonic() - self._saved_at >= _SECONDS_BETWEEN_SAVES:
            self.save()

    def _refusal(self) -> str | None:
        """Return why no other table may be begun."""
        if self._num_failed > self._tolerated:
            failed = f"{self._num_failed} of {len(self._measured)} tables failed for what may be the store's fault"
            return f"called off: {failed}, more than failure_threshold allows; look at the store, or raise it"
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return "the budget's time is over"
        if self._budget.max_tables is not None and self._num_begun >= self._budget.max_tables:
            return f"the budget's {self._budget.max_tables} tables are done"
        return None

    def _plan(self, table: str, debt: TableDebt, limit: int | None) -> TableOutcome:
        plan = plan_payment(debt, limit, self._ledger.of(table).fruitless)
        self._planned_bytes += plan.cost_bytes
        return replace(
            _outcome(table, debt, FleetStatus.PLANNED),
            steps=tuple(f"{step.key}: {step.what}" for step in plan.steps),
            spent_bytes=plan.cost_bytes,
            saved_read_bytes=plan.saved_read_bytes,
        )

    def _pay(self, table: str, debt: TableDebt, limit: int | None) -> TableOutcome:
        record = self._ledger.of(table)
        try:
            uri = table_uri(self._measure.root, table)
            paid = pay_debt(
                Snapshot.open(uri, storage_options=self._measure.storage_options),
                self._policy,
                max_bytes=limit,
                fruitless=record.fruitless,
                runner=self._runner,
                past_costs=PastCosts.from_facts(record.past_costs),
            )
        except FAILURES as error:
            outcome = _outcome(table, debt, FleetStatus.FAILED, reason=str(error))
            return self._failed(outcome, is_own_fault(error))
        record = replace(record, fruitless=paid.fruitless, past_costs=paid.past_costs.to_facts())
        self._record(table, record, paid.spent_bytes)
        outcome = _paid(table, paid)
        if outcome.status is not FleetStatus.FAILED:
            return outcome
        return self._failed(outcome, is_own_fault(paid.error))

    def _failed(self, outcome: TableOutcome, is_own_fault: bool) -> TableOutcome:
        """Count a failure that may be of the store, unless the table was removed: then return that instead.

        A table was removed if nothing at all lies where it was: data without versions is damage. If nothing lies
        beneath the root either, not even the ledger, the root itself is lost, and the table has failed.
        """
        try:
            if not self._has_objects(outcome.table):
                if self._has_objects(ROOT_ITSELF):
                    return replace(outcome, status=FleetStatus.VANISHED, reason="removed since the night began")
                outcome = replace(outcome, reason=f"nothing is left beneath {self._measure.root}: check it")
        except FAILURES:  # the store does not answer, so the failure stands
            pass
        self._num_failed += not is_own_fault
        return outcome

    def _has_objects(self, table: str) -> bool:
        store = open_store(table_uri(self._measure.root, table), self._measure.storage_options)
        return next(store.list(), None) is not None


def _least_bytes(due: Due) -> int:
    """Return what the cheapest part of a due costs, with the indices that a compaction moves."""
    parts = [part for each in due.rewrites for part in (each.parts or (each,))]
    moved_indices = due.cost_bytes - sum(each.cost_bytes for each in due.rewrites)
    return min((each.cost_bytes + moved_indices for each in parts), default=due.cost_bytes)


def _paid(table: str, paid: Payment) -> TableOutcome:
    status = {
        PaymentStatus.DONE: FleetStatus.DONE,
        PaymentStatus.NOTHING_OWED: FleetStatus.NOTHING_OWED,
        PaymentStatus.WAITING: FleetStatus.WAITING,
        PaymentStatus.FRUITLESS: FleetStatus.NOTHING_OWED,
        PaymentStatus.FAILED: FleetStatus.FAILED,
    }[paid.status]
    return TableOutcome(
        table=table,
        status=status,
        score=paid.before.score,
        num_fragments_before=paid.before.health.num_fragments,
        num_fragments_after=paid.after.health.num_fragments,
        amplification_before=paid.before.read_amplification,
        amplification_after=paid.after.read_amplification,
        spent_bytes=paid.spent_bytes,
        saved_read_bytes=paid.saved_read_bytes,
        steps=tuple(f"{step.key}: {step.what}" for step in paid.steps),
        reason=paid.reason or (f"the budget did not reach for {', '.join(paid.waiting)}" if paid.waiting else None),
        moved_bytes=paid.moved_bytes,
    )


def _outcome(table: str, debt: TableDebt, status: FleetStatus, reason: str | None = None) -> TableOutcome:
    fragments, amplification = debt.health.num_fragments, debt.read_amplification
    return TableOutcome(table, status, debt.score, fragments, fragments, amplification, amplification, reason=reason)
