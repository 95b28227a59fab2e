"""The operation `DataReplacement`: replace a column's values, one file in each fragment."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from lance_ops.core.errors import IncompatibleTransaction, InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.pb import transaction_pb2
from lance_ops.table import DataFile, Fragment, Manifest
from lance_ops.transactions.footprint import Footprint
from lance_ops.transactions.manifest_changes import (
    check_fragments_exist,
    fragments_by_id,
    remove_changed_coverage,
    stamp_all_rows,
)
from lance_ops.transactions.operation import ApplyContext, Operation

__all__ = ["DataReplacement", "DataReplacementGroup"]


@dataclass(frozen=True, slots=True)
class DataReplacementGroup:
    """A fragment, and the file that replaces its file of the same fields."""

    fragment_id: int
    new_file: DataFile


@dataclass(frozen=True)
class DataReplacement(Operation):
    """Replace one file in each fragment, or add one if no file of the fragment holds its fields (all values null).

    In a table of stable row ids, every row of these fragments counts as updated.
    """

    replacements: tuple[DataReplacementGroup, ...]

    wire_name = "data_replacement"

    @classmethod
    def from_pb(cls, message: transaction_pb2.Transaction.DataReplacement, path: str) -> Self:
        groups = (DataReplacementGroup(g.fragment_id, DataFile.from_pb(g.new_file)) for g in message.replacements)
        return cls(tuple(groups))

    def to_pb(self) -> transaction_pb2.Transaction.DataReplacement:
        return transaction_pb2.Transaction.DataReplacement(
            replacements=[
                transaction_pb2.Transaction.DataReplacementGroup(
                    fragment_id=group.fragment_id, new_file=group.new_file.to_pb()
                )
                for group in self.replacements
            ]
        )

    def footprint(self) -> Footprint:
        return Footprint(
            writes_values={group.fragment_id: frozenset(group.new_file.live_fields) for group in self.replacements}
        )

    def apply(self, manifest: Manifest, context: ApplyContext) -> Manifest:
        if len({group.new_file.fields for group in self.replacements}) > 1:
            raise InvalidInput("all files of one data replacement must hold the same fields")
        check_fragments_exist(manifest, (group.fragment_id for group in self.replacements), self.name)
        before = fragments_by_id(manifest.fragments.having({group.fragment_id for group in self.replacements}))
        changed = dict(before)
        for group in self.replacements:
            fragment = _with_file(changed[group.fragment_id], group.new_file)
            stable = manifest.uses_stable_row_ids
            changed[fragment.id] = stamp_all_rows(fragment, manifest.version + 1) if stable else fragment
        return replace(
            manifest,
            fragments=manifest.fragments.with_changes(changed),
            indices=remove_changed_coverage(manifest.indices, before, changed.values(), manifest.schema),
        )


def _with_file(fragment: Fragment, new: DataFile) -> Fragment:
    files = tuple(new if file.fields == new.fields else file for file in fragment.files)
    if files != fragment.files:
        return replace(fragment, files=files)
    if any(set(file.live_fields).intersection(new.fields) for file in fragment.files):
        raise IncompatibleTransaction(
            f"fragment {fragment.id} has no file of exactly the fields {list(new.fields)}, so they cannot be replaced"
        )
    return replace(fragment, files=(*fragment.files, new))
