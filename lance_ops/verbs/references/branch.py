"""Begin and remove branches."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.refs import (
    branch_of,
    branch_uri,
    delete_branch,
    has_branch_remains,
    list_branches,
    open_branch,
    reference_store,
)
from lance_ops.verbs.chosen_version import chosen_version
from lance_ops.verbs.contract import Execution, Facts, Measures, Preview, Verb, VerbResult, WhenMoved
from lance_ops.verbs.options import Option
from lance_ops.verbs.own_measures import BRANCHES, OwnMeasure

__all__ = ["Branch"]


@dataclass(frozen=True)
class Branch(Verb):
    """A branch's name, the version that it begins with, and what to do with it.

    A branch shares the files of the version that it begins with. Its URI opens it as a dataset.
    """

    name: ClassVar[str] = "branch"
    summary: ClassVar[str] = "Begin a line of versions beside this one, or remove one."
    command: ClassVar[str] = "branches"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED
    own_measures: ClassVar[tuple[OwnMeasure, ...]] = (BRANCHES,)

    branch: Annotated[str, Option("The branch's name.")]
    version: Annotated[int | None, Option("The version to begin with; by default the newest.", at_least=1)] = None
    tag: Annotated[str | None, Option("Instead: the tag of the version to begin with.")] = None
    action: Annotated[Literal["create", "delete"], Option("What to do with the branch.")] = "create"

    def preview(self, work: Execution) -> Preview:
        """Show the version that the branch begins with, or the rows that would go with it."""
        data = work.data
        size = Measures.of(data)
        if self.action == "delete" and has_branch_remains(data.snapshot, self.branch):
            summary = f"remove the files of branch {self.branch}, whose removal or creation was interrupted"
            return Preview(summary, size, size, facts=self._facts(data))
        if (self.branch in data.branches.list()) != (self.action == "delete"):
            exists = "exists already" if self.action == "create" else "does not exist"
            raise InvalidInput(f"{data.uri}: branch {self.branch!r} {exists}")
        if self.action == "delete":
            rows = open_branch(data.snapshot, self.branch).num_rows
            lost = f"Versions of the branch and their own files are removed for good; its newest has {rows:,} rows."
            return Preview(f"delete branch {self.branch}", size, size, warnings=(lost,), facts=self._facts(data))
        begun = data.snapshot.at(self._begun(data))
        summary = f"begin branch {self.branch} with version {begun.version}: {begun.num_rows:,} rows"
        return Preview(summary, size, size, facts=self._facts(data))

    def already_done(self, work: Execution) -> VerbResult | None:
        """Return that the branch was begun or removed, if an earlier attempt may have done so.

        A branch of another writer is older than that attempt, or begins with another version. A branch is removed when
        its files are, too: the attempt may have ended when only the name was.
        """
        if work.attempted_since is None:
            return None
        snapshot = work.data.snapshot
        found = list_branches(reference_store(snapshot)).get(self.branch)
        if self.action == "delete":
            is_removed = found is None and not has_branch_remains(snapshot, self.branch)
            return VerbResult(self._facts(work.data)) if is_removed else None
        if found is None or found.create_at < int(work.attempted_since.timestamp()):  # it has whole seconds
            return None
        asked = chosen_version(work.data, self.version, self.tag)
        is_asked = found.parent_branch == branch_of(snapshot) and asked in (None, found.parent_version)
        began = replace(self, version=found.parent_version, tag=None)
        return VerbResult(began._facts(work.data)) if is_asked else None

    def execute(self, work: Execution) -> VerbResult:
        """Begin or remove the branch; this one's versions stay as they are."""
        if self.action == "delete":
            delete_branch(work.data.snapshot, self.branch)
        else:
            work.data.create_branch(self.branch, self._begun(work.data))
        return VerbResult(self._facts(work.data))

    def _begun(self, data: LanceDataset) -> int:
        return chosen_version(data, self.version, self.tag) or data.version

    def _facts(self, data: LanceDataset) -> Facts:
        facts = {"branch": self.branch, "action": self.action, "branch_uri": branch_uri(data.snapshot, self.branch)}
        return facts if self.action == "delete" else {**facts, "begins_with": self._begun(data)}
