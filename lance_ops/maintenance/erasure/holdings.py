"""Find what holds a subject's rows: files, versions, tags and branches.

A file that stores one of the rows is tainted, and so is every file beside it in a fragment. A version holds the rows if
it names a tainted file. It may hold them in an index: a segment also has entries of fragments that are gone, and a zone
map the bounds of rows that are gone. Its transaction or its metadata may state a value of theirs, as a deletion states
its filter. A fragment whose version lacks the filter's columns shares its fate with the fragments that it shares a file
with; if there are none, it is taken to hold the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import field
from uuid import UUID

from pyroaring import BitMap

from lance_ops.committers import list_detached
from lance_ops.core.errors import InvalidFilter, UnsupportedFeature
from lance_ops.core.file_names import MAIN_BRANCH, is_detached
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Field, Schema
from lance_ops.maintenance.erasure.index_search import holds_matching_values, may_have_covered
from lance_ops.maintenance.erasure.row_search import search_fragments
from lance_ops.maintenance.erasure.sought_values import long_enough, stated_values
from lance_ops.maintenance.erasure.subject import Subject
from lance_ops.refs import PINS_DIR, list_branches, list_tags, open_branch, pinned_version, reference_store
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot, history
from lance_ops.table import Fragment, IndexMetadata, Manifest

__all__ = ["BranchHoldings", "Holdings", "Search"]

_Files = frozenset[str]
"""The URIs of a fragment's data files."""
_Columns = tuple[Field, ...]
"""The columns that the filter reads in a version. A column may have the name of one that was dropped."""


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
        self._predicates: dict[Schema, Predicate | None] = {}
        self._rows: dict[_Files, dict[_Columns, BitMap]] = {}
        self._values: frozenset[bytes] = frozenset()
        self._indices: dict[tuple[UUID, _Columns], bool] = {}
        self._hiding: frozenset[str] = frozenset()
        self._tainted: frozenset[str] = frozenset()
        self._indexed_since: dict[str, int] = {}
        self._rebuilt: set[UUID] = set()

    @property
    def num_fragments(self) -> int:
        """How many fragments were searched."""
        return len(self._rows)

    def taint_hiding_files(self, found: Holdings, uris: Collection[str]) -> bool:
        """Take those of some data files to store the rows that have a column which no schema shows any more.

        Return whether there are any. In other files a value stands by chance, or in another column.
        """
        self._hiding |= {
            uri
            for branch in found.branches
            for fragment in branch.head.fragments
            for uri, file in zip(_uris_of(branch.head, fragment), fragment.files, strict=True)
            if uri in uris and any(branch.head.schema.by_id(each) is None for each in file.fields)
        }
        return bool(self._hiding)

    def trust(self, indices: Iterable[IndexMetadata]) -> None:
        """Take segments to have no entries of the rows: they were built when the rows were gone."""
        self._rebuilt.update(index.uuid for index in indices)

    def run(self, main: Snapshot) -> Holdings:
        """Search all retained versions of all branches; `main` is a version of the main branch."""
        newest = main.latest()
        store = reference_store(newest)
        others = sorted(list_branches(store).items(), key=lambda item: -len(item[1].identifier))
        heads = [(name, open_branch(newest, name)) for name, _ in others]
        versions = [(name, head, list(_versions(head))) for name, head in [*heads, (MAIN_BRANCH, newest)]]
        for _, _, opened in versions:
            for version, _ in opened:
                self._search(version)
        self._tainted = self._hiding.union(*(files for files, found in self._rows.items() if any(found.values())))
        self._indexed_since = self._first_versions_of_indices(
            version for _, _, opened in versions for version, _ in opened
        )
        branches: list[BranchHoldings] = []
        detached: dict[int, str] = {}
        for name, head, opened in versions:
            found = BranchHoldings(name, head)
            for version, transaction in opened:
                # the newest version's metadata cannot go with it: the proof tells whether a value stands there
                told = transaction if version.version == head.version else transaction + _texts_of(version.manifest)
                why = self._why_holding(version, told)
                if why is None:
                    found.clean.add(version.version)
                elif is_detached(version.version):
                    detached[version.version] = why
                else:
                    found.holding[version.version] = why
            self._look_at_head(found)
            branches.append(found)
        return self._with_references(
            Holdings(tuple(branches), detached=detached, files=self._tainted, values=self._values)
        )

    def _bound(self, version: Snapshot) -> Predicate | None:
        """Return the filter on a version's columns; None if the version lacks them."""
        schema = version.schema
        if schema not in self._predicates:
            try:
                predicate = self._predicates[schema] = self._subject.bind(version)
                self._values |= stated_values(predicate)
            except (InvalidFilter, UnsupportedFeature):
                self._predicates[schema] = None
        return self._predicates[schema]

    def _search(self, version: Snapshot) -> None:
        """Search the fragments of a version that no version before had, with the same columns of the filter."""
        predicate = self._bound(version)
        if predicate is None:
            return
        columns = _columns_of(version, predicate)
        files = {fragment.id: _files_of(version, fragment) for fragment in version.fragments}
        new = [fragment for fragment in version.fragments if columns not in self._rows.get(files[fragment.id], {})]
        if not new:
            return
        offsets, values = search_fragments(version, predicate, new, self._runner)
        self._values |= long_enough(values)
        for fragment in new:
            self._rows.setdefault(files[fragment.id], {})[columns] = offsets.get(fragment.id, BitMap())

    def _why_holding(self, version: Snapshot, told: bytes) -> str | None:
        """Return why a version is taken to hold the rows; None if it does not. `told` is what it states in words."""
        unknown = False
        searched: frozenset[str] | None = None
        for fragment in version.fragments:
            files = _files_of(version, fragment)
            if files & self._tainted:
                return "it names files that store the rows"
            if files not in self._rows:
                if searched is None:
                    searched = frozenset().union(*self._rows)
                unknown = unknown or not files & searched
        if unknown:
            return "its columns differ, so that the filter cannot search it"
        if stale := self._stale_indices(version):
            return f"index {min(stale)} may have entries of the rows"
        if any(value in told for value in self._values):
            return "its transaction or its metadata states a value of the rows"
        return None

    def _look_at_head(self, found: BranchHoldings) -> None:
        head, predicate = found.head, self._bound(found.head)
        found.tainted_fragments.update(self._tainted_fragments(head))
        for fragment in head.fragments:
            by_columns = self._rows.get(_files_of(head, fragment), {})
            if predicate is not None:
                rows = by_columns.get(_columns_of(head, predicate), BitMap())
            else:
                rows = BitMap().union(*by_columns.values())
            if rows:
                found.rows[fragment.id] = rows
        found.stale_indices = self._stale_indices(head)

    def _tainted_fragments(self, version: Snapshot) -> BitMap:
        return BitMap(each.id for each in version.fragments if _files_of(version, each) & self._tainted)

    def _first_versions_of_indices(self, versions: Iterable[Snapshot]) -> dict[str, int]:
        """Return the first version in which an index may have entries of tainted fragments, by the index's name."""
        first: dict[str, int] = {}
        for version in versions:
            tainted = self._tainted_fragments(version) if version.manifest.indices else BitMap()
            if tainted:
                for index in version.manifest.indices:
                    if not index.is_system and may_have_covered(index, tainted):
                        first[index.name] = min(first.get(index.name, version.version), version.version)
        return first

    def _stale_indices(self, version: Snapshot) -> set[str]:
        """Return the indices with a segment that has, or may have, entries of tainted or of removed fragments.

        A segment may come from an older one of the same name, whose rows a compaction moved.
        """
        predicate, present = self._bound(version), BitMap(version.fragments_by_id)
        tainted, stale = self._tainted_fragments(version), set()
        for index in version.manifest.indices:
            if index.is_system or index.uuid in self._rebuilt:
                continue
            covered, since = index.fragment_bitmap, self._indexed_since.get(index.name)
            has_gone = covered is None or bool(covered - present)
            if has_gone or may_have_covered(index, tainted) or (since is not None and since < version.version):
                stale.add(index.name)
            elif predicate is not None:
                key = (index.uuid, _columns_of(version, predicate))
                if key not in self._indices:
                    self._indices[key] = holds_matching_values(version, index, predicate)
                if self._indices[key]:
                    stale.add(index.name)
        return stale

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


