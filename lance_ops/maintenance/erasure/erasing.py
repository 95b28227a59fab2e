"""Erase a subject's rows, in rounds, until a search of every retained version finds nothing.

    plan_erasure(main, subject) -> Holdings        what holds the rows; reads, and writes nothing
    erase(main, subject, options) -> ErasureReport

A round deletes the rows in the newest version of each branch, rewrites the fragments whose files store them, and
builds their indices anew. When no newest version can be mended any more, the round removes the older versions that hold
the rows, and then the files of these versions. Another writer may append such rows meanwhile, or rewrite fragments
with them: the next round finds them. Running work may begin meanwhile and pin versions that hold the rows: they stay,
and the report says so. A crash leaves a record that blocks restores; the same erasure, begun again, goes on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial

from lance_ops.core.errors import (
    HeldByRunningWork,
    InvalidInput,
    ObjectNotFound,
    ReferenceNotFound,
    RetryableConflict,
    StoreError,
    UnsafePath,
    UnsupportedFeature,
    VersionNotFound,
)
from lance_ops.core.file_names import INDICES_DIR, VERSIONS_DIR
from lance_ops.core.records import dataclass
from lance_ops.indices import index_type_of
from lance_ops.maintenance.cleanup import CleanupOptions, CleanupTasks, NamedFiles, cleanup_old_versions
from lance_ops.maintenance.compaction import RewriteTask, commit_rewrites, discard_rewrite, execute_rewrite
from lance_ops.maintenance.erasure.begun_record import begin_record, interrupted_erasure, remove_pins
from lance_ops.maintenance.erasure.proof import Proof, named_by_versions, prove
from lance_ops.maintenance.erasure.report import ErasedBranch, ErasureReport
from lance_ops.maintenance.erasure.searching import BranchHoldings, Cause, Holdings, Search, Why
from lance_ops.maintenance.erasure.subject import Subject
from lance_ops.maintenance.indexing import rebuild_index
from lance_ops.refs import (
    delete_tag,
    naming_pins_by_work,
    open_branch,
    pinned_if_at_risk,
    reference_store,
    writable_reference_store,
)
from lance_ops.runners import InThreads, Job, Runner
from lance_ops.snapshot import Snapshot, SnapshotReference
from lance_ops.store import path_beneath
from lance_ops.table import IndexMetadata
from lance_ops.transactions import REASON_PROPERTY, Delete, UpdateConfig, remove_files_of_job
from lance_ops.writing import MAX_BYTES_PER_FILE, commit_operation, write_deletion_files

__all__ = ["ErasureOptions", "check_permitted", "erase", "plan_erasure"]

_MOST_ROUNDS = 20
_ERASURE_PROPERTY = "lance_ops.erasure"


@dataclass(frozen=True)
class ErasureOptions:
    """Why the rows go, and what may go with them.

    Tags on versions that hold the rows are removed only with `remove_tags`. Other branches are rewritten, and the
    versions that they began with removed, only with `rewrite_branches`. `delete_unverified` also removes young files
    that no version names: only while nothing else writes. Nothing is erased if more than `at_most_rows` would go.
    """

    reason: str
    remove_tags: bool = False
    rewrite_branches: bool = False
    delete_unverified: bool = False
    at_most_rows: int | None = None

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise InvalidInput("reason is empty: say why the rows go; do not name the subject, for the reason stays")


def plan_erasure(snapshot: Snapshot, subject: Subject, runner: Runner | None = None) -> Holdings:
    """Find the versions, files and indices that hold the rows, on every branch. This changes nothing.

    With a runner that has workers, many keys are in an encrypted file meanwhile; see `shared_table`. If it cannot be
    written, because credentials only read, threads of this process search instead of the runner. Raises `InvalidFilter`
    for a filter or keys that the newest version of the main branch does not understand.
    """
    main, used = open_branch(snapshot, None), runner or InThreads()
    with ExitStack() as sharing:
        try:
            known = sharing.enter_context(subject.shared(main, used))
        except StoreError:
            used = InThreads()
            known = sharing.enter_context(subject.shared(main, used))
        known.bind(main)
        return Search(known, used, interrupted_erasure(reference_store(main), known)).run(main)


def erase(
    snapshot: Snapshot,
    subject: Subject,
    options: ErasureOptions,
    runner: Runner | None = None,
    approve: Callable[[Holdings], None] | None = None,
) -> ErasureReport:
    """Erase the rows everywhere beneath the root, prove it, and keep the report there.

    Raises `InvalidInput` before anything is changed if a tag, a branch or a detached version holds the rows and may not
    be touched, and `HeldByRunningWork` if running work needs them; it names them. Raises `UnsupportedFeature` for an
    index that cannot be built anew and for a version that stays and that this release may not write, and `UnsafePath`
    for files outside the root that are no other dataset's. A clone lets go of its source's files, and the report names
    the source. What comes up later is no error: a report that is not proven says what is left.

    `approve` is called with what holds the rows before anything is changed, and raises to refuse. When an interrupted
    erasure goes on, versions that it committed itself may be among them, and the pins that it left count no more.
    """
    used = runner or InThreads()
    main = open_branch(snapshot, None)
    with subject.shared(main, used) as known:
        known.bind(main)
        interrupted = interrupted_erasure(reference_store(main), known)
        number = interrupted or uuid.uuid4().hex
        search = Search(known, used, number)
        found = search.run(main)
        check_permitted(found, options)
        store = writable_reference_store(main)
        if approve is not None:
            approve(found)
        report = begin_record(store, number, known, options.reason, found)
        if interrupted is not None:
            remove_pins(number, found)
        with naming_pins_by_work(number):
            return _Erasing(known, options, used, search, report).run(found)


def check_permitted(found: Holdings, options: ErasureOptions) -> frozenset[str]:
    """Raise `InvalidInput` that names what holds the rows and may not be touched, or if the reason states a value.

    Returns the roots of the other datasets, such as a clone's source, whose files store the rows: they are left alone.
    Raises `HeldByRunningWork`, `UnsafePath` and `UnsupportedFeature` as `erase` does.
    """
    if options.at_most_rows is not None and found.num_live_rows > options.at_most_rows:
        raise InvalidInput(
            f"{found.num_live_rows:,} rows match and at_most_rows is {options.at_most_rows:,}: nothing was erased"
        )
    others = _check_round(found, options)
    names = ", ".join(
        f"version {version} of {branch.name} ({path})"
        for branch in found.branches[::-1]
        for version, path in branch.pins.items()
    )
    if names:
        raise HeldByRunningWork(
            f"{found.main.head.uri}: running work holds the rows: {names}; try again when it is done, or delete these "
            "files if its process has died"
        )
    return others


def _check_round(found: Holdings, options: ErasureOptions) -> frozenset[str]:
    """Check what a round may touch, as `check_permitted` does. Running work may begin at any time, and is no error."""
    main, stated = found.main.head, options.reason.encode()
    if any(value in stated for value in found.values):
        raise InvalidInput("the reason states a value of the rows, and stays: say why they go without it")
    if found.tags and not options.remove_tags:
        names = ", ".join(f"{name} (version {version} of {branch})" for name, (branch, version) in found.tags.items())
        raise InvalidInput(f"{main.uri}: tags hold the rows: {names}; permit remove_tags, or delete the tags")
    branches = [branch.name for branch in found.branches[:-1] if branch.holding]
    if branches and not options.rewrite_branches:
        raise InvalidInput(
            f"{main.uri}: branches hold the rows: {', '.join(branches)}; permit rewrite_branches, or delete them"
        )
    if found.detached:
        names = ", ".join(map(str, found.detached))
        raise InvalidInput(f"{main.uri}: detached versions hold the rows: {names}; remove their manifests first")
    for branch in found.branches:
        for index in branch.head.manifest.indices:
            if index.name in branch.stale_indices:
                _check_can_be_built(branch.head, index)
    _check_named_files_are_known(found)
    return _other_datasets_with_rows(found)


def _check_named_files_are_known(found: Holdings) -> None:
    """Raise `UnsupportedFeature` for a version that stays and may name files in ways that this release does not know.

    The files of removed versions cannot be deleted beside it. Clean-up of one branch counts each version of another as
    one that stays, even if it is to be removed later.
    """
    for branch in found.branches:
        going = branch.removable_now if len(found.branches) == 1 else ()
        staying = branch.unwritable.keys() - going
        if staying:
            error = branch.unwritable[min(staying)]
            raise UnsupportedFeature(
                f"{error.feature} (remove that version or its branch, or use a release that may write it, and erase "
                "again)",
                error.where,
            ) from error


def _other_datasets_with_rows(found: Holdings) -> frozenset[str]:
    """Return the roots of the other datasets whose files store the rows.

    Raises `UnsafePath` for a file outside the root that is not another dataset's: only this dataset would remove it.
    """
    root = found.main.head.uri
    outside = {uri for uri in found.files if path_beneath(root, uri) is None}
    if not outside:
        return frozenset()
    bases = {
        store.uri: store
        for branch in found.branches
        for version in (branch.head, *map(branch.head.at, branch.holding))
        for store in version.file_locations.dataset_roots()
        if path_beneath(root, store.uri) is None
    }
    roots = [uri for uri, store in bases.items() if store.list_names(VERSIONS_DIR, limit=1)]
    owners = {uri: [each for each in roots if path_beneath(each, uri) is not None] for uri in outside}
    orphans = sorted(uri for uri, owning in owners.items() if not owning)
    if orphans:
        raise UnsafePath(
            f"{root} keeps {orphans[0]} outside its root, where nothing is removed: delete the rows, compact, clean "
            "up, remove that file, and erase again"
        )
    return frozenset(each for owning in owners.values() for each in owning)


def _check_can_be_built(head: Snapshot, index: IndexMetadata) -> None:
    try:
        index_type_of(index)
    except UnsupportedFeature as error:
        raise UnsupportedFeature(
            f"building {error.feature} anew (drop it with `lance-ops reindex --drop {index.name}`, erase, and build it "
            "with the library that made it)",
            f"{head.uri}, {error.where}",
        ) from error


class _Erasing:
    """An erasure under way, and its report so far."""

    def __init__(
        self, subject: Subject, options: ErasureOptions, runner: Runner, search: Search, report: ErasureReport
    ) -> None:
        self._subject = subject
        self._options = options
        self._runner = runner
        self._search = search
        self._report = report
        self._of_removed_versions: NamedFiles | None = None
        self._others: frozenset[str] = frozenset()
        self._refused: tuple[str, ...] = ()
        self._branches_with_empty_version: set[str] = set()
        """The branches on which a version that changes nothing was committed, once each."""

    def run(self, found: Holdings) -> ErasureReport:
        """Take rounds until nothing holds the rows, and prove it.

        A data file may hold a value that no version shows, because its column was rewritten or dropped since. The proof
        finds it, and further rounds rewrite what names the file.
        """
        first_live = found.num_live_rows
        found = self._take_rounds(found)
        proof = self._prove(found)
        main = found.main.head
        with_values = frozenset(map(main.store.uri_of, proof.data_files_with_values))
        if found.is_clean and self._search.taint_files_with_dropped_columns(found, with_values):
            found = self._take_rounds(self._search.run(main))
            proof = self._prove(found)
        self._report = self._report.with_values(
            finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
            rows_appended_meanwhile=max(self._report.erased_rows - first_live, 0),
            branches={
                branch.name: ErasedBranch(branch.head.version, tuple(sorted(branch.clean - {branch.head.version})))
                for branch in found.branches
            },
            also_held_by=tuple(sorted(self._others)),
            searched_fragments=self._search.num_fragments,
            searched_values=proof.num_values,
            files=proof.files,
            unproven=(*self._refused, *proof.unproven),
            waits_for_writers=not self._refused and proof.waits_for_writers,
        )
        self._report.save(reference_store(found.main.head))
        return self._report

    def _take_rounds(self, found: Holdings) -> Holdings:
        """Take rounds, sweep, and return what the last search found; remember why rounds were refused."""
        try:
            found = self._rounds(found)
        except (InvalidInput, UnsafePath, UnsupportedFeature) as error:
            self._refused = (f"further rounds were refused: {error}",)
            found = self._search.run(found.main.head)  # rounds before may have changed the newest versions
        try:
            self._sweep(found)
        except UnsupportedFeature as error:  # another writer has committed a version that this release may not write
            self._refused = (*self._refused, f"files of removed versions are left: {error}")
        return found

    def _rounds(self, found: Holdings) -> Holdings:
        """Take rounds while they find something to change, and return what the last search found."""
        main = found.main.head
        for _ in range(_MOST_ROUNDS):
            if found.is_clean:
                break
            self._others |= _check_round(found, self._options)
            with suppress(RetryableConflict, VersionNotFound):  # the next round plans anew
                if heads := [branch for branch in found.branches if self._can_mend(branch)]:
                    for branch in heads:
                        self._mend_head(branch)
                else:
                    self._remove_holders(found)
            before, found = found, self._search.run(main)
            if _what_holds(found) == _what_holds(before):
                break  # the proof names what holds the rows
        return found

    def _prove(self, found: Holdings) -> Proof:
        own = {self._report.json_path, self._report.html_path, self._subject.path or ""}
        main = found.main.head
        return prove(main, found, own, self._search.filter_on(main), self._runner)

    def _can_mend(self, branch: BranchHoldings) -> bool:
        """Return whether a branch's newest version holds the rows, and a commit can change that."""
        if not branch.head_holds:
            return False
        return bool(branch.tainted_fragments or branch.stale_indices) or self._can_commit_empty_version(branch)

    def _can_commit_empty_version(self, branch: BranchHoldings) -> bool:
        """Return whether to commit a version that changes nothing, so that the newest one can be removed.

        Another writer may commit such a transaction again and again, so it is done once on each branch.
        """
        why = branch.holding.get(branch.head.version)
        return (
            why is not None and why.cause is Cause.TRANSACTION and branch.name not in self._branches_with_empty_version
        )

    def _mend_head(self, branch: BranchHoldings) -> None:
        """Delete the rows, rewrite the fragments that store them, and build the indices anew.

        If the head holds the rows only in its transaction, commit a version that changes nothing, so that the old head
        can be removed.
        """
        head, live = branch.head, branch.live_rows
        properties = {REASON_PROPERTY: self._options.reason, _ERASURE_PROPERTY: self._report.id}
        if live:
            deletions = write_deletion_files(head, live, self._runner)
            # The transaction stays readable, so it must not say which rows.
            operation = Delete(deletions.updated_fragments, deletions.removed_fragment_ids, "erased")
            head = commit_operation(head, operation, properties=properties, pending=deletions.pending)
            self._add(erased_rows=sum(map(len, live.values())))
            self._has_committed(branch, head)
        reference = SnapshotReference.of(head)
        tasks = [
            RewriteTask(
                reference,
                (fragment.id,),
                max(fragment.physical_rows, 1),
                MAX_BYTES_PER_FILE,
                head.file_version,
                sum(file.file_size_bytes for file in fragment.files),
            )
            for fragment in head.fragments
            if fragment.id in branch.tainted_fragments
        ]
        if tasks:
            job = Job.on("erase from", head.uri, head.version, tuple(task.size_bytes for task in tasks), unit="bytes")
            job = job.with_removal(partial(remove_files_of_job, head.store))
            with pinned_if_at_risk(head, head):
                rewrites = self._runner.map(execute_rewrite, tasks, job, partial(discard_rewrite, head.store))
                head, _ = commit_rewrites(head, rewrites, runner=self._runner)
            self._add(rewritten_fragments=len(tasks))
        present = {index.name for index in head.manifest.indices}
        for name in sorted(branch.stale_indices & present):
            head = rebuild_index(head, name, runner=self._runner)
            self._search.mark_rebuilt(index for index in head.manifest.indices if index.name == name)
        if head.version == branch.head.version and self._can_commit_empty_version(branch):
            head = commit_operation(head, UpdateConfig(), properties=properties)
            self._branches_with_empty_version.add(branch.name)
        names = {*self._report.rebuilt_indices, *(branch.stale_indices & present)}
        self._report = self._report.with_values(rebuilt_indices=tuple(sorted(names)))
        if head.version != branch.head.version:
            self._has_committed(branch, head)

    def _has_committed(self, branch: BranchHoldings, made: Snapshot) -> None:
        committed = {**self._report.committed_versions, branch.name: made.version}
        self._report = self._report.with_values(committed_versions=committed)

    def _remove_holders(self, found: Holdings) -> None:
        """Remove the older versions that hold the rows, and their tags. What they name is removed in the end.

        Versions that running work keeps stay.
        """
        self._remember_files(found)
        store = writable_reference_store(found.main.head)
        going = {(branch.name, version) for branch in found.branches for version in branch.removable_now}
        for name, place in found.tags.items():
            if place in going:
                with suppress(ReferenceNotFound):  # somebody else deleted it
                    delete_tag(store, name)
                self._add_names(removed_tags=[name])
        for branch in found.branches:
            if versions := branch.removable_now:
                options = CleanupOptions(
                    versions=versions,
                    error_if_tagged_old_versions=False,
                    delete_unverified=self._options.delete_unverified,
                    keep_branch_starts=not self._options.rewrite_branches,
                )
                cleanup_old_versions(branch.head, options, CleanupTasks(self._runner))
                self._add_names(removed_versions=[f"{branch.name}/{number}" for number in sorted(versions)])

    def _remember_files(self, found: Holdings) -> None:
        """Remember the files of the versions that go: another branch's folder is not looked at by their clean-up."""
        files = self._of_removed_versions = self._of_removed_versions or NamedFiles(found.main.head.uri)
        for branch in found.branches:
            for version in branch.removable_now:
                files.add(branch.head.at(version).manifest, branch.head.uri, is_kept=False)

    def _sweep(self, found: Holdings) -> None:
        """Delete the files that only removed versions named; with `delete_unverified`, every file without a version."""
        if self._options.delete_unverified:
            for branch in found.branches:
                cleanup_old_versions(branch.head, CleanupOptions(versions=(), delete_unverified=True))
        if self._of_removed_versions is None:
            return
        store = found.main.head.store
        named = named_by_versions(found, deletes_others=True)
        left = [*(self._of_removed_versions.paths - named.paths)]
        for folder in self._of_removed_versions.index_folders - named.index_folders:
            if INDICES_DIR in folder.split("/"):
                left += [info.path for info in store.list(folder)]
        for path in left:
            sidecars = (
                [info.path for info in store.list(path.removesuffix(".lance"))] if path.endswith(".lance") else []
            )
            for each in (path, *sidecars):
                with suppress(ObjectNotFound):
                    store.delete(each)

    def _add(self, **counts: int) -> None:
        changed = {name: getattr(self._report, name) + count for name, count in counts.items()}
        self._report = self._report.with_values(**changed)

    def _add_names(self, **names: Iterable[str]) -> None:
        changed = {name: tuple(dict.fromkeys([*getattr(self._report, name), *more])) for name, more in names.items()}
        self._report = self._report.with_values(**changed)


def _what_holds(found: Holdings) -> list[tuple[str, int, Mapping[int, Why]]]:
    return [(branch.name, branch.head.version, branch.holding) for branch in found.branches]
