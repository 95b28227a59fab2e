"""`LanceDataset`: a user's handle on a dataset, with the reference's method names, argument order and defaults.

Each method translates its arguments and calls a room below; this module decides nothing. A handle stands on one
version. A method that commits moves the handle to the version it made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike, fspath
from typing import Any, TypedDict

import pyarrow as pa
from pyroaring import BitMap

from lance_ops import changing, refs, transactions
from lance_ops import snapshot as snapshots
from lance_ops.api import transactions as public
from lance_ops.api.argument_checks import check_arguments
from lance_ops.api.arrow_dataset import ArrowDataset
from lance_ops.api.base_paths import BaseStoreParams, with_params
from lance_ops.api.fragments import LanceFragment
from lance_ops.api.lance_dataset.clones_and_branches import Copies
from lance_ops.api.lance_dataset.commits import Commits
from lance_ops.api.lance_dataset.delta import DatasetDelta
from lance_ops.api.lance_dataset.indexing import Indexing
from lance_ops.api.lance_dataset.integrity import Integrity
from lance_ops.api.lance_dataset.optimize import DatasetOptimizer
from lance_ops.api.lance_dataset.row_changes import RowChanges
from lance_ops.api.lance_dataset.schema_changes import SchemaChanges
from lance_ops.api.lance_dataset.storage_options import StorageOptions
from lance_ops.api.lance_dataset.tags import Reference, Tags, open_reference
from lance_ops.api.scanning import Filter
from lance_ops.api.schemas import LanceSchema, shown_schema
from lance_ops.api.write_destination import lock_of
from lance_ops.committers import LockedCommitter, PutIfAbsentCommitter, migrate_to_v2
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.maintenance import cleanup
from lance_ops.runners import Runner
from lance_ops.snapshot import (
    ChecksumUse,
    Session,
    Snapshot,
)
from lance_ops.table import VersionSummary

__all__ = ["LanceDataset", "Version", "VersionRef", "dataset"]


class Version(TypedDict):
    """A version as `versions` returns it; `metadata` has the reference's totals."""

    version: int
    timestamp: datetime | None
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """A version as `version_refs` returns it."""

    version: int