def _versions(head: Snapshot) -> Iterator[tuple[Snapshot, bytes]]:
    """Yield every retained version of a branch with the bytes of its transaction, the newest first.

    Its detached versions follow, without transactions.
    """
    for committed in history(head, to_the_end=True):
        stored = committed.stored_transaction
        yield head.with_manifest(committed.manifest), b"" if stored is None else stored.data
    if head.committer.takes_detached:
        for version in list_detached(head.store):
            yield head.at(version), b""


def _files_of(version: Snapshot, fragment: Fragment) -> _Files:
    return frozenset(_uris_of(version, fragment))


def _uris_of(version: Snapshot, fragment: Fragment) -> list[str]:
    locations = version.file_locations
    return [locations.data_file(file.base_id, file.path).uri for file in fragment.files]


def _texts_of(manifest: Manifest) -> bytes:
    """Return a manifest's config and metadata, and the names and the metadata of its columns."""
    schema = manifest.schema
    names = {field.name: "" for field in schema.walk()}
    maps = [manifest.config, manifest.table_metadata, schema.metadata, *(field.metadata for field in schema.walk())]
    return "\0".join(text for each in (names, *maps) for item in each.items() for text in item).encode(
        errors="surrogateescape"
    )


def _columns_of(version: Snapshot, predicate: Predicate) -> _Columns:
    """Return the table's columns that the filter reads."""
    return version.schema.project(predicate.columns()).fields
