"""Erase a subject's rows, in rounds, until a search of every retained version finds nothing.

    plan_erasure(main, subject) -> Holdings        what holds the rows; reads, and writes nothing
    erase(main, subject, options) -> ErasureReport

    permission     what the caller permits; checked before anything is changed, and before each round
    begun_record   the record of an erasure that has begun
    searching      what holds the rows; asked before each round, and after the last one
    head_rewriter  commits newest versions that do not hold the rows
    removal        removes older versions, their tags and files; this cannot be undone
    proof          reads all files that remain
    report         what was done, and the proof

A round deletes the rows in the newest version of each branch, rewrites the fragments whose files store them, and
builds their indices anew. When no newest version can be rewritten any more, the round removes the older versions that
hold the rows, and then the files of these versions. Another writer may append such rows meanwhile, or rewrite fragments
with them: the next round finds them. Running work may begin meanwhile and pin versions that hold the rows: they stay,
and the report says so. A crash leaves a record that blocks restores; the same erasure, begun again, goes on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime

from lance_ops.core.errors import (
    InvalidInput,
    RetryableConflict,
    StoreError,
    UnsafePath,
    UnsupportedFeature,
    VersionNotFound,
)
from lance_ops.maintenance.erasure.begun_record import begin_record, interrupted_erasure, remove_pins
from lance_ops.maintenance.erasure.head_rewriter import HeadRewriter
from lance_ops.maintenance.erasure.permission import ErasureOptions, check_permitted, check_permitted_in_round
from lance_ops.maintenance.erasure.proof import Proof, prove
from lance_ops.maintenance.erasure.removal import Removal
from lance_ops.maintenance.erasure.report import ErasedBranch, ErasureReport, ReportDraft
from lance_ops.maintenance.erasure.searching import Holdings, Search, Why
from lance_ops.maintenance.erasure.subject import Subject
from lance_ops.refs import naming_pins_by_work, open_branch, reference_store, writable_reference_store
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot

__all__ = ["erase", "plan_erasure"]

_MOST_ROUNDS = 20


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


class _Erasing:
    """An erasure under way."""

    def __init__(
        self, subject: Subject, options: ErasureOptions, runner: Runner, search: Search, report: ErasureReport
    ) -> None:
        self._subject = subject
        self._options = options
        self._runner = runner
        self._search = search
        self._draft = ReportDraft(report)
        self._rewriter = HeadRewriter(options, runner, search, self._draft)
        self._removal = Removal(options, runner, self._draft)
        self._others: frozenset[str] = frozenset()
        self._refused: tuple[str, ...] = ()

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
        done = self._draft.report
        report = done.with_values(
            finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
            rows_appended_meanwhile=max(done.erased_rows - first_live, 0),
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
        report.save(reference_store(found.main.head))
        return report

    def _take_rounds(self, found: Holdings) -> Holdings:
        """Take rounds, sweep, and return what the last search found; remember why rounds were refused."""
        try:
            found = self._rounds(found)
        except (InvalidInput, UnsafePath, UnsupportedFeature) as error:
            self._refused = (f"further rounds were refused: {error}",)
            found = self._search.run(found.main.head)  # rounds before may have changed the newest versions
        try:
            self._removal.sweep(found)
        except UnsupportedFeature as error:  # another writer has committed a version that this release may not write
            self._refused = (*self._refused, f"files of removed versions are left: {error}")
        return found

    def _rounds(self, found: Holdings) -> Holdings:
        """Take rounds while they find something to change, and return what the last search found."""
        main = found.main.head
        for _ in range(_MOST_ROUNDS):
            if found.is_clean:
                break
            self._others |= check_permitted_in_round(found, self._options)
            with suppress(RetryableConflict, VersionNotFound):  # the next round plans anew
                if heads := [branch for branch in found.branches if self._rewriter.can_rewrite(branch)]:
                    for branch in heads:
                        self._rewriter.rewrite(branch)
                else:
                    self._removal.remove_holders(found)
            before, found = found, self._search.run(main)
            if _what_holds(found) == _what_holds(before):
                break  # the proof names what holds the rows
        return found

    def _prove(self, found: Holdings) -> Proof:
        own = {self._draft.report.json_path, self._draft.report.html_path, self._subject.path or ""}
        main = found.main.head
        return prove(main, found, own, self._search.filter_on(main), self._runner)


def _what_holds(found: Holdings) -> list[tuple[str, int, Mapping[int, Why]]]:
    return [(branch.name, branch.head.version, branch.holding) for branch in found.branches]
