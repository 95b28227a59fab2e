"""Find what holds a subject's rows: files, versions, tags and branches.

A file that stores one of the rows is tainted, and so is every file beside it in a fragment. A version holds the rows if
it names a tainted file. It may hold them in an index: a segment also has entries of fragments that are gone, and a zone
map the bounds of rows that are gone. Its transaction or its metadata may state a value of theirs, as a deletion states
its filter. A fragment whose version the filter does not fit is taken to hold the rows, unless the search of another
version covers it; see `searched_columns`. The other versions that name its files are then taken to hold the rows, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from pyroaring import BitMap

from lance_ops.committers import list_detached
from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.file_names import MAIN_BRANCH, is_detached
from lance_ops.core.predicate import Predicate
from lance_ops.core.schema import Schema
from lance_ops.maintenance.erasure.searching.holdings import BranchHoldings, Cause, Holdings, Why
from lance_ops.maintenance.erasure.searching.index_search import FragmentFiles, IndexSearch
from lance_ops.maintenance.erasure.searching.row_search import FilterColumns, columns_read, search_fragments
from lance_ops.maintenance.erasure.searching.searched_columns import SearchedColumns, uris_of
from lance_ops.maintenance.erasure.searching.sought_values import long_enough, stated_values
from lance_ops.maintenance.erasure.searching.stated_texts import StatedTexts, stated_texts
from lance_ops.maintenance.erasure.subject import Subject
from lance_ops.refs import (
    PINS_DIR,
    PinnedVersions,
    is_mark_expired,
    is_pin_of_work,
    list_branches,
    list_tags,
    open_branch,
    reference_store,
)
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot, history
from lance_ops.table import Fragment, IndexMetadata, check_writable
from lance_ops.transactions import CommittedVersion

__all__ = ["Search", "retained_and_detached_versions"]


class Search:
    """Searches a dataset for a subject's rows, again and again: a file is never searched twice, since none changes.

    Pins of the erasure `own_id` itself do not hold the rows: an interrupted run left them.
    """

    def __init__(self, subject: Subject, runner: Runner, own_id: str | None = None) -> None:
        self._subject = subject
        self._runner = runner
        self._own_id = own_id
        self._indices = IndexSearch(self._are_clean)
        self._predicates: dict[Schema, Predicate | None] = {}
        self._rows: dict[FragmentFiles, dict[FilterColumns, BitMap]] = {}
        self._searched = SearchedColumns()
        self._noted: defaultdict[Schema, set[FragmentFiles]] = defaultdict(set)
        self._values: frozenset[bytes] = frozenset()
        self._stated: dict[tuple[str, int], StatedTexts] = {}
        self._with_dropped_columns: frozenset[str] = frozenset()
        self._tainted: frozenset[str] = frozenset()
        self._suspect: frozenset[str] = frozenset()
        """The tainted files, and those of a version that no search read with the version's own columns."""

    @property
    def num_fragments(self) -> int:
        """How many fragments were searched."""
        return len(self._rows)

    def taint_files_with_dropped_columns(self, found: Holdings, uris: Collection[str]) -> bool:
        """Mark data files of the heads as storing the rows if they have a column that the head's schema lacks.

        Return whether any is marked. In other files a value stands by chance, or in another column.
        """
        self._with_dropped_columns |= {
            uri
            for branch in found.branches
            for fragment in branch.head.fragments
            for uri, file in zip(uris_of(branch.head, fragment), fragment.files, strict=True)
            if uri in uris and any(branch.head.schema.by_id(each) is None for each in file.fields)
        }
        return bool(self._with_dropped_columns)

    def mark_rebuilt(self, indices: Iterable[IndexMetadata]) -> None:
        """Remember that these segments were built after the rows were gone."""
        self._indices.mark_rebuilt(indices)

    def filter_on(self, version: Snapshot) -> Predicate | None:
        """Return the filter on a version's columns; None if the version lacks them."""
        schema = version.schema
        if schema not in self._predicates:
            try:
                predicate = self._predicates[schema] = self._subject.bind(version)
                self._values |= stated_values(predicate)
            except (InvalidFilter, UnsupportedFeature):
                self._predicates[schema] = None
        return self._predicates[schema]

    def run(self, main: Snapshot) -> Holdings:
        """Search all retained versions of all branches; `main` is a version of the main branch."""
        newest = main.latest()
        branches = list_branches(reference_store(newest))
        names = sorted(branches, key=lambda name: -len(branches[name].identifier))  # a parent after its branches
        heads = {name: open_branch(newest, name) for name in names} | {MAIN_BRANCH: newest}
        versions = {
            name: [self._opened(head, each) for each in retained_and_detached_versions(head)]
            for name, head in heads.items()
        }
        for opened in versions.values():
            for version in opened:
                self._search(version)
                if version.manifest.indices:
                    self._indices.note_covered(
                        version, {each.id: _files_of(version, each) for each in version.fragments}
                    )
        stored = (files for files, found in self._rows.items() if any(found.values()))
        self._tainted = self._with_dropped_columns.union(*stored)
        self._suspect = self._tainted.union(
            *(
                _files_of(version, fragment)
                for name, opened in versions.items()
                if not self._uncovered(heads[name])  # else the branch keeps these files, and is not proven
                for version in opened
                for fragment in self._uncovered(version)
            )
        )
        for name, opened in reversed(versions.items()):
            branch = branches.get(name)
            start = None if branch is None else (branch.parent_branch or MAIN_BRANCH, branch.parent_version)
            self._indices.follow(
                name, start, ((each, self._suspect_fragments(each)) for each in opened if each.manifest.indices)
            )
        detached: dict[int, Why] = {}
        found = [self._branch_holdings(name, head, versions[name], detached) for name, head in heads.items()]
        return self._with_references(
            Holdings(tuple(found), detached=detached, files=self._suspect, values=self._values)
        )

    def _opened(self, head: Snapshot, committed: CommittedVersion) -> Snapshot:
        """Return a version of a branch, and remember the texts that it states."""
        key = head.uri, committed.version
        if key not in self._stated:
            self._stated[key] = stated_texts(committed)
        return head.with_manifest(committed.manifest)

    def _branch_holdings(
        self, name: str, head: Snapshot, versions: Iterable[Snapshot], detached: dict[int, Why]
    ) -> BranchHoldings:
        """Tell what holds the rows on a branch; detached versions that hold them are added to `detached`."""
        found = BranchHoldings(name, head)
        # Removing versions does not remove what the newest one's metadata states. The proof names it.
        sought = self._values - stated_texts(CommittedVersion(head.manifest, None)).by_metadata
        for version in versions:
            try:
                check_writable(version.manifest, f"{version.uri} at version {version.version}")
            except UnsupportedFeature as error:
                found.unwritable[version.version] = error
            why = self._why_holding(name, version) or self._why_stating(version, sought)
            if why is None:
                found.clean.add(version.version)
            elif is_detached(version.version):
                detached[version.version] = why
            else:
                found.holding[version.version] = why
        predicate = self.filter_on(head)
        found.tainted_fragments.update(self._tainted_fragments(head))
        for fragment in head.fragments:
            by_columns = self._rows.get(_files_of(head, fragment), {})
            if predicate is not None:
                rows = by_columns.get(columns_read(head, predicate), BitMap())
            else:
                rows = BitMap().union(*by_columns.values())
            if rows:
                found.rows[fragment.id] = rows
        found.stale_indices = self._stale_indices(name, head)
        return found

    def _search(self, version: Snapshot) -> None:
        """Search the fragments of a version that no version before had, with the same columns of the filter.

        The search of another version counts for this one. But this one may have columns that the other one lacks.
        """
        predicate = self.filter_on(version)
        if predicate is None:
            return
        columns, noted = columns_read(version, predicate), self._noted[version.schema]
        files = {fragment.id: _files_of(version, fragment) for fragment in version.fragments}
        new = [fragment for fragment in version.fragments if columns not in self._rows.get(files[fragment.id], {})]
        if new:
            offsets, values = search_fragments(version, predicate, new, self._runner)
            self._values |= long_enough(values)
            for fragment in new:
                self._rows.setdefault(files[fragment.id], {})[columns] = offsets.get(fragment.id, BitMap())
        unnoted = [fragment for fragment in version.fragments if files[fragment.id] not in noted]
        self._searched.note(version, predicate, unnoted)
        noted.update(files[fragment.id] for fragment in unnoted)

    def _why_holding(self, branch: str, version: Snapshot) -> Why | None:
        """Return why a version is taken to hold the rows in files or in indices; None if it does not."""
        if self._tainted and any(_files_of(version, fragment) & self._tainted for fragment in version.fragments):
            return Why(Cause.FILES)
        if self._uncovered(version):
            return Why(Cause.UNSEARCHED)
        if self._tainted_fragments(version):
            return Why(Cause.UNSEARCHED_FILES)
        if stale := self._stale_indices(branch, version):
            return Why(Cause.INDEX, min(stale))
        return None

    def _why_stating(self, version: Snapshot, sought: frozenset[bytes]) -> Why | None:
        """Return where a version states a sought value; None if it states none."""
        stated = self._stated[version.uri, version.version]
        if not sought.isdisjoint(stated.by_transaction):
            return Why(Cause.TRANSACTION)
        return None if sought.isdisjoint(stated.by_metadata) else Why(Cause.METADATA)

    def _uncovered(self, version: Snapshot) -> list[Fragment]:
        """Return the fragments of a version whose rows no search covers."""
        return [] if self.filter_on(version) is not None else self._searched.uncovered(version)

    def _tainted_fragments(self, version: Snapshot) -> BitMap:
        """Return the fragments to rewrite.

        A fragment that no search covers is left out, unless one of its files is tainted. A rewrite would not make it
        searchable.
        """
        suspect = self._suspect_fragments(version)
        if not suspect:
            return suspect
        uncovered = {each.id for each in self._uncovered(version)}
        return BitMap(
            each.id
            for each in version.fragments
            if each.id in suspect and (each.id not in uncovered or _files_of(version, each) & self._tainted)
        )

    def _suspect_fragments(self, version: Snapshot) -> BitMap:
        """Return the fragments with a file that stores the rows, or that was not searched in the form of a version."""
        if not self._suspect:
            return BitMap()
        return BitMap(each.id for each in version.fragments if _files_of(version, each) & self._suspect)

    def _are_clean(self, shown: Collection[FragmentFiles]) -> bool:
        """Return whether a fragment that versions show with these files was searched, and stores no such row."""
        return any(files in self._rows for files in shown) and not any(files & self._suspect for files in shown)

    def _stale_indices(self, branch: str, version: Snapshot) -> set[str]:
        tainted = self._tainted_fragments(version) if version.manifest.indices else BitMap()
        return self._indices.stale_indices(branch, version, tainted, self.filter_on(version))

    def _with_references(self, found: Holdings) -> Holdings:
        newest = found.main.head
        holding = {branch.name: branch.holding for branch in found.branches}
        for name, tag in list_tags(reference_store(newest)).items():
            branch = tag.branch or MAIN_BRANCH
            if tag.version in holding.get(branch, {}):
                found.tags[name] = (branch, tag.version)
        for branch_found in found.branches:
            pins, store = list(branch_found.head.store.list(PINS_DIR)), branch_found.head.store
            now = store.now() if pins else None
            pinned = PinnedVersions.by(
                info.path
                for info in pins
                if (now is None or not is_mark_expired(info, now))  # else its process crashed
                and (self._own_id is None or not is_pin_of_work(info.path, self._own_id))
            )
            branch_found.pins = {each: pinned.pin_of(each) for each in branch_found.holding if each in pinned}
        return found


def retained_and_detached_versions(head: Snapshot) -> Iterator[CommittedVersion]:
    """Yield every retained version of a branch, the newest first, then its detached ones without transactions."""
    yield from history(head, to_the_end=True)
    if head.committer.takes_detached:
        for version in list_detached(head.store):
            yield CommittedVersion(head.at(version).manifest, None)


def _files_of(version: Snapshot, fragment: Fragment) -> FragmentFiles:
    return frozenset(uris_of(version, fragment))
