"""The verbs that keep the rows: compaction, indices, tags, branches, clones and clean-up."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import lance
import pytest
from hypothesis.stateful import precondition, rule

import lance_ops
from lance_ops.core.errors import LanceOpsError
from lance_ops.reading.index_lookup import awaits_remap
from tests.interop import table_checks as checks
from tests.interop.table_changes import Configure
from tests.interop.table_lines import Hand, Line
from tests.interop.table_machine import CLEANS_ITSELF_UP, LIBRARIES, TableMachine
from tests.interop.table_model import Nothing
from tests.interop.table_steps import Step

__all__ = ["UpkeepRules"]

LINES_AT_ONCE = 3


class UpkeepRules(TableMachine):
    """Rules that do not change what readers see."""

    @rule(
        library=LIBRARIES,
        stale=st.booleans(),
        rows=st.sampled_from([3, 6, 1000]),
        deferred=st.sampled_from([False, False, True]),
        data=st.data(),
    )
    def compact(self, library: Any, stale: bool, rows: int, deferred: bool, data: st.DataObject) -> None:
        """Compact; the reference may defer the index remap and record the moved rows in a fragment-reuse index."""
        deferred = deferred and not self.stable_row_ids  # which nobody reads together
        hand = self.draw_hand(library, stale, data)
        if library is lance and hand.line.has_files_elsewhere and hand.line.open(lance).describe_indices():
            return  # the reference records the new segments under the base of the line's source
        if not deferred and self._awaits_remap(hand):
            return  # the reference then loses rows of the index; ours requires it to be rebuilt first
        self.take(
            hand,
            Step(
                lambda handle: handle.optimize.compact_files(
                    target_rows_per_fragment=rows, materialize_deletions_threshold=0.0, defer_index_remap=deferred
                ),
                Nothing("compact, deferred" if deferred else "compact"),
                "defer_index_remap" if deferred and library is lance_ops else None,
            ),
        )

    @rule(library=LIBRARIES, data=st.data())
    def rename_manifests(self, library: Any, data: st.DataObject) -> None:
        """Rename the manifests of a main branch to the current scheme, while no handle is open."""
        line = data.draw(st.sampled_from([line for line in self.lines if line.branch is None]))
        line.open(library).migrate_manifest_paths_v2()
        self.hands = [hand for hand in self.hands if hand.line is not line]

    # -- indices --------------------------------------------------------------------------------------------------

    @rule(library=LIBRARIES, stale=st.booleans(), kind=st.sampled_from(["BTREE", "BTREE", "BITMAP"]), data=st.data())
    def create_index(self, library: Any, stale: bool, kind: str, data: st.DataObject) -> None:
        """Create an index; only the reference builds and searches a bitmap, and both remap it."""
        library = lance if kind == "BITMAP" else library
        hand = self.draw_hand(library, stale, data)
        leaf = data.draw(st.sampled_from(hand.planned.leaves))
        if library is lance and leaf.column.id not in {column.id for column in hand.line.newest.walk()}:
            return  # the reference creates an index on a column that was dropped concurrently
        self.take(
            hand,
            Step(
                lambda handle: handle.create_scalar_index(leaf.path, kind, name=leaf.index_name),
                Nothing(f"create a {kind}"),
            ),
        )

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def optimize_indices(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self.draw_hand(library, stale, data)
        self.take(hand, Step(lambda handle: handle.optimize.optimize_indices(), Nothing("optimize indices")))

    @rule(library=LIBRARIES, data=st.data())
    def drop_index(self, library: Any, data: st.DataObject) -> None:
        hand = self.draw_hand(library, False, data)
        names = [index.name for index in hand.line.open(lance_ops).describe_indices()]
        if names:
            name = data.draw(st.sampled_from(names))
            self.take(hand, Step(lambda handle: handle.drop_index(name), Nothing("drop an index")))

    # -- tags, branches and clones --------------------------------------------------------------------------------

    @rule(library=LIBRARIES, name=st.sampled_from(["t1", "t2"]), data=st.data())
    def tag(self, library: Any, name: str, data: st.DataObject) -> None:
        """Create a tag, move it or delete it."""
        line, version = self._draw_version(data)
        tags, known = library.dataset(line.uri).tags, self.tags[line.uri]
        if name not in known:
            tags.create(name, (line.branch, version))
        elif data.draw(st.booleans()):
            tags.update(name, (line.branch, version))
        else:
            tags.delete(name)
            del known[name]
            return
        known[name] = (line.branch, version)

    @precondition(lambda self: len(self.lines) < LINES_AT_ONCE)
    @rule(library=LIBRARIES, data=st.data())
    def branch(self, library: Any, data: st.DataObject) -> None:
        line, version = self._draw_version(data)
        name = f"b{next(self.names)}"
        library.dataset(line.uri).create_branch(name, (line.branch, version))
        self.lines.append(line.begin(version, line.uri, name))

    @precondition(lambda self: len(self.lines) < LINES_AT_ONCE)
    @rule(library=LIBRARIES, deep=st.booleans(), data=st.data())
    def clone(self, library: Any, deep: bool, data: st.DataObject) -> None:
        """Clone a version; a tag keeps the files that a shallow clone reads."""
        line, version = self._draw_version(data)
        name = f"clone{next(self.names)}"
        uri, source = str(self.folder / f"{name}.lance"), library.dataset(line.uri)
        if deep:
            source.deep_clone(uri, (line.branch, version))
            self.lines.append(line.begin(version, uri, None))
            return
        source.tags.create(name, (line.branch, version))
        self.tags[line.uri][name] = (line.branch, version)
        source.shallow_clone(uri, name)
        self.lines.append(line.begin(version, uri, None, name))

    @precondition(lambda self: len(self.lines) > 1)
    @rule(library=LIBRARIES)
    def drop_line(self, library: Any) -> None:
        """Delete the last created branch or clone if nothing was created from it and no tag is on the branch."""
        line = self.lines[-1]
        tags = self.tags[line.uri]
        if line.branch is None:
            shutil.rmtree(line.uri)
            del self.tags[line.uri]
            if line.pin is not None:
                assert line.begun_from is not None
                library.dataset(line.begun_from.uri).tags.delete(line.pin)
                del self.tags[line.begun_from.uri][line.pin]
        elif line.branch in {branch for branch, _ in tags.values()}:
            with pytest.raises((LanceOpsError, OSError)):
                library.dataset(line.uri).branches.delete(line.branch)
            return
        else:
            library.dataset(line.uri).branches.delete(line.branch)
        self.lines.remove(line)
        self.hands = [hand for hand in self.hands if hand.line is not line]

    # -- clean-up -------------------------------------------------------------------------------------------------

    @rule(library=LIBRARIES, retained=st.sampled_from([None, 2]), data=st.data())
    def clean_up(self, library: Any, retained: int | None, data: st.DataObject) -> None:
        line = self.draw_line(data)
        line.open(library).cleanup_old_versions(
            timedelta(0), retained, error_if_tagged_old_versions=False, delete_unverified=library is lance_ops
        )
        there = self.versions_of(line)
        newest = set(sorted(line.retained)[-(retained or 1) :]) | self.tagged(line)
        most = newest | self.begun(line)
        least = newest if library is lance else most
        assert least <= there <= most, f"of {line.retained} {library.__name__} retains {there}, not {most}"
        self.forget(line, there)
        if library is lance_ops:
            checks.check_nothing_stray(line, self.lines)

    @rule(
        library=LIBRARIES,
        stale=st.booleans(),
        interval=st.sampled_from(["1", "3", None]),
        data=st.data(),
    )
    def clean_up_always(self, library: Any, stale: bool, interval: str | None, data: st.DataObject) -> None:
        """Make every n-th commit clean up, or turn auto clean-up off."""
        hand = self.draw_hand(library, stale, data)
        age = None if interval is None else "0s"
        values = {CLEANS_ITSELF_UP: interval, "lance.auto_cleanup.older_than": age}
        self.take(hand, Step(lambda handle: handle.update_config(values), Configure(values)))

    def _awaits_remap(self, hand: Hand) -> bool:
        snapshot = hand.line.open(lance_ops).snapshot
        return any(awaits_remap(snapshot, index) for index in snapshot.manifest.indices if not index.is_system)

    def _draw_version(self, data: st.DataObject) -> tuple[Line, int]:
        line = self.draw_line(data)
        return line, data.draw(st.sampled_from(sorted(line.retained)))
