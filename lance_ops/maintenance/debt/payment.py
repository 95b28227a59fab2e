"""Pay a table's debt: take the steps that are owed, as far as a budget of bytes goes, and measure again.

A payment ends as done, as failed with a reason, or without a step; see `PaymentStatus`. A step that was
taken and lowered nothing is fruitless at the version that the payment left. Until another writer commits a version, a
caller that passes the fruitless steps on does not take them again. A caller that passes the past costs on has the next
payment priced by what the steps of this one cost.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import field, replace
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from lance_ops.core.errors import CommitConflict, CommitStateUnknown, LanceOpsError, StoreError, TasksLost
from lance_ops.core.records import dataclass
from lance_ops.maintenance.cleanup import CleanupTasks, cleanup_old_versions
from lance_ops.maintenance.compaction import compact_files
from lance_ops.maintenance.debt.dues import Due
from lance_ops.maintenance.debt.measurement import TableDebt, measure_debt
from lance_ops.maintenance.debt.past_costs import PastCosts
from lance_ops.maintenance.debt.policy import DebtPolicy
from lance_ops.maintenance.debt.rewrites import fitting, fragment_sizes
from lance_ops.maintenance.debt.step_costs import StepCost, measure_compaction
from lance_ops.maintenance.debt.step_kinds import StepKind
from lance_ops.maintenance.indexing import create_scalar_index, optimize_indices
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot

__all__ = [
    "PaidStep",
    "Payment",
    "PaymentPlan",
    "PaymentStatus",
    "affordable",
    "dated_key",
    "pay_debt",
    "plan_payment",
    "unpaid",
]


_PASSING = (CommitConflict, CommitStateUnknown, StoreError, TasksLost)
"""Errors after which the same step may succeed on the same version."""


class PaymentStatus(Enum):
    """How a payment ended."""

    DONE = "done"
    NOTHING_OWED = "nothing owed"
    WAITING = "waiting"
    """Steps are owed, but the budget allowed none."""
    FRUITLESS = "fruitless"
    """Steps are owed, but all of them gained nothing before at this version, so none was taken."""
    FAILED = "failed"


@dataclass(frozen=True)
class PaymentPlan:
    """What a payment would do: the steps, or parts of steps, that the budget allows.

    `waiting` are the keys of owed steps that the budget does not reach. Fruitless steps are in neither.
    """

    steps: tuple[Due, ...] = ()
    waiting: tuple[str, ...] = ()

    @property
    def cost_bytes(self) -> int:
        """The bytes that the steps would read and write again."""
        return sum(step.cost_bytes for step in self.steps)

    @property
    def saved_read_bytes(self) -> int:
        """What one read of the whole table would cost less. An index gains for look-ups only."""
        return sum(step.gain_bytes for step in self.steps if step.kind is StepKind.COMPACT)


@dataclass(frozen=True)
class PaidStep:
    """A step that was taken: what it cost and gained by its price, what was measured, and what it did.

    `measured` is None after any step but a compaction, and where `measure_compaction` returns None.
    `orphan_bytes` are those of files that no version names and that a clean-up left; None after another step.
    """

    key: str
    cost_bytes: int
    seconds: float
    what: str
    orphan_bytes: int | None = None
    gain_bytes: int = 0
    measured: StepCost | None = None


@dataclass(frozen=True)
class Payment:
    """The end of a payment. `waiting` are the keys of owed steps that the budget did not allow.

    `fruitless` are dated keys such as `v7 compact`, as `dated_key` makes them: steps that lower nothing at the version
    that the payment left. The caller passes them, and `past_costs`, to the next payment.
    `reason` says why it failed, after the error that ended it, and `failed_step` is the key of that step.
    """

    status: PaymentStatus
    before: TableDebt
    after: TableDebt
    steps: tuple[PaidStep, ...] = ()
    waiting: tuple[str, ...] = ()
    fruitless: tuple[str, ...] = ()
    reason: str | None = None
    error: LanceOpsError | None = field(default=None, repr=False, compare=False)
    past_costs: PastCosts = field(default_factory=PastCosts)
    failed_step: str | None = None

    @property
    def spent_bytes(self) -> int:
        """The bytes that the steps read and wrote again, by their prices."""
        return sum(step.cost_bytes for step in self.steps)

    @property
    def moved_bytes(self) -> int:
        """The bytes that the compactions moved, as far as they were measured: see `StepCost`."""
        return sum(step.measured.moved_bytes for step in self.steps if step.measured is not None)

    @property
    def saved_read_bytes(self) -> int:
        """What one read of the whole table costs less than before."""
        return self.before.read_bytes - self.after.read_bytes

    @property
    def orphan_bytes(self) -> int | None:
        """What a clean-up among the steps left in files that no version names; None without one."""
        return next((step.orphan_bytes for step in self.steps if step.orphan_bytes is not None), None)


def affordable(due: Due, max_bytes: int | None) -> Due | None:
    """Return the due, or the part of a compaction that costs at most `max_bytes`; None if nothing does."""
    if max_bytes is None or due.cost_bytes <= max_bytes:
        return due
    remapped = due.cost_bytes - sum(each.cost_bytes for each in due.rewrites)
    chosen = fitting(due.rewrites, max_bytes - remapped)
    if not chosen:
        return None
    cost = sum(each.cost_bytes for each in chosen) + remapped
    return replace(due, rewrites=chosen, cost_bytes=cost, gain_bytes=round(sum(each.gain_bytes for each in chosen)))


def plan_payment(debt: TableDebt, max_bytes: int | None = None, fruitless: Collection[str] = ()) -> PaymentPlan:
    """Return which owed steps a payment of at most `max_bytes` would take, in their order; `pay_debt` takes these."""
    steps: list[Due] = []
    waiting: list[str] = []
    left = max_bytes
    for due in unpaid(debt, fruitless):
        part = affordable(due, left)
        if part is None:
            waiting.append(due.key)
            continue
        steps.append(part)
        left = None if left is None else left - part.cost_bytes
    return PaymentPlan(tuple(steps), tuple(waiting))


def pay_debt(
    snapshot: Snapshot,
    policy: DebtPolicy | None = None,
    *,
    max_bytes: int | None = None,
    fruitless: Collection[str] = (),
    runner: Runner | None = None,
    orphans: bool = False,
    verified_at: datetime | None = None,
    past_costs: PastCosts | None = None,
) -> Payment:
    """Take the owed steps on the newest version, at most `max_bytes` by their prices, and return how it ended.

    Steps named in `fruitless` are passed over: those with a dated key at its version, and those with a plain key at any
    version. `past_costs` correct the prices; see `Payment`. An error of this library ends the payment as failed, and
    steps that were committed before stay. Other errors are raised.
    """
    policy, priced_by = policy or DebtPolicy(), past_costs or PastCosts()
    past = priced_by
    current = snapshot.latest()
    before = measure_debt(current, policy, orphans=orphans, verified_at=verified_at, past_costs=priced_by)
    plan = plan_payment(before, max_bytes, fruitless)
    passed_over = [due.key for due in before.owed if dated_key(due, before) in fruitless]
    steps: list[PaidStep] = []
    failed: tuple[Due, LanceOpsError] | None = None
    for due in plan.steps:
        began = time.monotonic()
        try:
            taken = _take(current, due, policy, runner)
        except LanceOpsError as raised:
            failed = due, raised
            break
        seconds = time.monotonic() - began
        measured = None
        if due.kind is StepKind.COMPACT:
            measured = measure_compaction(current, taken.snapshot, policy.rates)
        if measured is not None:
            past = past.with_step(due.kind, due.cost_bytes / priced_by.ratio(due.kind), measured.moved_bytes)
        steps.append(
            PaidStep(due.key, due.cost_bytes, seconds, taken.what, taken.orphan_bytes, due.gain_bytes, measured)
        )
        current = taken.snapshot
    if not steps and failed is None:
        status = _status_without_steps(before, plan.waiting)
        plain_keys = {due.key for due in before.dues}  # plain keys say nothing of this version
        in_vain = tuple(sorted({*fruitless} - plain_keys))
        return Payment(status, before, before, waiting=plan.waiting, fruitless=in_vain, past_costs=past)
    after = measure_debt(current.latest(), policy, orphans=orphans, verified_at=verified_at, past_costs=past)
    tried = [*passed_over, *(step.key for step in steps)]
    if failed is None:
        in_vain = _fruitless(tried, before, after)
        return Payment(PaymentStatus.DONE, before, after, tuple(steps), plan.waiting, in_vain, past_costs=past)
    due, error = failed
    in_vain = _fruitless([*tried, *([] if isinstance(error, _PASSING) else [due.key])], before, after)
    return Payment(
        PaymentStatus.FAILED,
        before,
        after,
        steps=tuple(steps),
        waiting=plan.waiting,
        fruitless=in_vain,
        reason=f"{due.key}: {error}",
        error=error,
        past_costs=past,
        failed_step=due.key,
    )


def unpaid(debt: TableDebt, fruitless: Collection[str]) -> tuple[Due, ...]:
    """Return the owed steps without the fruitless ones, which are named by their dated key or by their plain key."""
    return tuple(due for due in debt.owed if dated_key(due, debt) not in fruitless and due.key not in fruitless)


def dated_key(due: Due, debt: TableDebt) -> str:
    """Name a due at its version, such as `v7 compact`.

    More versions become old without a commit, so the name of a clean-up has their number.
    """
    removable = f" of {debt.inventory.num_removable_versions}" if due.kind is StepKind.CLEANUP else ""
    return f"v{debt.version} {due.key}{removable}"


def _status_without_steps(before: TableDebt, waiting: Collection[str]) -> PaymentStatus:
    if waiting:
        return PaymentStatus.WAITING
    return PaymentStatus.FRUITLESS if before.owed else PaymentStatus.NOTHING_OWED


def _fruitless(tried: list[str], before: TableDebt, after: TableDebt) -> tuple[str, ...]:
    """Return the steps that were tried and are owed as before, named at the version after the payment."""
    found = []
    for key in tried:
        was, still = before.due(key), after.due(key)
        if was is not None and still is not None and still.is_owed and _amount(still) >= _amount(was):
            found.append(dated_key(still, after))
    return tuple(found)


def _amount(due: Due) -> int:
    return due.freed_bytes if due.kind is StepKind.CLEANUP else due.gain_bytes


class _Taken(NamedTuple):
    """The version that a step left, and what it did; `PaidStep` says what `orphan_bytes` are."""

    snapshot: Snapshot
    what: str
    orphan_bytes: int | None = None


def _take(snapshot: Snapshot, due: Due, policy: DebtPolicy, runner: Runner | None) -> _Taken:
    match due.kind:
        case StepKind.COMPACT:
            return _Taken(*_compact(snapshot, due, policy, runner))
        case StepKind.REINDEX:
            return _Taken(*_reindex(snapshot, due.subject, policy, runner))
        case StepKind.CLEANUP:
            options = replace(policy.cleanup, error_if_tagged_old_versions=False)
            stats = cleanup_old_versions(snapshot, options, CleanupTasks.of(runner))
            what = f"removed {stats.old_versions:,} versions, {stats.bytes_removed:,} bytes"
            what += f"; {stats.failed_deletes:,} deletions failed" if stats.failed_deletes else ""
            return _Taken(snapshot, what, stats.orphan_bytes)


def _compact(snapshot: Snapshot, due: Due, policy: DebtPolicy, runner: Runner | None) -> tuple[Snapshot, str]:
    """Rewrite the chosen fragments. A plan that is made again after a conflict stays within their stored bytes.

    Some writers record no sizes of files. Then there is no limit to keep.
    """
    chosen = frozenset(fragment_id for each in due.rewrites for fragment_id in each.fragment_ids)
    sizes = fragment_sizes(snapshot)
    stored = sum(sizes[fragment_id].size_bytes for fragment_id in chosen)
    limits = [limit for limit in (policy.compaction.max_source_bytes, stored or None) if limit is not None]
    options = replace(policy.compaction, only_fragment_ids=chosen, max_source_bytes=min(limits, default=None))
    made, metrics = compact_files(snapshot, options, runner)
    return made, f"rewrote {metrics.fragments_removed:,} fragments as {metrics.fragments_added:,}"


def _reindex(snapshot: Snapshot, name: str, policy: DebtPolicy, runner: Runner | None) -> tuple[Snapshot, str]:
    wanted = next((each for each in policy.indices if each.name == name), None)
    if wanted is not None and all(index.name != name for index in snapshot.manifest.indices):
        return create_scalar_index(snapshot, wanted.column, wanted.type_name, name, runner=runner), "built"
    return optimize_indices(snapshot, [name], runner=runner), "extended"
