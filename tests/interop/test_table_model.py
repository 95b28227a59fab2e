"""One table in many hands: handles of both libraries, some of them stale, take random steps against a model.

After each step both libraries read the rows of the model, at every version of every line that is retained. A step that
is refused changed nothing, and one of ours left no file behind. In a table of stable row ids a row keeps its id, and
tells which versions brought and last changed it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import Phase, event, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import lance_ops
from lance_ops.core.errors import LanceOpsError
from lance_ops.maintenance.cleanup_plan import NamedFiles
from tests.interop import table_steps as steps
from tests.interop.table_model import (
    KEY,
    Change,
    Column,
    Configure,
    Nothing,
    Overwrite,
    Record,
    Restore,
    State,
    Truncate,
    Unseen,
)
from tests.interop.table_steps import Step

lance = pytest.importorskip("lance", reason="pylance, the reference implementation, is not installed")
pytestmark = pytest.mark.interop

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
LIBRARIES = st.sampled_from([lance_ops, lance])
# To find a shorter failing example takes many times as long as all of the examples.
BOUNDED = settings(phases=[Phase.generate], report_multiple_bugs=False)
OWN_FOLDERS = ("data", "_deletions", "_indices", "_transactions")
WITHOUT_EFFECT = ("ReserveFragments", "Rewrite", "CreateIndex")


@dataclass
class Line:
    """The main line or a branch: `states` is what each version held, `retained` which are there still."""

    uri: str
    branch: str | None
    states: dict[int, State]
    retained: set[int]
    begun_from: Line | None = None
    ids: dict[tuple[int, int], int] = field(default_factory=dict)
    """The id of each row, known by the version that brought it and its key."""

    @property
    def version(self) -> int:
        return max(self.states)

    @property
    def begun_at(self) -> int:
        return min(self.states)

    @property
    def newest(self) -> State:
        return self.states[self.version]

    @property
    def folder(self) -> Path:
        return Path(self.uri, "tree", self.branch) if self.branch else Path(self.uri)

    def open(self, library: Any, version: int | None = None) -> Any:
        if self.branch is None:
            return library.dataset(self.uri, version=version)
        return library.dataset(self.uri).checkout_version((self.branch, version))

    def files(self) -> set[str]:
        return {
            os.path.relpath(os.path.join(folder, name), self.folder)
            for own in OWN_FOLDERS
            for folder, _, names in os.walk(self.folder / own)
            for name in names
        }


@dataclass
class Hand:
    """A handle that stands on a version of a line, until it does something."""

    library: Any
    line: Line
    handle: Any

    @property
    def version(self) -> int:
        return int(self.handle.version)

    @property
    def planned(self) -> State:
        return self.line.states[self.version]

    @property
    def is_stale(self) -> bool:
        return self.version != self.line.version


class OneTable(RuleBasedStateMachine):
    """Whether the table has stable row ids is the subclasses' choice."""

    stable_row_ids: ClassVar[bool]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="one-table-"))
        self.uri = str(self.folder / "data.lance")
        self.column_ids = itertools.count()
        self.keys = itertools.count()
        self.lines: list[Line] = []
        self.hands: list[Hand] = []
        self.tags: dict[str, tuple[str | None, int]] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # -- steps ----------------------------------------------------------------------------------------------------

    @initialize(
        library=LIBRARIES, version=st.sampled_from(["2.0", "2.1", "2.2"]), old_names=st.booleans(), data=st.data()
    )
    def create(self, library: Any, version: str, old_names: bool, data: st.DataObject) -> None:
        columns = self._new_columns()
        records = self._new_records(State(columns), 5, data)
        library.write_dataset(
            pa.Table.from_pylist(list(records), schema=State(columns).schema),
            self.uri,
            max_rows_per_file=2,
            data_storage_version=version,
            enable_stable_row_ids=self.stable_row_ids,
            enable_v2_manifest_paths=not (old_names and library is lance),  # ours only goes on with the old names
        )
        state = Overwrite(columns, records).applied(State(), State(), 1)
        self.lines.append(Line(self.uri, None, {1: state}, {1}))
        for each in (lance_ops, lance):
            self.hands.append(self._hand(each, self.lines[0]))

    @rule(library=LIBRARIES, data=st.data())
    def hold(self, library: Any, data: st.DataObject) -> None:
        """Open a handle to be used later, when others have gone on."""
        self.hands = [*self.hands[-3:], self._hand(library, data.draw(st.sampled_from(self.lines)))]

    @rule(
        library=LIBRARIES,
        stale=st.booleans(),
        count=st.integers(1, 5),
        files=st.integers(1, 3),
        version=st.sampled_from([None, None, "2.0", "2.1", "2.2"]),
        data=st.data(),
    )
    def append(
        self, library: Any, stale: bool, count: int, files: int, version: str | None, data: st.DataObject
    ) -> None:
        hand = self._draw_hand(library, stale, data)
        records = self._new_records(hand.planned, count, data)
        step = steps.append(records, hand.planned.schema, files, version)
        if library is lance and any(self._cast_since(hand)):
            return  # the reference appends values under the column from before a cast, where nobody reads them
        self._take(hand, step)

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def delete(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self._draw_hand(library, stale, data)
        self._take(hand, steps.delete(data.draw(steps.conditions(hand.planned.columns))))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def update(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self._draw_hand(library, stale, data)
        if len(hand.planned.columns) > 1:
            self._take(hand, data.draw(steps.update(hand.planned)))

    @rule(library=LIBRARIES, stale=st.booleans(), new=st.integers(0, 2), data=st.data())
    def merge_insert(self, library: Any, stale: bool, new: int, data: st.DataObject) -> None:
        hand = self._draw_hand(library, stale, data)
        known = hand.planned.rows.keys() & hand.line.newest.rows.keys()
        if not hand.is_stale:
            known = {key for state in hand.line.states.values() for key in state.rows}
        keys = [next(self.keys) for _ in range(new)]
        if known or keys:
            self._take(hand, data.draw(steps.merge_insert(hand.planned, sorted(known), keys)))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def add_column(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self._draw_hand(library, stale, data)
        if len(hand.planned.columns) <= len(steps.NAMES):
            self._take(hand, data.draw(steps.add_column(hand.planned, next(self.column_ids))))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def alter_column(self, library: Any, stale: bool, data: st.DataObject) -> None:
        """Drop a column, rename it or cast it."""
        hand = self._draw_hand(library, stale, data)
        state = hand.planned
        if len(state.columns) == 1:
            return
        kind = data.draw(st.sampled_from(["drop", "rename", "cast"]))
        numbers = [column for column in state.columns[1:] if column.type in steps.CASTS]
        if library is lance:  # the reference wants an index to be dropped before its column is cast
            indexed = {index.name for index in hand.line.open(lance).describe_indices()}
            numbers = [column for column in numbers if f"index_{column.id}" not in indexed]
        if kind == "cast" and numbers:
            self._take(hand, steps.cast(data.draw(st.sampled_from(numbers)), next(self.column_ids)))
        elif kind == "rename" and len(state.columns) <= len(steps.NAMES):
            self._take(hand, data.draw(steps.rename(state)))
        elif len(state.columns) > 2:
            self._take(hand, data.draw(steps.drop(state)))

    @rule(
        library=LIBRARIES,
        stale=st.booleans(),
        key=st.sampled_from(["x", "y"]),
        value=st.sampled_from(["1", "2", None]),
        data=st.data(),
    )
    def configure(self, library: Any, stale: bool, key: str, value: str | None, data: st.DataObject) -> None:
        hand = self._draw_hand(library, stale, data)
        self._take(hand, Step(lambda handle: handle.update_config({key: value}), Configure({key: value})))

    @rule(
        library=LIBRARIES,
        stale=st.booleans(),
        version=st.sampled_from([None, None, "2.0", "2.1", "2.2"]),
        data=st.data(),
    )
    def overwrite(self, library: Any, stale: bool, version: str | None, data: st.DataObject) -> None:
        hand = self._draw_hand(library, stale, data)
        if len(hand.line.states) > 3:
            columns = self._new_columns()
            self._take(hand, steps.overwrite(columns, self._new_records(State(columns), 4, data), version))

    @rule(library=LIBRARIES, data=st.data())
    def truncate(self, library: Any, data: st.DataObject) -> None:
        hand = self._draw_hand(library, False, data)
        if len(hand.line.states) > 4:
            self._take(hand, Step(lambda handle: handle.truncate_table(), Truncate()))

    @rule(library=LIBRARIES, data=st.data())
    def restore(self, library: Any, data: st.DataObject) -> None:
        line = data.draw(st.sampled_from(self.lines))
        version = data.draw(st.sampled_from(sorted(line.retained)))
        hand = Hand(library, line, line.open(library, version))
        self._take(hand, Step(lambda handle: handle.restore(), Restore(line.states[version])))

    @rule(library=LIBRARIES, stale=st.booleans(), rows=st.sampled_from([3, 6, 1000]), data=st.data())
    def compact(self, library: Any, stale: bool, rows: int, data: st.DataObject) -> None:
        hand = self._draw_hand(library, stale, data)
        if library is lance and hand.line.branch and hand.line.open(lance).describe_indices():
            return  # the reference says that the new segments lie where the branch's files came from
        self._take(
            hand,
            Step(
                lambda handle: handle.optimize.compact_files(
                    target_rows_per_fragment=rows, materialize_deletions_threshold=0.0
                ),
                Nothing("compact"),
            ),
        )

    @rule(library=LIBRARIES)
    def rename_manifests(self, library: Any) -> None:
        """Give the manifests of the main line the names of today, while nobody holds a handle."""
        line = self.lines[0]
        line.open(library).migrate_manifest_paths_v2()
        self.hands = [hand for hand in self.hands if hand.line is not line]

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def create_index(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self._draw_hand(library, stale, data)
        column = data.draw(st.sampled_from(hand.planned.columns))
        if library is lance and column.id not in {column.id for column in hand.line.newest.columns}:
            return  # the reference puts an index on a column that was dropped meanwhile
        name = f"index_{column.id}"
        self._take(
            hand,
            Step(
                lambda handle: handle.create_scalar_index(column.name, "BTREE", name=name), Nothing("create an index")
            ),
        )

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def optimize_indices(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self._draw_hand(library, stale, data)
        self._take(hand, Step(lambda handle: handle.optimize.optimize_indices(), Nothing("optimize indices")))

    # -- references and clean-up ----------------------------------------------------------------------------------

    @rule(library=LIBRARIES, name=st.sampled_from(["t1", "t2"]), data=st.data())
    def tag(self, library: Any, name: str, data: st.DataObject) -> None:
        """Create a tag, move it or delete it."""
        tags = library.dataset(self.uri).tags
        line = data.draw(st.sampled_from(self.lines))
        version = data.draw(st.sampled_from(sorted(line.retained)))
        if name not in self.tags:
            tags.create(name, (line.branch, version))
        elif data.draw(st.booleans()):
            tags.update(name, (line.branch, version))
        else:
            tags.delete(name)
            del self.tags[name]
            return
        self.tags[name] = (line.branch, version)

    @precondition(lambda self: len(self.lines) < 3)
    @rule(library=LIBRARIES, data=st.data())
    def branch(self, library: Any, data: st.DataObject) -> None:
        line = data.draw(st.sampled_from(self.lines))
        version = data.draw(st.sampled_from(sorted(line.retained)))
        name = f"b{len(self.lines)}"
        ids = {row: row_id for row, row_id in line.ids.items() if row[0] <= version}  # the branch counts on from here
        library.dataset(self.uri).create_branch(name, (line.branch, version))
        self.lines.append(Line(self.uri, name, {version: line.states[version]}, {version}, line, ids))

    @precondition(lambda self: len(self.lines) > 1)
    @rule(library=LIBRARIES)
    def delete_branch(self, library: Any) -> None:
        """Delete the branch that was begun last, which none came from, unless a tag is on it."""
        line = self.lines[-1]
        if line.branch in {branch for branch, _ in self.tags.values()}:
            with pytest.raises((LanceOpsError, OSError)):
                library.dataset(self.uri).branches.delete(line.branch)
            return
        library.dataset(self.uri).branches.delete(line.branch)
        self.lines.remove(line)
        self.hands = [hand for hand in self.hands if hand.line is not line]

    @rule(library=LIBRARIES, retained=st.sampled_from([None, 2]), data=st.data())
    def clean_up(self, library: Any, retained: int | None, data: st.DataObject) -> None:
        line = data.draw(st.sampled_from(self.lines))
        dataset = line.open(library)
        dataset.cleanup_old_versions(
            timedelta(0), retained, error_if_tagged_old_versions=False, delete_unverified=library is lance_ops
        )
        tagged = {version for branch, version in self.tags.values() if branch == line.branch}
        begun = {other.begun_at for other in self.lines if other.begun_from is line}
        there = {entry["version"] for entry in line.open(lance_ops).versions()}
        expected = set(sorted(line.retained)[-(retained or 1) :]) | tagged | (begun & line.retained)
        assert there == expected, f"of {line.retained} {library.__name__} retains {there}, not {expected}"
        line.retained = there
        if library is lance_ops:
            self._check_nothing_stray(line)
        # The reference's handle on a version that was cleaned up makes old versions anew.
        self.hands = [hand for hand in self.hands if hand.library is lance_ops or not hand.is_stale]

    # -- what holds after each step -------------------------------------------------------------------------------

    @invariant()
    def both_read_the_model(self) -> None:
        for line in self.lines:
            assert line.open(lance).version == line.version
            for version in sorted(line.retained):
                self._check_version(line, version)
            self._check_newest(line)
        for library in (lance_ops, lance):
            listed = library.dataset(self.uri).tags.list()
            assert {name: (tag["branch"], tag["version"]) for name, tag in listed.items()} == self.tags
            for name, (branch, version) in self.tags.items():
                assert library.dataset(self.uri).checkout_version(name).version == version, branch

    def _check_version(self, line: Line, version: int) -> None:
        expected = line.states[version].records()
        ours, theirs = line.open(lance_ops, version), line.open(lance, version)
        table = ours.to_table()
        assert table.sort_by(KEY).to_pylist() == expected, version
        assert table.equals(theirs.to_table()), version
        assert ours.count_rows() == theirs.count_rows() == len(expected)
        ours.validate()

    def _check_newest(self, line: Line) -> None:
        state, ours, theirs = line.newest, line.open(lance_ops), line.open(lance)
        theirs.validate()
        assert ours.schema.equals(theirs.schema) and ours.schema.equals(state.schema)
        assert ours.config() == theirs.config() == state.config
        if self.stable_row_ids:
            self._check_lineage(line, ours, theirs)
        for column in self._indexed(line, ours):
            for condition in steps.probes(column):
                expected = state.records(condition)
                for dataset in (ours, theirs):
                    assert "ScalarIndexQuery" in dataset.scanner(filter=condition.sql).explain_plan(), condition
                    assert dataset.to_table(filter=condition.sql).sort_by(KEY).to_pylist() == expected, condition
                    assert dataset.count_rows(condition.sql) == len(expected), condition

    def _check_lineage(self, line: Line, ours: Any, theirs: Any) -> None:
        table = ours.to_table([KEY, *LINEAGE])
        assert table.equals(theirs.to_table([KEY, *LINEAGE]))
        for key, row_id, created_at, updated_at in zip(*table.to_pydict().values(), strict=True):
            row = line.newest.rows[key]
            assert (created_at, updated_at) == (row.created_at, row.updated_at), key
            assert line.ids.setdefault((created_at, key), row_id) == row_id
        assert len(set(line.ids.values())) == len(line.ids)
        assert ours.snapshot.manifest.next_row_id > max(line.ids.values(), default=-1)

    def _indexed(self, line: Line, ours: Any) -> list[Column]:
        """Return the columns that have an index which covers something."""
        statistics = {index.name: ours.index_statistics(index.name) for index in ours.describe_indices()}
        named = {name for name, index in statistics.items() if index["num_indexed_rows"]}
        return [column for column in line.newest.columns if f"index_{column.id}" in named]

    def _check_nothing_stray(self, line: Line) -> None:
        """Check that a clean-up of everything left no file that no version of any line names."""
        named = NamedFiles(str(line.folder))
        for other in self.lines:
            for version in other.retained:
                named.add(other.open(lance_ops, version).snapshot.manifest, str(other.folder))
        assert [path for path in sorted(line.files()) if path not in named] == []

    # -- taking a step --------------------------------------------------------------------------------------------

    def _take(self, hand: Hand, step: Step) -> None:
        line, planned_on, was_stale = hand.line, hand.version, hand.is_stale
        before = line.files()
        name = f"{hand.library.__name__} {step.change.label}{' stale' if was_stale else ''}"
        try:
            returned = step.act(hand.handle)
        except Exception as error:  # noqa: BLE001 # the reference raises many kinds
            self._check_refusal(hand, step, error, name)
            assert hand.library is lance or line.files() == before, f"{name} was refused, and left files"
            event(f"{name}: refused")
            hand.handle = line.open(hand.library)
            step = Step(step.act, Nothing("refused"))
        else:
            event(f"{name}: done")
            assert step.expected_error is None or was_stale, f"{name} should have been refused"
            if isinstance(returned, lance_ops.LanceDataset | lance.LanceDataset):
                hand.handle = returned
        before_it = line.version
        self._note(line, step.change, hand.library, planned_on)
        assert hand.version == line.version or line.version == before_it

    def _check_refusal(self, hand: Hand, step: Step, error: Exception, name: str) -> None:
        assert step.expected_error or hand.is_stale, f"{name}, planned on the newest version, was refused: {error!r}"
        assert hand.library is lance or isinstance(error, LanceOpsError), f"{name}: {error!r}"

    def _note(self, line: Line, change: Change, library: Any, planned_on: int) -> None:
        """Follow the versions made by one step, of which one at most changed anything.

        `planned_on` is the version of the handle at first.
        """
        changed = isinstance(change, Nothing)
        dataset = line.open(lance_ops)
        for version in range(line.version + 1, dataset.version + 1):
            transaction = dataset.read_transaction(version)
            if transaction.operation.name in WITHOUT_EFFECT:
                line.states[version] = line.newest
            else:
                assert not changed, f"version {version} came unexpectedly: {transaction.operation.name}"
                changed = True
                # The reference's transaction names the version that it was last compared with.
                planned = {transaction.read_version} | ({planned_on} if library is lance else set())
                line.states[version] = self._landed(line, change, version, planned)
            line.retained.add(version)
        if not changed:
            states = [line.states[planned] for planned in (line.version, planned_on)]
            assert any(change.changes_nothing(state) for state in states), "nothing was committed"

    def _landed(self, line: Line, change: Change, version: int, planned_on: set[int]) -> State:
        """Return what a change made, if it can be told from the rows alone on which version it was planned."""
        found = line.open(lance_ops, version).to_table().sort_by(KEY).to_pylist()
        unseen: Unseen | None = None
        for planned in sorted(planned_on):
            try:
                made = change.applied(line.states[planned], line.newest, version)
            except Unseen as error:
                unseen = error
                continue
            if made.records() == found:
                return made
        raise unseen or AssertionError(f"version {version} is not what was meant: {found}")

    def _hand(self, library: Any, line: Line) -> Hand:
        return Hand(library, line, line.open(library))

    def _draw_hand(self, library: Any, stale: bool, data: st.DataObject) -> Hand:
        held = [hand for hand in self.hands if hand.library is library and hand.is_stale]
        if stale and held:
            return data.draw(st.sampled_from(held))
        return self._hand(library, data.draw(st.sampled_from(self.lines)))

    def _cast_since(self, hand: Hand) -> set[int | None]:
        return {c.cast_from for c in hand.line.newest.columns} & {c.id for c in hand.planned.columns}

    def _new_columns(self) -> tuple[Column, ...]:
        kinds = {KEY: pa.int64(), "a": pa.int64(), "b": pa.string()}
        return tuple(Column(next(self.column_ids), name, kind) for name, kind in kinds.items())

    def _new_records(self, state: State, count: int, data: st.DataObject) -> tuple[Record, ...]:
        others = state.columns[1:]
        values = st.tuples(*(steps.values_of(column.type) for column in others))
        drawn = data.draw(st.lists(values, min_size=count, max_size=count))
        return tuple(
            {KEY: next(self.keys), **{column.name: value for column, value in zip(others, row, strict=True)}}
            for row in drawn
        )


class Addresses(OneTable):
    stable_row_ids = False


class StableIds(OneTable):
    stable_row_ids = True


SHORT = settings(max_examples=8, stateful_step_count=20)
LONG = settings(max_examples=100, stateful_step_count=40, derandomize=False)


@pytest.mark.parametrize("table", [Addresses, StableIds])
def test_both_libraries_read_the_model_after_every_step(table: type[OneTable]) -> None:
    run_state_machine_as_test(table, settings=settings(BOUNDED, max_examples=8, stateful_step_count=20))


@pytest.mark.soak
@pytest.mark.parametrize("table", [Addresses, StableIds])
def test_both_libraries_read_the_model_after_every_step_for_long(table: type[OneTable]) -> None:
    run_state_machine_as_test(
        table, settings=settings(BOUNDED, max_examples=100, stateful_step_count=40, derandomize=False)
    )
