"""The model test's state machine: it picks the library, takes a step and records the versions that the step made.

A refused step changes nothing, and a refused step of ours leaves no file behind.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import lance
import pyarrow as pa
from hypothesis import event
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lance_ops
from lance_ops.core.errors import CorruptFile, LanceOpsError, UnsupportedFeature
from tests.interop import table_checks as checks
from tests.interop import table_values as values
from tests.interop.table_changes import Overwrite
from tests.interop.table_lines import Hand, Line, found_files
from tests.interop.table_model import KEY, Change, Column, Nothing, Record, State, Unseen
from tests.interop.table_steps import Step

__all__ = ["CLEANS_ITSELF_UP", "LIBRARIES", "TableMachine"]

LIBRARIES = st.sampled_from([lance_ops, lance])
WITHOUT_EFFECT = ("ReserveFragments", "Rewrite", "CreateIndex")
CLEANS_ITSELF_UP = "lance.auto_cleanup.interval"


class TableMachine(RuleBasedStateMachine):
    """Subclasses decide whether the table has stable row ids."""

    stable_row_ids: ClassVar[bool]
    stale_steps_done: ClassVar[Counter[str]] = Counter()
    """The steps of stale handles that were not refused, by library."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="one-table-"))
        self.column_ids = itertools.count()
        self.keys = itertools.count()
        self.names = itertools.count(1)
        self.turns = itertools.count()
        self.nested = False
        self.file_versions: tuple[str, ...] = ("2.1", "2.2")
        self.lines: list[Line] = []
        self.found: dict[str, tuple[int, int]] = {}
        self.hands: list[Hand] = []
        self.tags: defaultdict[str, dict[str, tuple[str | None, int]]] = defaultdict(dict)
        """The target of each tag of a table, by the table's URI."""

    def teardown(self) -> None:
        try:
            for line in self.lines:
                for version in line.retained:
                    checks.check_rows(line, version)
        finally:
            shutil.rmtree(self.folder)

    @initialize(library=LIBRARIES, old_names=st.booleans(), nested=st.booleans(), data=st.data())
    def create(self, library: Any, old_names: bool, nested: bool, data: st.DataObject) -> None:
        """Write a table that has structs and lists of structs, or one that may have 2.0 files.

        In 2.0 files a struct is never null, and dropping one field of structs in a list makes the reference drop the
        whole list.
        """
        self.nested = nested
        self.file_versions = ("2.1", "2.2") if nested else ("2.0", "2.1", "2.2")
        uri, columns = str(self.folder / "table.lance"), self.new_columns(data)
        records = self.new_records(State(columns), 5, data)
        library.write_dataset(
            pa.Table.from_pylist(list(records), schema=State(columns).schema),
            uri,
            max_rows_per_file=2,
            data_storage_version=data.draw(st.sampled_from(self.file_versions)),
            enable_stable_row_ids=self.stable_row_ids,
            enable_v2_manifest_paths=not (old_names and library is lance),  # ours only continues the old names
        )
        state = Overwrite(columns, records).applied(State(), State(), 1)
        self.lines.append(Line(uri, None, {1: state}, {1}))
        for each in (lance_ops, lance):
            self.hands.append(self.new_hand(each, self.lines[0]))

    @rule(library=LIBRARIES, data=st.data())
    def hold(self, library: Any, data: st.DataObject) -> None:
        """Open a handle to be used later, after other commits."""
        self.hands = [*self.hands[-3:], self.new_hand(library, self.draw_line(data))]

    # -- what holds after each step -------------------------------------------------------------------------------

    @invariant()
    def both_read_the_model(self) -> None:
        """Scan the versions that a step may have touched, and read the newest ones in every way.

        Files are written once. So older versions are read again when a file is gone or has changed, and at the end.
        After each step one version of one line is also read that nothing has touched: each line has its turn.
        """
        turn, touched = next(self.turns), self._changed_files()
        for number, line in enumerate(self.lines):
            checks.check_newest(line)
            retained = sorted(line.retained)
            other = retained[turn // len(self.lines) % len(retained)]
            if touched:
                line.scanned.clear()
                line.read_in_every_way.clear()
            in_turn = {other} if number == turn % len(self.lines) else set()
            for version in sorted({*retained} - line.scanned | in_turn):
                checks.check_rows(line, version)
                line.scanned.add(version)
            for version in sorted({line.version} - line.read_in_every_way | in_turn):
                checks.check_ways_to_read(line, version, stable_row_ids=self.stable_row_ids)
                line.read_in_every_way.add(version)
            if self.stable_row_ids:
                checks.check_feed(line, *sorted((other, retained[turn // 2 % len(retained)])))
        for library, (uri, tags) in itertools.product((lance_ops, lance), self.tags.items()):
            listed = library.dataset(uri).tags.list()
            assert {name: (tag["branch"], tag["version"]) for name, tag in listed.items()} == tags
            for name, (branch, version) in tags.items():
                assert library.dataset(uri).checkout_version(name).version == version, branch

    # -- taking a step --------------------------------------------------------------------------------------------

    def take(self, hand: Hand, step: Step) -> None:
        line, planned_on, was_stale = hand.line, hand.version, hand.is_stale
        before = line.files()
        name = f"{hand.library.__name__} {step.change.label}{' stale' if was_stale else ''}"
        try:
            returned = step.act(hand.handle)
        except Exception as error:  # noqa: BLE001 # the reference raises many kinds
            self._check_refusal(hand, step, error, name)
            left = line.files() != before and not step.brings_files
            assert hand.library is lance or not left, f"{name} was refused, and left files"
            event(f"{name}: refused")
            hand.handle = line.open(hand.library)
            step = Step(step.act, Nothing("refused"))
        else:
            event(f"{name}: done")
            self.stale_steps_done[hand.library.__name__] += was_stale
            assert step.expected_error is None or was_stale, f"{name} should have been refused"
            if isinstance(returned, lance_ops.LanceDataset | lance.LanceDataset):
                hand.handle = returned
        before_it = line.version
        self._note(line, step.change, hand.library, planned_on)
        self._note_retained(line)
        assert hand.version == line.version or line.version == before_it

    def new_hand(self, library: Any, line: Line) -> Hand:
        return Hand(library, line, line.open(library))

    def draw_line(self, data: st.DataObject) -> Line:
        return data.draw(st.sampled_from(self.lines))

    def draw_hand(self, library: Any, stale: bool, data: st.DataObject) -> Hand:
        held = [hand for hand in self.hands if hand.library is library and hand.is_stale]
        if stale and held:
            return data.draw(st.sampled_from(held))
        return self.new_hand(library, self.draw_line(data))

    def new_columns(self, data: st.DataObject) -> tuple[Column, ...]:
        kinds = {KEY: pa.int64(), "a": pa.int64(), "b": pa.string()}
        columns = [Column(next(self.column_ids), name, kind) for name, kind in kinds.items()]
        if self.nested:
            columns.append(data.draw(values.new_column(self.column_ids, "c", nested=True)))
        return tuple(columns)

    def new_records(self, state: State, count: int, data: st.DataObject) -> tuple[Record, ...]:
        return data.draw(values.records_of(state.columns, [next(self.keys) for _ in range(count)]))

    def versions_of(self, line: Line) -> set[int]:
        return {entry["version"] for entry in line.open(lance_ops).versions()}

    def tagged(self, line: Line) -> set[int]:
        return {version for branch, version in self.tags[line.uri].values() if branch == line.branch}

    def begun(self, line: Line) -> set[int]:
        """Return the versions from which branches were created.

        The reference keeps such a version only while a version of the branch names a file of the line.
        """
        begun = {other.begun_at for other in self.lines if other.begun_from is line and other.uri == line.uri}
        return begun & line.retained

    def forget(self, line: Line, there: set[int]) -> None:
        """Record which versions a clean-up left."""
        line.retained = there
        # The reference's handle on a removed version creates old versions again.
        self.hands = [hand for hand in self.hands if hand.library is lance_ops or not hand.is_stale]

    def _changed_files(self) -> list[str]:
        """Return the files that the last call found, and that are gone or have changed since."""
        before, self.found = self.found, found_files(self.folder)
        return [path for path, stamp in before.items() if self.found.get(path) != stamp]

    def _check_refusal(self, hand: Hand, step: Step, error: Exception, name: str) -> None:
        expected = step.expected_error is not None and step.expected_error in str(error)
        assert expected or hand.is_stale, f"{name}, planned on the newest version, was refused: {error!r}"
        of_race = isinstance(error, LanceOpsError) and not isinstance(error, CorruptFile | UnsupportedFeature)
        assert hand.library is lance or expected or of_race, f"{name}: {error!r}"

    def _note(self, line: Line, change: Change, library: Any, planned_on: int) -> None:
        """Record the versions made by one step; at most one of them changes the content.

        `planned_on` is the handle's version before the step.
        """
        changed = isinstance(change, Nothing)
        dataset = line.open(lance_ops)
        there = self.versions_of(line)
        for version in range(line.version + 1, dataset.version + 1):
            if version not in there:  # a step that made several versions has already cleaned up
                line.states[version] = line.newest
                continue
            transaction = dataset.read_transaction(version)
            if transaction.operation.name in WITHOUT_EFFECT:
                line.states[version] = line.newest
            else:
                assert not changed, f"version {version} came unexpectedly: {transaction.operation.name}"
                changed = True
                # The reference's transaction names the version against which it was last checked.
                planned = {transaction.read_version} | ({planned_on} if library is lance else set())
                line.states[version] = self._landed(line, change, version, planned)
            line.retained.add(version)
        if not changed:
            states = [line.states[planned] for planned in (line.version, planned_on)]
            assert any(change.changes_nothing(state) for state in states), "nothing was committed"

    def _note_retained(self, line: Line) -> None:
        """Check that no version disappeared, unless the table has auto clean-up."""
        there = self.versions_of(line)
        kept = line.retained
        if CLEANS_ITSELF_UP in line.newest.config:
            kept = set(sorted(kept)[-2:]) | self.tagged(line)
        assert kept <= there <= line.retained, f"{there} are left of {line.retained}, not {kept}"
        if there != line.retained:
            event("cleaned itself up")
            self.forget(line, there)

    def _landed(self, line: Line, change: Change, version: int, planned_on: set[int]) -> State:
        """Return the state that a change made, if the rows alone show on which version it was planned."""
        found = line.open(lance_ops, version).to_table().sort_by(KEY).to_pylist()
        unseen: Unseen | None = None
        meant: list[Record] | None = None
        for planned in sorted(planned_on):
            try:
                made = change.applied(line.states[planned], line.newest, version)
            except Unseen as error:
                unseen = error
                continue
            meant = made.records()
            if meant == found:
                return made
        raise unseen or AssertionError(f"version {version} holds {found}, not {meant}")
