"""Build the asset checks on the head of a dataset.

`valid` and `batches_exactly_once` are blocking, because downstream assets must not be built from a broken version or
from duplicate rows. `intact` reads files again, so it checks some of them in each run. The other checks are about cost,
and one measurement answers all of them. Where the newest version does not open, `valid` and `intact` fail, and the
others warn that they could not look.

An evaluation of `batches_exactly_once` says which version it looked at, and which batches the table held there. In a
run of the ingest job, the next evaluation reads only the versions since, if this one passed and these versions prove
that no batch is there twice. In other runs somebody asks about the table, so the whole history is read.
"""

# No postponed annotations in this module: Dagster compares the annotation of `context` with its own class.

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import dagster as dg

from lance_ops.core.errors import CorruptFile
from lance_ops.core.records import dataclass
from lance_ops.core.schema import SchemaMode
from lance_ops.dagster.declaration import DatasetConfig, DatasetNames
from lance_ops.dagster.evaluations import CheckEvaluator, check_result_of
from lance_ops.dagster.event_log import newest_evaluation
from lance_ops.dagster.head.freshness import FRESH, build_freshness_check, freshness
from lance_ops.dagster.head.integrity import INTACT, verify_some
from lance_ops.dagster.head.recorded_versions import identity_of, may_hold
from lance_ops.dagster.head.validity import NO_VERSION_YET, VALID, evaluate_valid, unopened_warning
from lance_ops.dagster.head.verdicts import HEALTH_CHECKS, judge, measure
from lance_ops.dagster.markdown import named
from lance_ops.dagster.opening import OpenNewest, open_to_look, opening_once
from lance_ops.dagster.tick_failures import damage_sentence
from lance_ops.maintenance import batch_events_after, ingested_batches
from lance_ops.maintenance.health import VersionSummary, timeline
from lance_ops.snapshot import Snapshot

__all__ = ["BatchAudit", "audit_batches", "build_checks", "evaluate_batches", "head_evaluators"]

_BATCHES = "batches_exactly_once"
_SHOWN = 20
_TOOK_ROWS_OUT = ("Overwrite", "Restore")
_EXCHANGED_ROWS = "Update"
_EVALUATED = "lance/compared"
"""The metadata that names the version an evaluation looked at, when it was committed, and the batches held there."""


def build_checks(config: DatasetConfig) -> list[dg.AssetChecksDefinition]:
    """Return the checks of a dataset's head."""
    checks = [_valid_check(config), _health_checks(config), _intact_check(config)]
    if config.raw is not None:
        checks.append(_batches_check(config))
    if config.health.hours_without_version is not None:
        checks.append(build_freshness_check(config))
    return checks


def head_evaluators(
    instance: dg.DagsterInstance, config: DatasetConfig, ingested: AbstractSet[str], open_newest: OpenNewest
) -> list[CheckEvaluator]:
    """Return what evaluates `valid`, the checks of health, `batches_exactly_once` and `fresh`, each by itself.

    `ingested` are the batches that the calling run has brought into the table: Dagster may not have stored the run's
    events yet. All of them look at what `open_newest` opens. The caller must not have called it yet, so that the
    recorded batches are read before the table.
    """
    head = DatasetNames(config.name).head
    found = [
        CheckEvaluator((VALID,), lambda: [evaluate_valid(instance, config, open_newest)]),
        CheckEvaluator(HEALTH_CHECKS, lambda: _evaluate_health(config, open_newest)),
    ]
    if config.raw is not None:
        recorded = _recorded_batches(instance, config) | ingested
        found.append(CheckEvaluator((_BATCHES,), lambda: [evaluate_batches(instance, config, recorded, open_newest)]))
    if config.health.hours_without_version is not None:
        found.append(CheckEvaluator((FRESH,), lambda: [freshness(instance, config, open_newest).evaluation(head)]))
    return found


