"""Create, move and delete tags; clean-up keeps tagged versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.runners import Runner
from lance_ops.verbs.contract import Execution, Facts, Measures, Preview, Verb, WhenMoved

__all__ = ["Tag"]

_ACTIONS = ("create", "move", "delete")


@dataclass(frozen=True)
class Tag(Verb):
    """A tag's name, the version that it names (the newest by default), and what to do with it."""

    name: ClassVar[str] = "tag"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED

    tag: str
    version: int | None = None
    action: str = "create"

    def preview(self, data: LanceDataset, runner: Runner) -> Preview:
        """Say what the tag names now."""
        self._check()
        now = data.tags.list().get(self.tag)
        if (now is None) != (self.action == "create"):
            raise InvalidInput(f"{data.uri}: tag {self.tag!r} {'does not exist' if now is None else 'exists already'}")
        size = Measures.of(data)
        target = "" if self.action == "delete" else f" at version {self.version or data.version}"
        return Preview(f"{self.action} tag {self.tag}{target}", size, size, facts=self._facts(data))

    def execute(self, work: Execution) -> Facts:
        """Write or remove the tag's file; no version is committed."""
        self._check()
        tags, version = work.data.tags, self.version or work.data.version
        match self.action:
            case "create":
                tags.create(self.tag, version)
            case "move":
                tags.update(self.tag, version)
            case "delete":
                tags.delete(self.tag)
        return self._facts(work.data)

    def _check(self) -> None:
        if self.action not in _ACTIONS:
            raise InvalidInput(f"action is one of {', '.join(_ACTIONS)}, not {self.action!r}")

    def _facts(self, data: LanceDataset) -> Facts:
        return {"tag": self.tag, "action": self.action, "version": self.version or data.version}
