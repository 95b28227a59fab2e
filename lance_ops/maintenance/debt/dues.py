"""Turn measures into dues: one for each step that would lower a version's debt, priced, owed or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.indices import index_type_of
from lance_ops.maintenance.compaction import plan_compaction
from lance_ops.maintenance.debt.inventory import Inventory
from lance_ops.maintenance.debt.past_costs import PastCosts
from lance_ops.maintenance.debt.policy import DebtPolicy, WantedIndex
from lance_ops.maintenance.debt.rewrites import FragmentSize, Rewrite, with_parts, worthwhile
from lance_ops.maintenance.debt.step_kinds import StepKind
from lance_ops.maintenance.health import HealthReport, IndexCoverage
from lance_ops.snapshot import Snapshot
from lance_ops.table import check_writable

__all__ = ["Due", "dues_of"]


@dataclass(frozen=True)
class Due:
    """A step that would lower the debt of one version; `is_owed` says whether the policy wants it now.

    `subject` names an index. `gain_bytes` is what each read of the whole table gains by a compaction, and what each
    look-up gains by an index. `cost_bytes` is the stored bytes that the step reads and replaces, corrected by what
    earlier steps cost (`PastCosts`). `freed_bytes` is what the store gets back at least: manifests, and orphaned files
    if they were listed. The data files that only removable versions name are not counted. `blocked` says why the step
    cannot be taken; such a due is not owed.
    """

    kind: StepKind
    subject: str
    what: str
    is_owed: bool
    gain_bytes: int = 0
    freed_bytes: int = 0
    cost_bytes: int = 0
    rewrites: tuple[Rewrite, ...] = ()
    blocked: str | None = None

    @property
    def key(self) -> str:
        """The kind and the subject, such as `reindex id_idx`."""
        return f"{self.kind.value} {self.subject}".strip()

    @property
    def owed_text(self) -> str:
        """Whether it is owed, for people: `yes`, `not yet` or `blocked`."""
        return "blocked" if self.blocked else "yes" if self.is_owed else "not yet"

    @property
    def why(self) -> str:
        """What the step would mend, or why it cannot be taken."""
        return self.blocked or self.what


def dues_of(
    snapshot: Snapshot,
    policy: DebtPolicy,
    report: HealthReport,
    sizes: dict[int, FragmentSize],
    inventory: Inventory,
    past_costs: PastCosts,
) -> Iterator[Due]:
    """Yield the dues of a version; `report` has its measures, `sizes` those of its fragments. No data file is read.

    All are blocked for a version with a feature that this release cannot write.
    """
    blocked = None
    try:
        check_writable(snapshot.manifest, f"{snapshot.uri} at version {snapshot.version}")
    except UnsupportedFeature as error:
        blocked = str(error)
    for due in _dues(snapshot, policy, report, sizes, inventory, past_costs):
        yield due if blocked is None else replace(due, is_owed=False, blocked=blocked)


def _dues(
    snapshot: Snapshot,
    policy: DebtPolicy,
    report: HealthReport,
    sizes: dict[int, FragmentSize],
    inventory: Inventory,
    past_costs: PastCosts,
) -> Iterator[Due]:
    compaction = _compaction(snapshot, policy, report, sizes, past_costs.ratio(StepKind.COMPACT))
    if compaction is not None:
        yield compaction
    covered = {index.name: index for index in report.indices}
    for wanted in policy.indices:
        if wanted.name not in covered:
            yield _build(policy, report, wanted, len(snapshot.schema.fields))
    for index in report.indices:
        due = _extension(snapshot, policy, report, index)
        if due is not None:
            yield due
    cleanup = _cleanup(policy, inventory)
    if cleanup is not None:
        yield cleanup


def _compaction(
    snapshot: Snapshot, policy: DebtPolicy, report: HealthReport, sizes: dict[int, FragmentSize], cost_ratio: float
) -> Due | None:
    kind, rates, limits = StepKind.COMPACT, policy.rates, policy.limits
    try:
        plan = plan_compaction(snapshot, policy.compaction)
    except UnsupportedFeature as error:
        return Due(kind, "", "fragments cannot be compacted", is_owed=False, blocked=str(error))
    beyond = report.num_small_fragments > limits.max_small_fragments or report.deleted_ratio > limits.max_deleted_ratio
    rewrites = worthwhile(plan, sizes, rates, cost_ratio, all_of_them=True)
    paying = worthwhile(plan, sizes, rates, cost_ratio)
    remapped = round(sum(index.size_bytes for index in report.indices) * cost_ratio)
    gain = sum(each.gain_bytes for each in paying)
    cost = sum(each.cost_bytes for each in paying) + remapped
    pays = bool(paying) and rates.pays_back(gain, cost)
    chosen = rewrites if beyond or not pays else paying
    if not chosen:
        return None
    num_read = sum(len(each.fragment_ids) for each in chosen)
    return Due(
        kind,
        "",
        f"{num_read:,} of {report.num_fragments:,} fragments are small or hold deleted rows",
        is_owed=beyond or pays,
        gain_bytes=round(sum(each.gain_bytes for each in chosen)),
        cost_bytes=sum(each.cost_bytes for each in chosen) + remapped,
        rewrites=tuple(with_parts(chosen, sizes, plan.options, rates, cost_ratio)),
    )


def _build(policy: DebtPolicy, report: HealthReport, wanted: WantedIndex, num_columns: int) -> Due:
    gain = policy.rates.read_cost(report.size_bytes, report.num_fragments)
    cost = round(report.size_bytes / max(num_columns, 1))
    return Due(
        StepKind.REINDEX, wanted.name, "the index is missing", is_owed=True, gain_bytes=round(gain), cost_bytes=cost
    )


def _extension(snapshot: Snapshot, policy: DebtPolicy, report: HealthReport, index: IndexCoverage) -> Due | None:
    """Price the rows that each look-up scans because the index does not cover them."""
    missing = 1 - index.indexed_ratio
    if not missing:
        return None
    what = f"{missing:.1%} of the rows are not covered"
    segments = [each for each in snapshot.manifest.indices if each.name == index.name]
    try:
        for segment in segments:
            index_type_of(segment)
    except UnsupportedFeature as error:
        blocked = f"{error} (the library that built it can extend it)"
        return Due(StepKind.REINDEX, index.name, what, is_owed=False, blocked=blocked)
    gain = policy.rates.read_cost(report.size_bytes * missing, index.num_unindexed_fragments)
    column_bytes = report.size_bytes * missing / max(len(snapshot.schema.fields), 1)
    cost = index.size_bytes + column_bytes
    beyond = index.indexed_ratio < policy.limits.min_indexed_ratio
    owed = beyond or policy.rates.pays_back(gain, cost)
    return Due(StepKind.REINDEX, index.name, what, is_owed=owed, gain_bytes=round(gain), cost_bytes=round(cost))


def _cleanup(policy: DebtPolicy, inventory: Inventory) -> Due | None:
    """Price nothing for reads: clean-up rewrites no data and gives storage back."""
    orphans = inventory.orphan_bytes or 0
    removable = inventory.num_removable_versions
    if not removable and not orphans:
        return None
    beyond = removable > policy.limits.max_versions
    owed = removable >= policy.min_removable_versions or beyond or orphans >= policy.rates.run_cost_bytes
    what = f"{removable:,} of {inventory.num_versions:,} versions may go"
    if inventory.orphan_bytes is not None:
        what += f", and {orphans:,} bytes that no version names"
    return Due(StepKind.CLEANUP, "", what, is_owed=owed, freed_bytes=inventory.removable_manifest_bytes + orphans)