class LanceDataset(Copies, SchemaChanges, RowChanges, Indexing, Integrity, Commits, StorageOptions, ArrowDataset):
    """A dataset at one version.

    The arguments are those of `lance_ops.dataset`. `metadata_cache_size` and `serialized_manifest` tune the reference
    and are accepted without effect.
    """

    def __init__(
        self,
        uri: str | PathLike[str],
        version: Reference | None = None,
        block_size: int | None = None,
        index_cache_size: int | None = None,
        metadata_cache_size: int | None = None,
        commit_lock: object | None = None,
        storage_options: Mapping[str, str] | None = None,
        serialized_manifest: bytes | None = None,
        default_scan_options: Mapping[str, Any] | None = None,
        metadata_cache_size_bytes: int | None = None,
        index_cache_size_bytes: int | None = None,
        read_params: Mapping[str, Any] | None = None,
        session: Session | None = None,
        *,
        base_store_params: BaseStoreParams | None = None,
        verify_checksums: str | None = None,
    ) -> None:
        lock = lock_of(None, commit_lock)
        use = None if verify_checksums is None else ChecksumUse.parse(verify_checksums, "verify_checksums")
        number = version if isinstance(version, int) else None
        caches = session or Session(index_cache_size_bytes, metadata_cache_size_bytes)
        snapshot = Snapshot.open(fspath(uri), number, storage_options, use, caches)
        if isinstance(version, str | tuple):
            snapshot = open_reference(snapshot, version)
        super().__init__(with_params(snapshot, base_store_params).with_commit_lock(lock), default_scan_options)

    # -- properties ---------------------------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """The table's Arrow schema, or the schema of a scan with the default scan options, if there are any."""
        if self._default_scan_options is not None:
            return self.scanner().projected_schema
        return shown_schema(self._snapshot.schema)

    @property
    def lance_schema(self) -> LanceSchema:
        """The table's schema with the ids of its fields."""
        return LanceSchema(self._snapshot.schema)

    @property
    def version(self) -> int:
        """The number of this handle's version."""
        return self._snapshot.version

    @property
    def latest_version(self) -> int:
        """The number of the newest version."""
        return self._snapshot.latest().version

    @property
    def data_storage_version(self) -> str:
        """The file version that new data files get."""
        return self._snapshot.manifest.data_format.version

    def session(self) -> Session:
        """Return the session whose caches this handle uses."""
        return self._snapshot.session

    @property
    def max_field_id(self) -> int:
        """The highest field id in use; it may belong to a dropped column that some file still holds."""
        return self._snapshot.manifest.max_field_id

    def config(self) -> dict[str, str]:
        """Return the table's configuration."""
        return dict(self._snapshot.manifest.config)

    @property
    def tags(self) -> Tags:
        """Names of versions."""
        return Tags(self._snapshot)

    @property
    def optimize(self) -> DatasetOptimizer:
        """Compaction and index maintenance."""
        return DatasetOptimizer(self._snapshot, self._committed)

    def get_fragments(self, filter: Filter = None) -> list[LanceFragment]:
        """Return the fragments in scan order. `filter` is only a hint in the reference, and has no effect here."""
        return [LanceFragment.of(self._snapshot, fragment) for fragment in self._snapshot.fragments]

    def fragment_ids(self) -> BitMap:
        """Return the ids of the fragments."""
        return BitMap(self._snapshot.fragments_by_id)

    def get_fragment(self, fragment_id: int) -> LanceFragment | None:
        """Return the fragment of that id."""
        fragment = self._snapshot.fragments_by_id.get(fragment_id)
        return LanceFragment.of(self._snapshot, fragment) if fragment else None

    # -- versions -----------------------------------------------------------------------------------------------

    def restore(self) -> None:
        """Make this handle's version the newest one, as a new version."""
        self._committed(changing.restore(self._snapshot))

    def versions(self) -> list[Version]:
        """Return every retained version, oldest first."""
        return [*map(_version, snapshots.version_summaries(self._snapshot.latest()))][::-1]

    def get_version(self) -> Version:
        """Return this handle's version in the form of `versions`."""
        return _version(self._snapshot.manifest.summary)

    def version_refs(self) -> list[VersionRef]:
        """Return the numbers of the retained versions, oldest first, without reading them."""
        return [VersionRef(version=version) for version in self._snapshot.committer.versions()]

    def checkout_version(self, version: Reference) -> LanceDataset:
        """Return a handle on another version: by number, by tag, or on a branch by (branch, version)."""
        return LanceDataset.of(open_reference(self._snapshot, version), self._default_scan_options)

    def checkout_latest(self) -> None:
        """Move this handle to the newest version."""
        self._move(self._snapshot.latest())

    def read_transaction(self, version: int) -> public.Transaction | None:
        """Return the transaction that made a version, or None if it was not kept."""
        return public.as_read(
            transactions.read_version(self._snapshot.store, self._snapshot.committer, version).transaction
        )

    def get_transactions(self, recent_transactions: int = 10) -> list[public.Transaction | None]:
        """Return the newest transactions, newest first."""
        past = zip(snapshots.history(self._snapshot), range(recent_transactions), strict=False)
        return [public.as_read(version.transaction) for version, _ in past]

    def delta(
        self,
        compared_against: int | None = None,
        *,
        begin_version: int | None = None,
        end_version: int | None = None,
    ) -> DatasetDelta:
        """Compare two versions: `compared_against` with this handle's, or `begin_version` with `end_version`.

        Version 0 means the empty table before version 1. Raises `InvalidInput` unless exactly one of the two forms is
        used, and `VersionNotFound` if the later version is not retained.
        """
        if (compared_against is None) == (begin_version is None or end_version is None):
            raise InvalidInput("pass compared_against, or begin_version and end_version")
        if compared_against is not None and (begin_version, end_version) != (None, None):
            raise InvalidInput("pass compared_against without begin_version and end_version")
        end = self._snapshot if end_version is None else self._snapshot.at(end_version)
        begin = compared_against if begin_version is None else begin_version
        assert begin is not None
        return DatasetDelta(end, begin)

    # -- maintenance --------------------------------------------------------------------------------------------

    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        delete_concurrency: int | None = None,
        runner: Runner | None = None,
    ) -> cleanup.CleanupStats:
        """Remove old versions and files that nothing needs; see `lance_ops.maintenance.cleanup.cleanup_plan`.

        Tasks of the runner read manifests and delete files where these are many, and list the folders of a table with
        many fragments.
        """
        options = cleanup.CleanupOptions(
            older_than,
            retain_versions,
            delete_unverified,
            error_if_tagged_old_versions,
            delete_rate_limit,
            None if versions is None else tuple(versions),
            delete_concurrency,
        )
        return cleanup.cleanup_old_versions(self._snapshot, options, cleanup.CleanupTasks.of(runner))

    def explain_cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Sequence[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
        runner: Runner | None = None,
    ) -> cleanup.CleanupExplanation:
        """Return what `cleanup_old_versions` would remove; remove nothing."""
        options = cleanup.CleanupOptions(
            older_than,
            retain_versions,
            delete_unverified,
            error_if_tagged_old_versions,
            delete_rate_limit,
            None if versions is None else tuple(versions),
        )
        tasks = cleanup.CleanupTasks.of(runner)
        return cleanup.explain_cleanup_old_versions(self._snapshot, options, include_files, max_files, tasks)

    def all_files(self) -> pa.RecordBatchReader:
        """Stream every file beneath the root: `base_uri`, `path`, `size_bytes`, `last_modified`."""
        return snapshots.all_files(self._snapshot)

    def tracked_files(
        self, *, min_version: int | None = None, progress: snapshots.Progress | None = None
    ) -> pa.RecordBatchReader:
        """Stream the files that each retained version names: `version`, `base_uri`, `path`, `type`.

        `progress` is called after each version with the number of versions read and their total.
        """
        return snapshots.tracked_files(self._snapshot, min_version, progress)

    def validate(self) -> None:
        """Check the version's invariants, and that its files exist with the stated size.

        Raises `CorruptFile` naming the first thing that is wrong.
        """
        snapshots.validate(self._snapshot)

    def migrate_manifest_paths_v2(self) -> None:
        """Rename manifests of the V1 naming scheme to V2 names. No other work on the dataset may run meanwhile."""
        committer = self._snapshot.committer
        committer = committer.unlocked if isinstance(committer, LockedCommitter) else committer
        if not isinstance(committer, PutIfAbsentCommitter):  # the manifest store records the old names
            raise UnsupportedFeature("renaming manifests that a manifest store knows", self.uri)
        migrate_to_v2(self._snapshot.store)
        self._move(self._snapshot.latest())

    @staticmethod
    def drop(
        base_uri: str | PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Remove a dataset with its branches and everything else beneath its root.

        These errors are raised before anything is removed: `InvalidInput` if the URI is not a dataset's root,
        `UnsafePath` if a symbolic link beneath it leads out, and `DatasetNotFound` if nothing is there, unless
        `ignore_not_found` is set.
        """
        refs.drop_dataset(fspath(base_uri), storage_options, ignore_not_found=bool(ignore_not_found))

    # -- the handle ---------------------------------------------------------------------------------------------

    def __reduce__(self) -> tuple[object, tuple[Snapshot, Mapping[str, Any] | None]]:
        return LanceDataset.of, (self._snapshot, self._default_scan_options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LanceDataset):
            return NotImplemented
        return (self.uri, self.version) == (other.uri, other.version)

    def __hash__(self) -> int:
        return hash((self.uri, self.version))

    def __len__(self) -> int:
        return self.count_rows()

    def __repr__(self) -> str:
        return f"LanceDataset({self.uri!r}, version={self.version})"


@check_arguments
def dataset(
    uri: str | PathLike[str] | None = None,
    version: Reference | None = None,
    asof: datetime | str | None = None,
    block_size: int | None = None,
    commit_lock: object | None = None,
    index_cache_size: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    default_scan_options: Mapping[str, Any] | None = None,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    read_params: Mapping[str, Any] | None = None,
    session: Session | None = None,
    *,
    base_store_params: BaseStoreParams | None = None,
    verify_checksums: str | None = None,
) -> LanceDataset:
    """Open a dataset: its newest version, or one by number, by tag, on a branch, or by a moment (`asof`).

    `default_scan_options` apply to every scan that does not set them. `base_store_params` are storage options for
    single base paths, by URI.

    Handles with the same `session` share its caches; see `Session`. Without one, the handle has a session of its own,
    bounded by `metadata_cache_size_bytes` and `index_cache_size_bytes`. A given session keeps its own bounds.

    `commit_lock` is for a store without a conditional create: a function of the version that returns a context manager,
    which every commit of the handle holds. It raises `lance_ops.commit.CommitConflictError` if another writer holds it.
    Pickles of the handle do not have it. `block_size`, `index_cache_size` and `read_params` tune the reference and are
    accepted without effect; this library always checks bytes while it decodes them.

    `verify_checksums` says which reads compare pages with their checksums: "always" all of them, "maintenance" only
    those of changes and maintenance. By default the table's config key `lance_ops.verify_checksums` says it; without
    the key, it is "maintenance".

    Raises `DatasetNotFound`, `VersionNotFound`, `ReferenceNotFound`, and `UnsupportedFeature` for a table that needs a
    newer reader.
    """
    if uri is None:
        raise InvalidInput("dataset needs a URI")
    if version is not None and asof is not None:
        raise InvalidInput("pass version or asof, not both")
    opened = LanceDataset(
        uri,
        version,
        commit_lock=commit_lock,
        storage_options=storage_options,
        default_scan_options=default_scan_options,
        metadata_cache_size_bytes=metadata_cache_size_bytes,
        index_cache_size_bytes=index_cache_size_bytes,
        session=session,
        base_store_params=base_store_params,
        verify_checksums=verify_checksums,
    )
    if asof is None:
        return opened
    when = _moment(asof) if isinstance(asof, str) else asof
    return LanceDataset.of(snapshots.snapshot_as_of(opened.snapshot, when), default_scan_options)


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"asof {text!r} is no moment: write it as '2026-01-31T12:00:00+00:00'") from None


def _version(summary: VersionSummary) -> Version:
    totals = summary.totals
    metadata = {
        "total_data_file_rows": str(totals.physical_rows),
        "total_data_files": str(totals.data_files),
        "total_deletion_file_rows": str(totals.deleted_rows),
        "total_deletion_files": str(totals.deletion_files),
        "total_files_size": str(totals.data_file_bytes),
        "total_fragments": str(summary.num_fragments),
        "total_rows": str(totals.physical_rows - totals.deleted_rows),
    }
    return Version(version=summary.version, timestamp=summary.timestamp, metadata=metadata)
