"""Plan a verb on a version, and execute it later with the stored options.

A stored plan has the verb, its options and the version, and not the verb's steps. `WhenMoved` says on which version
`execute_plan` executes the verb, and when it refuses.
"""

from __future__ import annotations

from lance_ops.api import LanceDataset
from lance_ops.core.errors import (
    IncompatibleTransaction,
    InvalidInput,
    PlanOutdated,
    RetryableConflict,
    TooManyConcurrentWriters,
    VersionNotFound,
)
from lance_ops.core.records import dataclass
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot, history
from lance_ops.verbs.contract import Execution, Facts, Measures, Preview, Verb, WhenMoved
from lance_ops.verbs.sources import source_token, version_id
from lance_ops.verbs.stored_plan import StoredPlan

__all__ = ["Executed", "do_now", "execute_plan", "make_plan"]

_CONFLICT_RETRIES = 10
_MOST_NAMED = 10


@dataclass(frozen=True)
class Executed:
    """What was done: sizes before and after, the versions, and what the verb says.

    `version` and `after` are of the last version that the verb committed. If it committed none, `version` is
    `read_version`. Versions of other writers do not count.
    """

    before: Measures
    after: Measures
    read_version: int
    version: int
    facts: Facts

    @property
    def links(self) -> dict[str, str]:
        """The facts that are paths or URIs of what people open, such as a report."""
        return {name: str(value) for name, value in self.facts.items() if name.startswith("report")}


def make_plan(verb: Verb, data: LanceDataset, runner: Runner | None = None) -> tuple[StoredPlan, Preview]:
    """Plan a verb on the opened version, and preview it. Nothing is written."""
    preview = verb.preview(data, runner or InThreads())
    return StoredPlan.of(verb, data, preview), preview


def do_now(verb: Verb, data: LanceDataset, runner: Runner | None = None) -> Executed:
    """Plan a verb on the opened version and execute it at once; after a conflict it is planned again."""
    return _execute(verb, data, runner, _CONFLICT_RETRIES)


def execute_plan(plan: StoredPlan, newest: LanceDataset, runner: Runner | None = None) -> Executed:
    """Execute a stored plan on the dataset that it was made for, of which `newest` is the newest version.

    Raises `InvalidInput` for a plan of another dataset. Raises `PlanOutdated` if a file that the verb reads has
    changed, and, with the versions that appeared since, if the table has moved too far; see `WhenMoved`.
    """
    if plan.uri != newest.uri:
        raise InvalidInput(f"the plan is for {plan.uri}, not for {newest.uri}")
    try:
        planned = newest.snapshot.at(plan.read_version)
    except VersionNotFound as error:
        raise PlanOutdated(f"{plan.uri}: version {plan.read_version} was cleaned up: plan again") from error
    data = LanceDataset.of(planned)
    if version_id(data) != plan.version_id:
        raise PlanOutdated(f"{plan.uri}: the dataset was created anew since the plan: plan again")
    for source, token in plan.sources.items():
        if source_token(newest, source) != token:
            raise PlanOutdated(f"{plan.uri}: {source} has changed since the plan: plan again")
    if plan.verb.when_moved is WhenMoved.REPLANNED:
        return _execute(plan.verb, LanceDataset.of(newest.snapshot), runner, _CONFLICT_RETRIES)
    if newest.version != plan.read_version and plan.verb.when_moved is not WhenMoved.JUDGED:
        if plan.verb.when_moved is not WhenMoved.COMPARED or not plan.verb.affects_same_rows(data, newest):
            raise _outdated(plan, newest.snapshot)
        data = LanceDataset.of(newest.snapshot)
    try:
        return _execute(plan.verb, data, runner, 0)
    except (TooManyConcurrentWriters, RetryableConflict, IncompatibleTransaction) as conflict:
        raise _outdated(plan, newest.snapshot.latest()) from conflict


def _execute(verb: Verb, data: LanceDataset, runner: Runner | None, retries: int) -> Executed:
    before, read_version = Measures.of(data), data.version
    result = verb.execute(Execution(data, runner or InThreads(), retries))
    if result.committed is None:
        return Executed(before, before, read_version, read_version, result.facts)
    after = Measures.of(LanceDataset.of(result.committed))
    return Executed(before, after, read_version, result.committed.version, result.facts)


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