@dataclass(frozen=True)
class BatchAudit:
    """Batches that Dagster recorded, compared with those in the dataset's history; all fields are batch keys."""

    lost: tuple[str, ...]
    unrecorded: tuple[str, ...]
    doubled: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the table holds every recorded batch, and no batch twice. A batch may lack a record."""
        return not self.lost and not self.doubled

    @property
    def sentence(self) -> str:
        """The result as a sentence, with the remedy."""
        parts = []
        if self.doubled:
            parts.append(f"ingested twice: {named(self.doubled, _SHOWN)}; restore a version before, ingest again")
        if self.lost:
            remedy = "materialize these partitions again, or delete those that may stay away"
            parts.append(f"recorded and not in the dataset: {named(self.lost, _SHOWN)}; {remedy}")
        if self.unrecorded:
            parts.append(
                f"in the dataset and not recorded: {named(self.unrecorded, _SHOWN)}; materialize them, a no-op"
            )
        return ". ".join(parts) or "every recorded batch is in the dataset once"


def audit_batches(
    recorded: AbstractSet[str], held: AbstractSet[str], summaries: Sequence[VersionSummary]
) -> BatchAudit:
    """Compare the keys of materialized partitions with the batches in the table and in the retained history."""
    return BatchAudit(tuple(sorted(recorded - held)), tuple(sorted(held - recorded)), _doubled(summaries))


def evaluate_batches(
    instance: dg.DagsterInstance,
    config: DatasetConfig,
    recorded: AbstractSet[str],
    open_newest: OpenNewest,
    *,
    only_new_versions: bool = False,
) -> dg.AssetCheckEvaluation:
    """Evaluate `batches_exactly_once`; `recorded` are the keys of materialized partitions, read before the table.

    With `only_new_versions`, it reads the versions since its last evaluation, if that evaluation passed and these
    versions prove the result. Otherwise it reads the whole history.
    """
    names = DatasetNames(config.name)
    try:
        snapshot = open_newest()
    except CorruptFile as error:
        return unopened_warning(names.head, _BATCHES, error)
    overwrites = config.landing().schema_mode is SchemaMode.OVERWRITE
    known = recorded & set(instance.get_dynamic_partitions(names.of("batches")))
    held: AbstractSet[str] | None = None
    history: Sequence[VersionSummary] = ()
    try:
        if only_new_versions and snapshot is not None and not overwrites:
            held = _held_since_last(instance, config, snapshot, (known, recorded))
        if held is None:
            held = ingested_batches(snapshot).keys() if snapshot else set()
            history = timeline(snapshot) if snapshot else ()
    except CorruptFile as error:  # of the record of batches, or of an older version: `valid` does not read them
        return dg.AssetCheckEvaluation(
            names.head, _BATCHES, False, description=damage_sentence(config, error), blocking=True
        )
    # A batch whose partition was deleted may stay away; with an overwrite, the newest batch takes the others out.
    recorded = (recorded & held) if overwrites else known | (recorded & held)
    audit = audit_batches(recorded, held, history)
    return dg.AssetCheckEvaluation(
        asset_key=names.head,
        check_name=_BATCHES,
        passed=audit.passed,
        description=audit.sentence,
        metadata={
            "lance/recorded": len(recorded),
            "lance/held": len(held),
            "lance/lost": len(audit.lost),
            "lance/unrecorded": len(audit.unrecorded),
            "lance/doubled": len(audit.doubled),
            **({_EVALUATED: _evaluated_metadata(snapshot, held)} if snapshot else {}),
        },
        blocking=True,
    )


def _valid_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    def valid(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        return check_result_of(evaluate_valid(context.instance, config))

    return _check(config, valid, VALID, "The manifest's invariants hold and its files are there, of the stated size.")


def _batches_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    def batches_exactly_once(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        recorded, open_newest = _recorded_batches(context.instance, config), opening_once(config)
        only_new_versions = context.run.job_name == DatasetNames(config.name).of("ingest")
        return check_result_of(
            evaluate_batches(context.instance, config, recorded, open_newest, only_new_versions=only_new_versions)
        )

    return _check(config, batches_exactly_once, _BATCHES, "Each recorded batch is in the history, and only once.")


def _recorded_batches(instance: dg.DagsterInstance, config: DatasetConfig) -> AbstractSet[str]:
    return instance.get_materialized_partitions(DatasetNames(config.name).batches)


def _evaluated_metadata(snapshot: Snapshot, held: Iterable[str]) -> dg.MetadataValue[Any]:
    return dg.MetadataValue.json([*identity_of(snapshot.manifest), _digest(held)])


def _held_since_last(
    instance: dg.DagsterInstance, config: DatasetConfig, newest: Snapshot, possible_batches: Iterable[AbstractSet[str]]
) -> AbstractSet[str] | None:
    """Return the batches that the table holds, if the last evaluation and the versions since prove that none is twice.

    Each of the `possible_batches` is a set of keys that the table may hold. Without the batches added since the last
    evaluation, one of these sets must be what that evaluation found in the table: then no batch was added a second
    time. None if no set is, if that evaluation did not pass or was of another dataset, or if a restore or an overwrite
    took batches out since.
    """
    last = newest_evaluation(instance, dg.AssetCheckKey(DatasetNames(config.name).head, _BATCHES))
    evaluated = last.evaluation.metadata.get(_EVALUATED) if last is not None and last.evaluation.passed else None
    if not isinstance(evaluated, dg.JsonMetadataValue) or not isinstance(evaluated.data, list):
        return None
    version, committed_at, digest = evaluated.data
    events = batch_events_after(newest, version) if may_hold(newest, (version, committed_at)) else None
    if events is None or any(event.back_to is not None for event in events):
        return None
    added = Counter(key for event in events for key in event.batches)
    if any(count > 1 for count in added.values()):
        return None
    return next((each | added.keys() for each in possible_batches if _digest(each - added.keys()) == digest), None)


def _digest(keys: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(sorted(keys)).encode(errors="surrogatepass")).hexdigest()


def _intact_check(config: DatasetConfig) -> dg.AssetChecksDefinition:
    names = DatasetNames(config.name)

    @dg.asset_check(
        asset=names.head,
        name=INTACT,
        description="Files have their checksums and agree with each other. A run checks some of them.",
        additional_deps=[names.batches] if config.raw is not None else None,
    )
    def intact(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        if not _is_there(config):
            return check_result_of(_not_there(names.head, INTACT))
        megabytes = config.maintenance.verification.max_megabytes
        return check_result_of(verify_some(context.instance, config, max_megabytes=megabytes))

    return intact


def _is_there(config: DatasetConfig) -> bool:
    """Return whether the dataset exists, even if its newest version does not open."""
    try:
        return open_to_look(config) is not None
    except CorruptFile:
        return True


def _check(
    config: DatasetConfig, function: Callable[..., dg.AssetCheckResult], name: str, description: str
) -> dg.AssetChecksDefinition:
    names = DatasetNames(config.name)
    return dg.asset_check(
        asset=names.head,
        name=name,
        description=description,
        blocking=True,
        additional_deps=[names.batches] if config.raw is not None else None,
    )(function)


def _health_checks(config: DatasetConfig) -> dg.AssetChecksDefinition:
    names = DatasetNames(config.name)
    specs = [
        dg.AssetCheckSpec(
            name,
            asset=names.head,
            description=description,
            additional_deps=[names.batches] if config.raw is not None else None,
        )
        for name, description in HEALTH_CHECKS.items()
    ]

    @dg.multi_asset_check(name=names.of("health_checks"), specs=specs, can_subset=True)
    def health_checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        wanted = {key.name for key in context.selected_asset_check_keys}
        yield from (
            check_result_of(found)
            for found in _evaluate_health(config, opening_once(config))
            if found.check_name in wanted
        )

    return health_checks


def _evaluate_health(config: DatasetConfig, open_newest: OpenNewest) -> list[dg.AssetCheckEvaluation]:
    head = DatasetNames(config.name).head
    try:
        snapshot = open_newest()
    except CorruptFile as error:
        return [unopened_warning(head, name, error) for name in HEALTH_CHECKS]
    if snapshot is None:
        return [_not_there(head, name) for name in HEALTH_CHECKS]
    return [verdict.evaluation(head) for verdict in judge(config, measure(config, snapshot))]


def _not_there(head: dg.AssetKey, name: str) -> dg.AssetCheckEvaluation:
    return dg.AssetCheckEvaluation(head, name, True, description=NO_VERSION_YET)


def _doubled(summaries: Sequence[VersionSummary]) -> tuple[str, ...]:
    """Return the batches that two retained versions added with no removal of rows between them.

    A version that replaces a batch, or merges it by key, is an `Update`: it adds no row beside those of before.
    """
    counts: Counter[str] = Counter()
    doubled: set[str] = set()
    for summary in summaries:
        if summary.operation in _TOOK_ROWS_OUT:
            counts.clear()
        exchanges = summary.operation == _EXCHANGED_ROWS
        counts.update(key for key in summary.batches if not (exchanges and key in counts))
        doubled |= {key for key, count in counts.items() if count > 1}
    return tuple(sorted(doubled))
