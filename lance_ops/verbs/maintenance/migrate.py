"""Rewrite data files in another version of the file format."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Annotated, ClassVar

from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance.compaction import migrate_files, plan_migration
from lance_ops.verbs.contract import Execution, Measures, Preview, Section, Verb, VerbResult, WhenMoved
from lance_ops.verbs.options import Option

__all__ = ["Migrate"]


@dataclass(frozen=True)
class Migrate(Verb):
    """The file version that all files of the table shall have, and that new ones get.

    Each fragment with a file of another version becomes one fragment again.
    """

    name: ClassVar[str] = "migrate"
    summary: ClassVar[str] = "Rewrite data files in another version of the file format."
    command: ClassVar[str] = "migrate"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED

    data_storage_version: Annotated[str, Option("The file version, such as 2.1, or stable.")] = "stable"

    def preview(self, work: Execution) -> Preview:
        """Count the fragments and bytes of each version, and those to rewrite."""
        data = work.data
        snapshot, version, before = data.snapshot, FileVersion.parse(self.data_storage_version), Measures.of(data)
        plan = plan_migration(snapshot, version)
        size = sum(task.size_bytes for task in plan.tasks)
        rewritten = {fragment_id for task in plan.tasks for fragment_id in task.fragment_ids}
        dropped = sum(each.num_deletions for each in snapshot.fragments if each.id in rewritten)
        files = Counter(".".join(map(str, file.numbers)) for each in snapshot.fragments for file in each.files)
        lines = tuple((number, f"{count:,}") for number, count in sorted(files.items()))
        return Preview(
            f"rewrite {len(rewritten):,} of {before.fragments:,} fragments in file version {version.value}",
            before,
            replace(before, deleted_rows=before.deleted_rows - dropped),
            reads_bytes=size,
            writes_bytes=size,
            sections=(Section("Data files by the version in the manifest", ("version", "files"), lines),),
            facts={"fragments_to_rewrite": len(rewritten)},
            does_nothing=not plan.tasks and snapshot.file_version is version,
        )

    def already_done(self, work: Execution) -> VerbResult | None:
        """Return that nothing is left to do if all files of the newest version have the file version."""
        snapshot, version = work.data.snapshot, FileVersion.parse(self.data_storage_version)
        if snapshot.file_version is not version or plan_migration(snapshot, version).tasks:
            return None
        return VerbResult({"fragments_removed": 0, "fragments_added": 0})

    def execute(self, work: Execution) -> VerbResult:
        """Rewrite and commit once; after a conflict the fragments are planned again, at most `work.retries` times."""
        version = FileVersion.parse(self.data_storage_version)
        made, metrics = migrate_files(work.data.snapshot, version, work.runner, conflict_retries=work.retries)
        facts = {"fragments_removed": metrics.fragments_removed, "fragments_added": metrics.fragments_added}
        return VerbResult(facts, None if made is work.data.snapshot else made)
