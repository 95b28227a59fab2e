"""Create, move and delete tags; clean-up keeps tagged versions."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.refs import branch_of, list_tags, reference_store
from lance_ops.verbs.contract import Execution, Facts, Measures, Preview, Verb, VerbResult, WhenMoved
from lance_ops.verbs.options import Option
from lance_ops.verbs.own_measures import TAGS, OwnMeasure

__all__ = ["Tag"]


@dataclass(frozen=True)
class Tag(Verb):
    """A tag's name, the version that it names (the newest by default), and what to do with it."""

    name: ClassVar[str] = "tag"
    summary: ClassVar[str] = "Name a version, so that clean-up keeps it."
    command: ClassVar[str] = "tags"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED
    own_measures: ClassVar[tuple[OwnMeasure, ...]] = (TAGS,)

    tag: Annotated[str, Option("The tag's name.")]
    version: Annotated[int | None, Option("The version to name; by default the newest.", at_least=1)] = None
    action: Annotated[Literal["create", "move", "delete"], Option("What to do with the tag.")] = "create"

    def preview(self, work: Execution) -> Preview:
        """Say what the tag names now."""
        data = work.data
        now = data.tags.list().get(self.tag)
        if (now is None) != (self.action == "create"):
            raise InvalidInput(f"{data.uri}: tag {self.tag!r} {'does not exist' if now is None else 'exists already'}")
        size, target = Measures.of(data), f"version {self.version or data.version}"
        named = "" if now is None else f"version {now['version']}"
        match self.action:
            case "create":
                summary = f"create tag {self.tag} at {target}"
            case "move":
                summary = f"move tag {self.tag} from {named} to {target}"
            case "delete":
                summary = f"delete tag {self.tag} of {named}"
        lost = f"Clean-up may then remove {named}, unless something else keeps it."
        warnings = (lost,) if named and (self.action == "delete" or named != target) else ()
        return Preview(summary, size, size, warnings=warnings, facts=self._facts(data))

    def already_done(self, work: Execution) -> VerbResult | None:
        """Return that the tag was created or deleted, if an earlier attempt may have done so.

        A tag of another writer is older than that attempt, or names another version.
        """
        if work.attempted_since is None or self.action == "move":
            return None
        snapshot = work.data.snapshot
        found = list_tags(reference_store(snapshot)).get(self.tag)
        if self.action == "delete":
            return VerbResult(self._facts(work.data)) if found is None else None
        if found is None or found.created_at is None or found.created_at < work.attempted_since:
            return None
        is_asked = found.branch == branch_of(snapshot) and self.version in (None, found.version)
        return VerbResult(replace(self, version=found.version)._facts(work.data)) if is_asked else None

    def execute(self, work: Execution) -> VerbResult:
        """Write or remove the tag's file; no version is committed."""
        tags, version = work.data.tags, self.version or work.data.version
        match self.action:
            case "create":
                tags.create(self.tag, version)
            case "move":
                tags.update(self.tag, version)
            case "delete":
                tags.delete(self.tag)
        return VerbResult(self._facts(work.data))

    def _facts(self, data: LanceDataset) -> Facts:
        return {"tag": self.tag, "action": self.action, "version": self.version or data.version}
