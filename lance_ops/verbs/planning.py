"""Plan a verb on a version, and execute it later with the stored options.

A stored plan has the verb, its options, the version and the preview's extent, and not the verb's steps. `WhenMoved`
says on which version `execute_plan` executes the verb, and when it refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from lance_ops.api import LanceDataset
from lance_ops.core.errors import (
    CorruptFile,
    DatasetNotFound,
    IncompatibleTransaction,
    InvalidInput,
    PlanOutdated,
    RetryableConflict,
    TooManyConcurrentWriters,
    UnsupportedFeature,
    VersionNotFound,
)
from lance_ops.core.records import dataclass
from lance_ops.refs import branch_of, erasure_before, reference_store
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot, history
from lance_ops.verbs.contract import (
    AbsentTable,
    Execution,
    Facts,
    Measures,
    Preview,
    Section,
    Target,
    Verb,
    VerbResult,
    WhenMoved,
)
from lance_ops.verbs.sources import source_tokens, version_id
from lance_ops.verbs.stored_plan import StoredPlan
from lance_ops.writing import CONFLICT_RETRIES

__all__ = ["Executed", "do_now", "execute_plan", "make_plan"]

_MOST_NAMED = 10


@dataclass(frozen=True)
class Executed:
    """What was done: sizes before and after, the versions, and what the verb says; see `VerbResult`.

    `own_measures` has the verb's own measures by name, before and after; see `Verb.own_measures`.

    `version` and `after` are of the last version that the verb committed. If it committed none, `version` is
    `read_version`. Versions of other writers do not count. A table that did not exist has version 0.
    """

    before: Measures
    after: Measures
    read_version: int
    version: int
    facts: Facts
    sections: tuple[Section, ...] = ()
    problem: str = ""
    outcome: Any = field(default=None, repr=False, compare=False)
    own_measures: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def links(self) -> dict[str, str]:
        """The facts that are paths or URIs of what people open, such as a report."""
        return {name: str(value) for name, value in self.facts.items() if name.startswith("report")}


def make_plan(
    verb: Verb, data: Target, runner: Runner | None = None, *, raw_storage_options: Mapping[str, str] | None = None
) -> tuple[StoredPlan, Preview]:
    """Plan a verb on the opened version, and preview it.

    The dataset stays as it is. Tasks of a preview may leave files for each other beneath its `data`, which are removed.
    """
    work = _work(verb, data, runner, raw_storage_options)
    preview = _checked(verb, work).preview(work)
    return StoredPlan.of(verb, work, preview), preview


def do_now(
    verb: Verb,
    data: Target,
    runner: Runner | None = None,
    *,
    raw_storage_options: Mapping[str, str] | None = None,
    token: str | None = None,
    attempted_since: datetime | None = None,
) -> Executed:
    """Plan a verb on the opened version and execute it at once; after a conflict it is planned again.

    The commit of a verb that `carries_token` states `token`. If an earlier attempt of the same work may have done it,
    `attempted_since` is when that began: then a verb does nothing that is already done; see `Verb.already_done`.
    """
    work = _work(verb, data, runner, raw_storage_options)
    work = replace(work, retries=CONFLICT_RETRIES, token=token, attempted_since=attempted_since)
    done = None if attempted_since is None else _checked(verb, work).already_done(work)
    return _execute(verb, work) if done is None else _executed(Measures.of(data), data.version, done)


def execute_plan(
    plan: StoredPlan,
    newest: Target,
    runner: Runner | None = None,
    *,
    raw_storage_options: Mapping[str, str] | None = None,
    token: str | None = None,
    attempted_since: datetime | None = None,
) -> Executed:
    """Execute a stored plan on the dataset that it was made for, of which `newest` is the newest version.

    A plan whose work the newest version holds already does nothing; see `Verb.already_done`. `token` and
    `attempted_since` are as for `do_now`.
    Raises `InvalidInput` for a plan of another dataset. Raises `PlanOutdated` if a file or a function of the
    verb has changed, and, with the versions that appeared since, if the table has moved too far; see `WhenMoved`.
    """
    if plan.uri != newest.uri:
        raise InvalidInput(f"the plan is for {plan.uri}, not for {newest.uri}")
    work = _work(plan.verb, newest, runner, raw_storage_options)
    work = replace(work, promised=plan.extent, token=token, attempted_since=attempted_since)
    found = source_tokens(plan.verb, work)
    for source, token in plan.sources.items():
        if found.get(source) != token:
            raise PlanOutdated(f"{plan.uri}: {source} has changed since the plan: plan again")
    done = plan.verb.already_done(work)
    if done is not None:
        return _executed(Measures.of(newest), newest.version, done)
    work = replace(work, target=_planned(plan, newest))
    if isinstance(newest, AbsentTable):
        return _execute(plan.verb, work)
    current = replace(work, target=LanceDataset.of(newest.snapshot))
    when_moved = plan.verb.when_moved_by_options
    if when_moved is WhenMoved.REPLANNED or when_moved is WhenMoved.BOUNDED:
        return _execute(plan.verb, replace(current, retries=CONFLICT_RETRIES))
    if newest.version != plan.read_version and when_moved is not WhenMoved.JUDGED:
        if when_moved is not WhenMoved.COMPARED or not plan.verb.affects_same_rows(work.data, newest, work.runner):
            raise _outdated(plan, newest.snapshot)
        work = current
    try:
        return _execute(plan.verb, work)
    except (TooManyConcurrentWriters, RetryableConflict, IncompatibleTransaction) as conflict:
        raise _outdated(plan, newest.snapshot.latest()) from conflict


def _work(verb: Verb, data: Target, runner: Runner | None, raw_storage_options: Mapping[str, str] | None) -> Execution:
    of_landing = dict(raw_storage_options or {}) if verb.reads_landing else {}
    return Execution(data, runner or InThreads(), 0, of_landing)


def _planned(plan: StoredPlan, newest: Target) -> Target:
    """Return the version that a plan was made on; raise `PlanOutdated` if it is gone, or if another one took its name.

    Version 0 is that of a table that did not exist. A verb that `opens_damaged` gets the newest readable version if the
    planned one is newer and cannot be read. A verb that is `BOUNDED` gets the newest version if an erasure removed the
    planned one: an attempt of the plan itself may have done so.
    """
    if plan.read_version == AbsentTable.version:
        if not isinstance(newest, AbsentTable):
            raise PlanOutdated(f"{plan.uri}: the dataset was created since the plan: plan again")
        return newest
    if isinstance(newest, AbsentTable):
        raise DatasetNotFound(f"{newest.uri}: no dataset is there")
    try:
        planned = newest.snapshot.at(plan.read_version)
    except VersionNotFound as error:
        if plan.verb.when_moved_by_options is WhenMoved.BOUNDED and _was_erased(newest.snapshot, plan.read_version):
            return newest
        raise PlanOutdated(f"{plan.uri}: version {plan.read_version} was cleaned up: plan again") from error
    except (CorruptFile, UnsupportedFeature) as error:
        if not plan.verb.opens_damaged:
            raise
        if plan.verb.when_moved is WhenMoved.JUDGED and newest.version < plan.read_version:
            return newest  # the verb finds that the version above cannot be read
        raise PlanOutdated(f"{plan.uri}: version {plan.read_version} cannot be read any more: plan again") from error
    data = LanceDataset.of(planned)
    if version_id(data) != plan.version_id:
        raise PlanOutdated(f"{plan.uri}: the dataset was created anew since the plan: plan again")
    return data


def _was_erased(newest: Snapshot, version: int) -> bool:
    return erasure_before(reference_store(newest), branch_of(newest), version) is not None


def _checked(verb: Verb, work: Execution) -> Verb:
    """Return the verb; raise `DatasetNotFound` if it needs a table and none is there."""
    if not verb.creates_table:
        _ = work.data
    return verb


def _execute(verb: Verb, work: Execution) -> Executed:
    before, read_version = Measures.of(work.target), work.target.version  # the verb moves the handle on
    opened = LanceDataset.of(work.data.snapshot) if verb.own_measures else None
    own_before = [] if opened is None else [each.count(opened) for each in verb.own_measures]
    result = _checked(verb, work).execute(work)
    done = _executed(before, read_version, result)
    if opened is None:
        return done
    after = opened if result.committed is None else LanceDataset.of(result.committed)
    own = {each.name: (was, each.count(after)) for each, was in zip(verb.own_measures, own_before, strict=True)}
    return replace(done, own_measures=own)


def _executed(before: Measures, read_version: int, result: VerbResult) -> Executed:
    committed = result.committed
    after = before if committed is None else Measures.of(LanceDataset.of(committed))
    version = read_version if committed is None else committed.version
    return Executed(before, after, read_version, version, result.facts, result.sections, result.problem, result.outcome)


def _outdated(plan: StoredPlan, newest: Snapshot) -> PlanOutdated:
    since: list[str] = []
    for committed in history(newest):
        if committed.version <= plan.read_version or len(since) == _MOST_NAMED:
            break
        operation = committed.transaction.operation if committed.transaction else None
        since.append(f"{committed.version} ({type(operation).__name__ if operation else 'unknown'})")
    return PlanOutdated(
        f"{plan.uri}: {plan.verb.name} was planned on version {plan.read_version}, and newer versions contradict it: "
        f"{', '.join(since) or newest.version}; plan again"
    )
