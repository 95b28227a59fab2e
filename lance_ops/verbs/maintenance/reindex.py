"""Build, rebuild, extend and drop scalar indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, ClassVar

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.records import dataclass
from lance_ops.core.schema import Schema
from lance_ops.indices import index_type_named, index_type_of
from lance_ops.maintenance.health import IndexCoverage, index_coverage
from lance_ops.maintenance.indexing import create_scalar_index, drop_index, optimize_indices, rebuild_index
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot
from lance_ops.table import IndexMetadata
from lance_ops.verbs.contract import Execution, Measures, Preview, Section, Verb, VerbResult, WhenMoved
from lance_ops.verbs.options import Option
from lance_ops.verbs.own_measures import INDICES, UNINDEXED_ROWS, OwnMeasure

__all__ = ["DropIndex", "Reindex"]

_NOTHING = ("none", "left alone")
"""What a preview says of an index that stays as it is."""


@dataclass(frozen=True)
class Reindex(Verb):
    """Which indices to work on: those of the table, and new ones, a column and perhaps a type (`id:BTREE`) by name.

    Without names, all except those of kinds that this library does not build. `rebuild` trains anew instead of merging
    the missing rows in. Raises `InvalidInput` if `create` names an index of the table with another column or type, and
    `rebuild` is false; and `UnsupportedFeature` for a named index of another kind.
    """

    name: ClassVar[str] = "reindex"
    summary: ClassVar[str] = "Build missing indices and cover new rows."
    command: ClassVar[str] = "reindex"
    when_moved: ClassVar[WhenMoved] = WhenMoved.REPLANNED
    own_measures: ClassVar[tuple[OwnMeasure, ...]] = (INDICES, UNINDEXED_ROWS)

    indices: Annotated[
        tuple[str, ...], Option("Names of the indices to work on; none means all that can be built here.")
    ] = ()
    create: Annotated[
        Mapping[str, str],
        Option("New indices by name: a column and perhaps a type, such as id:BTREE. A present index must agree."),
    ] = field(default_factory=dict)
    rebuild: Annotated[bool, Option("Train anew instead of merging the missing rows in.")] = False

    def preview(self, work: Execution) -> Preview:
        """Show the coverage of each index, and what would be done."""
        data = work.data
        snapshot, before = data.snapshot, Measures.of(data)
        present = {index.name: index for index in index_coverage(snapshot)}
        left_alone = self._left_alone(snapshot)
        lines, num_rows = [], 0
        for name in self._names(snapshot):
            index = present.get(name)
            if index is None:
                self._column_and_type(data, name)
                lines.append((name, "missing", "", f"{before.rows:,}", "build"))
                num_rows += before.rows
            else:
                self._check_agrees(data, index)
                missing = index.num_unindexed_rows
                what = "rebuild" if self.rebuild else "extend" if index.num_unindexed_fragments else "none"
                what = "left alone" if name in left_alone else what
                lines.append((name, index.type_name, f"{index.indexed_ratio:.1%}", f"{missing:,}", what))
                num_rows += 0 if what in _NOTHING else before.rows if self.rebuild else missing
        header = ("index", "type", "indexed", "rows not covered", "to do")
        share = num_rows / before.rows if before.rows else 0
        return Preview(
            f"index {num_rows:,} rows" if num_rows else "nothing to index" if left_alone else "every row is covered",
            before,
            before,
            reads_bytes=int(before.size_bytes * share / max(len(data.schema.names), 1)),
            sections=(Section("Indices", header, tuple(lines)),) if lines else (),
            does_nothing=all(line[-1] in _NOTHING for line in lines),
        )

    def execute(self, work: Execution) -> VerbResult:
        """Build what is missing, then extend the others.

        Indices of other kinds stay as they are unless they are named.
        """
        snapshot = work.data.snapshot
        present = {index.name: index for index in index_coverage(snapshot)}
        left_alone = self._left_alone(snapshot)
        names = [name for name in self._names(snapshot) if name not in left_alone]
        kept = [name for name in names if name in present and not self.rebuild]
        for name in kept:
            self._check_agrees(work.data, present[name])
        for name in names:
            if name not in kept:
                snapshot = self._build(snapshot, name, present.get(name), work.runner)
        if kept:
            snapshot = optimize_indices(snapshot, kept, runner=work.runner)
        facts = {f"indexed_{each.name}": f"{each.indexed_ratio:.1%}" for each in index_coverage(snapshot)}
        return VerbResult(facts, None if snapshot is work.data.snapshot else snapshot)

    def _build(self, snapshot: Snapshot, name: str, old: IndexCoverage | None, runner: Runner | None) -> Snapshot:
        """Train an index, in the place of the `old` one of that name.

        If there was none, and another writer builds one meanwhile, that one is kept. Raises `InvalidInput` unless its
        column and its type agree.
        """
        column, kind = self._column_and_type(LanceDataset.of(snapshot), name)
        if old is not None and (old.fields, old.type_name.upper()) == ((column,), kind.upper()):
            return rebuild_index(snapshot, name, runner=runner)  # which keeps its parameters
        replaces = old is not None or self.rebuild
        try:
            return create_scalar_index(snapshot, column, kind, name, replace=replaces, runner=runner)
        except InvalidInput:
            newest = snapshot.latest()
            made = next((index for index in index_coverage(newest) if index.name == name), None)
            if replaces or made is None:
                raise
            self._check_agrees(LanceDataset.of(newest), made)
            return newest

    def _left_alone(self, snapshot: Snapshot) -> frozenset[str]:
        """Return the indices of kinds that this library does not build, except those that are named."""
        others = (index.name for index in snapshot.manifest.indices if not (index.is_system or _is_built_here(index)))
        return frozenset(others) - {*self.indices, *self.create}

    def _names(self, snapshot: Snapshot) -> list[str]:
        known = dict.fromkeys([*self.create, *(index.name for index in index_coverage(snapshot))])
        unknown = [name for name in self.indices if name not in known]
        if unknown:
            raise InvalidInput(f"{snapshot.uri} has no index {unknown[0]}; it has {sorted(known)}")
        return list(self.indices) or list(known)

    def _check_agrees(self, data: LanceDataset, present: IndexCoverage) -> None:
        """Refuse a given column or type that the present index does not have, unless the index is trained anew."""
        if present.name not in self.create or self.rebuild:
            return
        schema = data.snapshot.schema
        column, kind = self._given(schema, present.name)
        same_column = present.fields == (schema.path_of(schema.field(column).id),)
        same_type = not kind or index_type_named(kind).name == present.type_name.upper()
        if not (same_column and same_type):
            raise InvalidInput(
                f"create: {data.uri} has an index {present.name} already, of type {present.type_name} on "
                f"{', '.join(present.fields)}: choose another name, or pass rebuild to replace it"
            )

    def _column_and_type(self, data: LanceDataset, name: str) -> tuple[str, str]:
        """Return the column and type of an index to train: as given, else as the present one has it, else a B-tree."""
        column, kind = self._given(data.snapshot.schema, name)
        present = next((index for index in data.describe_indices() if index.name == name), None)
        if present is None:
            return column, kind or "BTREE"
        return column or present.field_names[0], kind or present.index_type

    def _given(self, schema: Schema, name: str) -> tuple[str, str]:
        """Return the column and the type that `create` states for an index, each of them empty if it does not.

        Raises `InvalidInput` for an unknown column, before anything is built.
        """
        stated = self.create.get(name, "")
        column, _, kind = (stated, "", "") if stated in schema.names else stated.rpartition(":")
        column, kind = (column, kind) if column else (kind, "")
        if column:
            schema.field(column)
        return column, kind


def _is_built_here(index: IndexMetadata) -> bool:
    try:
        index_type_of(index)
    except UnsupportedFeature:
        return False
    return True


@dataclass(frozen=True)
class DropIndex(Verb):
    """The index to drop."""

    name: ClassVar[str] = "drop_index"
    summary: ClassVar[str] = "Drop an index."
    command: ClassVar[str] = "reindex --drop NAME"
    when_moved: ClassVar[WhenMoved] = WhenMoved.JUDGED
    own_measures: ClassVar[tuple[OwnMeasure, ...]] = (INDICES,)
    carries_token: ClassVar[bool] = True

    index: Annotated[str, Option("The index's name.")]

    def preview(self, work: Execution) -> Preview:
        """Show the index."""
        data = work.data
        found = [index for index in index_coverage(data.snapshot) if index.name == self.index]
        if not found:
            names = ", ".join(index.name for index in index_coverage(data.snapshot)) or "none"
            raise InvalidInput(f"{data.uri} has no index {self.index!r}: it has {names}")
        size, index = Measures.of(data), found[0]
        line = (index.type_name, ", ".join(index.fields), f"{index.num_indexed_rows:,}", f"{index.size_bytes:,}")
        return Preview(
            f"drop index {self.index}",
            size,
            size,
            sections=(Section("The index", ("type", "columns", "indexed rows", "bytes"), (line,)),),
            warnings=("Queries on its column will scan.",),
        )

    def execute(self, work: Execution) -> VerbResult:
        """Drop it, as one commit."""
        dropped = drop_index(work.data.snapshot, self.index, transaction_properties=work.token_properties)
        return VerbResult({"dropped_index": self.index}, dropped)
