"""Merge small fragments and drop deleted rows, or sort all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from lance_ops.core.records import dataclass
from lance_ops.maintenance.compaction import (
    CompactionMetrics,
    CompactionOptions,
    compact_files,
    plan_clustering,
    plan_compaction,
)
from lance_ops.snapshot import Snapshot
from lance_ops.table import Fragment
from lance_ops.verbs.contract import Execution, Measures, Preview, Verb, VerbResult, WhenMoved
from lance_ops.verbs.options import Option
from lance_ops.verbs.sections import shortened_section

__all__ = ["Compact"]

_FRAGMENTS = "fragments"
"""The kind in the extent of a plan that holds the ids of the fragments to rewrite."""


@dataclass(frozen=True)
class Compact(Verb):
    """A compaction; its options are those of `CompactionOptions` but for what a stored plan cannot say."""

    name: ClassVar[str] = "compact"
    summary: ClassVar[str] = "Merge small fragments and drop deleted rows, or sort all rows."
    command: ClassVar[str] = "compact"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED

    target_rows_per_fragment: Annotated[
        int, Option("A fragment with fewer rows is merged with its neighbours.", at_least=1)
    ] = CompactionOptions.target_rows_per_fragment
    max_bytes_per_file: Annotated[
        int | None, Option("Begin another file when one has this many bytes.", at_least=1)
    ] = None
    materialize_deletions: Annotated[bool, Option("Rewrite fragments with many deleted rows.")] = True
    materialize_deletions_threshold: Annotated[
        float, Option("Many deleted rows are more than this fraction of the fragment's rows.", at_least=0, at_most=1)
    ] = CompactionOptions.materialize_deletions_threshold
    max_source_fragments: Annotated[int | None, Option("Rewrite at most this many fragments.", at_least=1)] = None
    max_source_rows: Annotated[int | None, Option("Rewrite at most this many rows.", at_least=1)] = None
    max_source_bytes: Annotated[int | None, Option("Rewrite at most this many bytes.", at_least=1)] = None
    excluded_fragment_ids: Annotated[tuple[int, ...], Option("Leave these fragments alone.")] = ()
    data_storage_version: Annotated[
        str | None, Option("The file version of rewritten fragments; by default the table's.")
    ] = None
    max_commits: Annotated[
        int, Option("Commit in up to this many steps; a conflict loses only its step.", at_least=1)
    ] = 1
    max_seconds: Annotated[float | None, Option("Begin no task after this many seconds.", at_least=0)] = None
    worst_first: Annotated[bool, Option("Begin where most fragments and deleted rows go away.")] = False
    cluster_by: Annotated[tuple[str, ...], Option("Sort the rows of all fragments by these columns instead.")] = ()
    cluster_order: Annotated[
        Literal["linear", "z_order"], Option("Sort by one column after the other, or along a Z curve through them.")
    ] = "linear"

    def preview(self, work: Execution) -> Preview:
        """Show the groups that would be rewritten, or sorted."""
        data = work.data
        snapshot, options, before = data.snapshot, self._options(), Measures.of(data)
        groups = self._groups(snapshot, options)
        lines, dropped, fewer, read = [], 0, 0, 0
        for group in groups:
            live = sum(snapshot.num_live_rows(fragment) for fragment in group)
            deleted = sum(fragment.physical_rows for fragment in group) - live
            lines.append((str(len(group)), f"{group[0].id} … {group[-1].id}", f"{live:,}", f"{deleted:,}"))
            dropped += deleted
            fewer += len(group) - -(-live // options.target_rows_per_fragment)
            read += sum(file.file_size_bytes for fragment in group for file in fragment.files)
        stored = max(before.rows + before.deleted_rows, 1)
        saved = before.size_bytes * dropped // stored
        after = Measures(
            before.rows, before.deleted_rows - dropped, before.fragments - fewer, before.size_bytes - saved
        )
        order = f", sorted by {', '.join(options.cluster_by)}" if options.cluster_by else ""
        header = ("fragments", "ids", "rows", "deleted rows to drop")
        rewritten = tuple(str(fragment.id) for group in groups for fragment in group)
        return Preview(
            f"rewrite {sum(map(len, groups)):,} fragments{order}" if lines else "nothing to rewrite",
            before,
            after,
            reads_bytes=read,
            writes_bytes=max(read - saved, 0),
            sections=(shortened_section("Groups to rewrite", header, lines),) if lines else (),
            does_nothing=not lines,
            extent={_FRAGMENTS: rewritten},
        )

    def _groups(self, snapshot: Snapshot, options: CompactionOptions) -> list[Sequence[Fragment]]:
        """Return the fragments of each group, within the bounds."""
        if options.cluster_by:
            return [group.fragments for group in plan_clustering(snapshot, options).groups]
        tasks = plan_compaction(snapshot, options).tasks
        return [[snapshot.fragments_by_id[fragment_id] for fragment_id in task.fragment_ids] for task in tasks]

    def already_done(self, work: Execution) -> VerbResult | None:
        """Return that nothing is left to do if the newest version has none of the planned fragments."""
        planned, present = (work.promised or {}).get(_FRAGMENTS), work.data.snapshot.fragments_by_id
        if not isinstance(planned, tuple) or not planned or any(int(each) in present for each in planned):
            return None
        return _result(None, CompactionMetrics())

    def execute(self, work: Execution) -> VerbResult:
        """Rewrite and commit; after a conflict the groups are planned again, at most `work.retries` times."""
        made, metrics = compact_files(work.data.snapshot, self._options(), work.runner, conflict_retries=work.retries)
        return _result(made if metrics.fragments_removed else None, metrics)

    def _options(self) -> CompactionOptions:
        return CompactionOptions(**vars(self))


def _result(made: Snapshot | None, metrics: CompactionMetrics) -> VerbResult:
    facts = {"fragments_removed": metrics.fragments_removed, "fragments_added": metrics.fragments_added}
    return VerbResult(facts, made, outcome=metrics)
