"""`LanceDataset.optimize`: compaction, index maintenance and automatic clean-up, under the reference's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from lance_ops import changing, transactions, writing
from lance_ops.api.argument_checks import check_public_methods
from lance_ops.api.compaction import compact
from lance_ops.api.scanning import arguments_of
from lance_ops.core.versions import FileVersion
from lance_ops.maintenance import cleanup, compaction, indexing
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot

__all__ = ["DatasetOptimizer"]


@check_public_methods
class DatasetOptimizer:
    """The maintenance verbs of one dataset; each moves the dataset's handle to the version it committed."""

    def __init__(self, snapshot: Snapshot, moved: Callable[[Snapshot], None]) -> None:
        self._snapshot = snapshot
        self._moved = moved

    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        compaction_mode: str | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: Sequence[int] | None = None,
        data_storage_version: str | None = None,
        max_commits: int | None = None,
        max_seconds: float | None = None,
        worst_first: bool | None = None,
        cluster_by: Sequence[str] | None = None,
        cluster_order: Literal["linear", "z_order"] | None = None,
        runner: Runner | None = None,
    ) -> compaction.CompactionMetrics:
        """Merge small fragments, drop deleted rows and remap the indices; see `CompactionOptions` for the options.

        `runner` executes the tasks; the default is `num_threads` threads. Raises
        `TooManyConcurrentWriters` if concurrent commits won against every attempt.
        """
        options = arguments_of(locals(), apart_from=("runner",))
        snapshot, metrics = compact(self._snapshot, options, runner)
        self._move(snapshot)
        return metrics

    def migrate_files(self, data_storage_version: str, *, runner: Runner | None = None) -> compaction.CompactionMetrics:
        """Rewrite all files of other versions in this one, by tasks of the runner, and commit once.

        New files of the table have this version, too. Raises `UnsupportedFeature` for version 0.1, and
        `TooManyConcurrentWriters` if concurrent commits won against every attempt.
        """
        version = FileVersion.parse(data_storage_version)
        snapshot, metrics = compaction.migrate_files(self._snapshot, version, runner)
        self._move(snapshot)
        return metrics

    def optimize_indices(self, *, index_names: Sequence[str] | None = None, runner: Runner | None = None) -> None:
        """Extend every index (or the named ones) to the rows it does not cover yet.

        Tasks of `runner` do the work if it is large; without a runner, this process does it.
        """
        self._move(indexing.optimize_indices(self._snapshot, index_names, runner=runner))

    def enable_auto_cleanup(self, auto_cleanup_config: cleanup.AutoCleanupConfig) -> None:
        """Configure the table so that verbs that commit remove old versions, at this interval and from this age."""
        self._configure(cleanup.auto_cleanup_config(**auto_cleanup_config))

    def disable_auto_cleanup(self) -> None:
        """Remove the configuration of automatic clean-up."""
        self._configure(dict.fromkeys(cleanup.auto_cleanup_config()))

    def _configure(self, values: Mapping[str, str | None]) -> None:
        update = transactions.UpdateConfig(config_updates=changing.bind_metadata(values, replace=False))
        # what is set depends on no version, and the clean-up may have removed the handle's
        self._move(
            writing.retry_conflicts(
                self._snapshot, lambda current: changing.update_config(current, update), writing.CONFLICT_RETRIES
            )
        )

    def _move(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._moved(snapshot)
