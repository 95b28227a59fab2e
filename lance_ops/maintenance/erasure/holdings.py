"""Find what holds a subject's rows: files, versions, tags and branches.

A file that stores one of the rows is tainted, and so is every file beside it in a fragment. A version holds the rows if
it names a tainted file. It may hold them in an index: a segment also has entries of fragments that are gone. A fragment
whose version lacks the filter's columns shares its fate with the fragments that it shares a file with; if there are
none, it is taken to hold the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pyroaring import BitMap

from lance_ops.committers import list_detached
from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.file_names import MAIN_BRANCH, is_detached
from lance_ops.core.records import dataclass
from lance_ops.maintenance.erasure.row_search import search_fragments
from lance_ops.maintenance.erasure.subject import Subject
from lance_ops.refs import PINS_DIR, list_branches, list_tags, open_branch, pinned_version, reference_store
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot, history
from lance_ops.table import Fragment

__all__ = ["BranchHoldings", "Holdings", "Search"]

_Files = frozenset[str]
"""The URIs of a fragment's data files."""


@dataclass
class BranchHoldings:
    """What holds the rows on one branch. `rows` are physical offsets of the head's stored rows, by fragment."""

    name: str
    head: Snapshot
    rows: dict[int, BitMap] = field(default_factory=dict)
    tainted_fragments: set[int] = field(default_factory=set)
    stale_indices: set[str] = field(default_factory=set)
    holding: dict[int, str] = field(default_factory=dict)
    clean: set[int] = field(default_factory=set)

    @property
    def live_rows(self) -> dict[int, BitMap]:
        """The rows of the head that readers see, by fragment."""
        fragments = self.head.fragments_by_id
        live = {key: rows - self.head.deletion_vector(fragments[key]) for key, rows in self.rows.items()}
        return {key: rows for key, rows in live.items() if rows}

    @property
    def num_live_rows(self) -> int:
        """How many rows readers of the head see."""
        return sum(map(len, self.live_rows.values()))

    @property
    def head_holds(self) -> bool:
        """Whether the newest version holds the rows, in files or in indices."""
        return self.head.version in self.holding


@dataclass
class Holdings:
    """What holds a subject's rows, by branch; the main branch is the last."""

    branches: tuple[BranchHoldings, ...]
    tags: dict[str, tuple[str, int]] = field(default_factory=dict)
    pins: dict[int, str] = field(default_factory=dict)
    detached: dict[int, str] = field(default_factory=dict)
    files: frozenset[str] = frozenset()
    values: frozenset[bytes] = field(default=frozenset(), repr=False)

    @property
    def main(self) -> BranchHoldings:
        """The main branch."""
        return self.branches[-1]

    @property
    def is_clean(self) -> bool:
        """Whether nothing holds the rows."""
        return not self.detached and not any(branch.holding for branch in self.branches)

    @property
    def num_live_rows(self) -> int:
        """How many rows readers of the heads see."""
        return sum(branch.num_live_rows for branch in self.branches)


class Search:
    """Searches a dataset for a subject's rows, again and again: a file is never searched twice, since none changes."""

    def __init__(self, subject: Subject, runner: Runner) -> None:
        self._subject = subject
        self._runner = runner
        self._rows: dict[_Files, BitMap] = {}
        self._values: frozenset[bytes] = frozenset()

    @property
    def num_fragments(self) -> int:
        """How many fragments were searched."""
        return len(self._rows)

    def run(self, main: Snapshot) -> Holdings:
        """Search all retained versions of all branches; `main` is a version of the main branch."""
        newest = main.latest()
        store = reference_store(newest)
        others = sorted(list_branches(store).items(), key=lambda item: -len(item[1].identifier))
        heads = [(name, open_branch(newest, name)) for name, _ in others]
        versions = [(name, head, list(_versions(head))) for name, head in [*heads, (MAIN_BRANCH, newest)]]
        for _, _, opened in versions:
            for version in opened:
                self._search(version)
        tainted = frozenset().union(*(files for files, rows in self._rows.items() if rows))
        branches: list[BranchHoldings] = []
        detached: dict[int, str] = {}
        for name, head, opened in versions:
            found = BranchHoldings(name, head)
            for version in opened:
                why = self._why_holding(version, tainted)
                if why is None:
                    found.clean.add(version.version)
                elif is_detached(version.version):
                    detached[version.version] = why
                else:
                    found.holding[version.version] = why
            self._look_at_head(found, tainted)
            branches.append(found)
        return self._with_references(Holdings(tuple(branches), detached=detached, files=tainted, values=self._values))

    def _search(self, version: Snapshot) -> None:
        """Search the fragments of a version that no version before had."""
        new = [fragment for fragment in version.fragments if _files_of(version, fragment) not in self._rows]
        if not new:
            return
        try:
            predicate = self._subject.bind(version)
        except (InvalidFilter, UnsupportedFeature):
            return
        offsets, values = search_fragments(version, predicate, new, self._runner)
        self._values |= values
        for fragment in new:
            self._rows[_files_of(version, fragment)] = offsets.get(fragment.id, BitMap())

    def _why_holding(self, version: Snapshot, tainted: frozenset[str]) -> str | None:
        """Return why a version is taken to hold the rows; None if it does not."""
        unknown = False
        searched: frozenset[str] | None = None
        for fragment in version.fragments:
            files = _files_of(version, fragment)
            if files & tainted:
                return "it names files that store the rows"
            if files not in self._rows:
                if searched is None:
                    searched = frozenset().union(*self._rows)
                unknown = unknown or not files & searched
        if unknown:
            return "its columns differ, so that the filter cannot search it"
        stale = _stale_indices(version, set())
        return f"index {min(stale)} may have entries of the rows" if stale else None

    def _look_at_head(self, found: BranchHoldings, tainted: frozenset[str]) -> None:
        head = found.head
        for fragment in head.fragments:
            files = _files_of(head, fragment)
            if files & tainted:
                found.tainted_fragments.add(fragment.id)
            if rows := self._rows.get(files):
                found.rows[fragment.id] = rows
        found.stale_indices = _stale_indices(head, found.tainted_fragments)

    def _with_references(self, found: Holdings) -> Holdings:
        newest = found.main.head
        holding = {branch.name: branch.holding for branch in found.branches}
        for name, tag in list_tags(reference_store(newest)).items():
            branch = tag.branch or MAIN_BRANCH
            if tag.version in holding.get(branch, {}):
                found.tags[name] = (branch, tag.version)
        for branch_found in found.branches:
            for info in branch_found.head.store.list(PINS_DIR):
                version = pinned_version(info.path)
                if version in branch_found.holding:
                    found.pins[version] = info.path
        return found


def _versions(head: Snapshot) -> Iterator[Snapshot]:
    """Yield every retained version of a branch, the newest first, and then its detached versions."""
    for committed in history(head, to_the_end=True):
        yield head.with_manifest(committed.manifest)
    if head.committer.takes_detached:
        for version in list_detached(head.store):
            yield head.at(version)


def _files_of(version: Snapshot, fragment: Fragment) -> _Files:
    locations = version.file_locations
    return frozenset(locations.data_file(file.base_id, file.path).uri for file in fragment.files)


def _stale_indices(version: Snapshot, tainted: set[int]) -> set[str]:
    """Return the indices with a segment that has, or may have, entries of tainted or of removed fragments."""
    present = BitMap(version.fragments_by_id)
    return {
        index.name
        for index in version.manifest.indices
        if not index.is_system
        and (
            index.fragment_bitmap is None or index.fragment_bitmap & BitMap(tainted) or index.fragment_bitmap - present
        )
    }
