"""The verbs that change rows, columns and configuration: one rule each."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import lance
from hypothesis.stateful import rule

import lance_ops
from tests.interop import table_column_steps as column_steps
from tests.interop import table_steps as steps
from tests.interop.table_changes import Configure, Restore, Truncate
from tests.interop.table_lines import Hand
from tests.interop.table_machine import LIBRARIES, TableMachine
from tests.interop.table_model import State
from tests.interop.table_steps import Step
from tests.interop.table_values import NAMES, conditions

__all__ = ["ContentRules"]


class ContentRules(TableMachine):
    """Rules that add, change and remove rows and columns."""

    # -- rows -----------------------------------------------------------------------------------------------------

    @rule(library=LIBRARIES, stale=st.booleans(), count=st.integers(1, 5), files=st.integers(1, 3), data=st.data())
    def append(self, library: Any, stale: bool, count: int, files: int, data: st.DataObject) -> None:
        hand = self.draw_hand(library, stale, data)
        version = data.draw(st.sampled_from([None, *self.file_versions]))
        records = self.new_records(hand.planned, count, data)
        if not self._appends_unseen(hand):
            self.take(hand, steps.append(records, hand.planned.schema, files, version))

    @rule(
        library=LIBRARIES,
        stale=st.booleans(),
        counts=st.lists(st.integers(1, 3), min_size=1, max_size=3),
        data=st.data(),
    )
    def append_batch(self, library: Any, stale: bool, counts: list[int], data: st.DataObject) -> None:
        """Commit the fragments of several writers as one transaction."""
        hand = self.draw_hand(library, stale, data)
        parts = [self.new_records(hand.planned, count, data) for count in counts]
        if not self._appends_unseen(hand):
            self.take(hand, steps.append_batch(parts, hand.planned.schema))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def delete(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self.draw_hand(library, stale, data)
        self.take(hand, steps.delete(data.draw(conditions(hand.planned))))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def update(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self.draw_hand(library, stale, data)
        if len(hand.planned.columns) > 1:
            self.take(hand, data.draw(steps.update(hand.planned)))

    @rule(library=LIBRARIES, stale=st.booleans(), new=st.integers(0, 2), data=st.data())
    def merge_insert(self, library: Any, stale: bool, new: int, data: st.DataObject) -> None:
        hand = self.draw_hand(library, stale, data)
        known = hand.planned.rows.keys() & hand.line.newest.rows.keys()
        if not hand.is_stale:
            known = {key for state in hand.line.states.values() for key in state.rows}
        keys = [next(self.keys) for _ in range(new)]
        if known or keys:
            self.take(hand, data.draw(steps.merge_insert(hand.planned, sorted(known), keys)))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def overwrite(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self.draw_hand(library, stale, data)
        if len(hand.line.states) > 3:
            columns, version = self.new_columns(data), data.draw(st.sampled_from([None, *self.file_versions]))
            self.take(hand, steps.overwrite(columns, self.new_records(State(columns), 4, data), version))

    @rule(library=LIBRARIES, data=st.data())
    def truncate(self, library: Any, data: st.DataObject) -> None:
        hand = self.draw_hand(library, False, data)
        if len(hand.line.states) > 4:
            self.take(hand, Step(lambda handle: handle.truncate_table(), Truncate()))

    @rule(library=LIBRARIES, data=st.data())
    def restore(self, library: Any, data: st.DataObject) -> None:
        line = self.draw_line(data)
        version = data.draw(st.sampled_from(sorted(line.retained)))
        hand = Hand(library, line, line.open(library, version))
        self.take(hand, Step(lambda handle: handle.restore(), Restore(line.states[version])))

    # -- columns --------------------------------------------------------------------------------------------------

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def add_column(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self.draw_hand(library, stale, data)
        if column_steps.free_names(hand.planned.columns):
            self.take(hand, data.draw(column_steps.add_column(hand.planned, self.column_ids, nested=self.nested)))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def add_field(self, library: Any, stale: bool, data: st.DataObject) -> None:
        """Add a field to a struct; neither library adds one to structs in a list."""
        hand = self.draw_hand(library, stale, data)
        structs = [column for column in hand.planned.columns if column.is_struct and len(column.fields) < len(NAMES)]
        if structs and self._may_edit_fields(hand):
            self.take(hand, data.draw(column_steps.add_field(structs, self.column_ids)))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def drop_column(self, library: Any, stale: bool, data: st.DataObject) -> None:
        """Drop a column, or a field of a struct or of structs in a list, but not the last one that has a file.

        Only its fields record where a struct is null: without a field in a file, both libraries read nulls.
        """
        hand = self.draw_hand(library, stale, data)
        columns = hand.planned.columns[1:]
        outer = [column.name for column in columns] if len(columns) > 1 else []
        if not self._may_edit_fields(hand):
            columns = tuple(column for column in columns if not column.is_list)
        inner = [
            column.prefix + field.name
            for column in columns
            for field in column.fields
            if column in hand.line.newest.columns
            and any(not other.is_late for other in column.fields if other is not field)
        ]
        if outer or inner:
            self.take(hand, column_steps.drop(data.draw(st.sampled_from(outer + inner))))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def rename_column(self, library: Any, stale: bool, data: st.DataObject) -> None:
        hand = self.draw_hand(library, stale, data)
        columns = hand.planned.columns
        places = [(column.name, columns) for column in columns[1:]]
        places += [(column.prefix + field.name, column.fields) for column in columns for field in column.fields]
        free = [(path, name) for path, beside in places for name in column_steps.free_names(beside)]
        if free:
            self.take(hand, column_steps.rename(*data.draw(st.sampled_from(free))))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def cast_column(self, library: Any, stale: bool, data: st.DataObject) -> None:
        """Cast numbers; neither library casts values inside lists."""
        hand = self.draw_hand(library, stale, data)
        numbers = [leaf for leaf in hand.planned.leaves[1:] if leaf.type in column_steps.CASTS]
        if library is lance:  # the reference wants an index to be dropped before its column is cast
            indexed = {index.name for index in hand.line.open(lance).describe_indices()}
            numbers = [leaf for leaf in numbers if leaf.index_name not in indexed]
        if numbers:
            self.take(hand, column_steps.cast(data.draw(st.sampled_from(numbers)), next(self.column_ids)))

    @rule(library=LIBRARIES, stale=st.booleans(), data=st.data())
    def replace_values(self, library: Any, stale: bool, data: st.DataObject) -> None:
        """Replace the values of one column in one fragment."""
        hand = self.draw_hand(library, stale, data)
        line = hand.line
        if hand.version in line.retained:
            planned_on = line.open(lance_ops, hand.version)
            step = data.draw(column_steps.replace_values(planned_on, hand.planned, line.folder))
            dropped = {column.id for column in hand.planned.walk()} - {column.id for column in line.newest.walk()}
            if step is not None and not (library is lance and dropped):  # the reference leaves such a file behind
                self.take(hand, step)

    # -- configuration --------------------------------------------------------------------------------------------

    @rule(
        library=LIBRARIES,
        stale=st.booleans(),
        key=st.sampled_from(["x", "y"]),
        value=st.sampled_from(["1", "2", None]),
        data=st.data(),
    )
    def configure(self, library: Any, stale: bool, key: str, value: str | None, data: st.DataObject) -> None:
        hand = self.draw_hand(library, stale, data)
        self.take(hand, Step(lambda handle: handle.update_config({key: value}), Configure({key: value})))

    def _may_edit_fields(self, hand: Hand) -> bool:
        """Whether the library can add struct fields and drop them inside lists, where the reference drops the list."""
        return hand.library is lance_ops or hand.line.open(lance).data_storage_version == "2.2"

    def _appends_unseen(self, hand: Hand) -> bool:
        """Whether the reference would append values that no reader sees, or that appear in another column.

        A cast since then drops the column and adds a new one; any other new column may reuse its id.
        """
        planned, newest = ({column.id for column in state.walk()} for state in (hand.planned, hand.line.newest))
        return hand.library is lance and bool(planned - newest) and bool(newest - planned)
