"""Sample operations: one of each type, and pairs that touch the same or different parts of a table."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pyarrow as pa
from pyroaring import BitMap

from lance_ops.core.schema import Schema
from lance_ops.pb import transaction_pb2
from lance_ops.table import BasePath, DeletionFile, DeletionFileType, Fragment
from lance_ops.table.rows.row_sequences import encode_row_id_range
from lance_ops.transactions import (
    Append,
    AppendFragmentReuseTransitions,
    Clone,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
    UpdateMemWalState,
    UpdateMode,
)
from tests.table.samples import SCHEMA, data_file, fragment, index

FIELD = 0  # the column `a` of the sample schema


def new_fragment(name: str, rows: int = 10) -> Fragment:
    """Return a fragment that has no id yet."""
    return Fragment(0, (data_file(name),), physical_rows=rows)


def with_deletions(fragment_id: int, deleted: int = 1, file_id: int = 99) -> Fragment:
    """Return a fragment with a deletion file, as a deletion lists it."""
    deletions = DeletionFile(1, file_id, DeletionFileType.ARROW_ARRAY, deleted)
    return replace(fragment(fragment_id), deletion_file=deletions)


def delete(*fragment_ids: int, dropped: tuple[int, ...] = ()) -> Delete:
    return Delete(tuple(map(with_deletions, fragment_ids)), dropped, "a = 1")


def update(*fragment_ids: int, dropped: tuple[int, ...] = ()) -> Update:
    return Update(
        removed_fragment_ids=dropped,
        updated_fragments=tuple(map(with_deletions, fragment_ids)),
        new_fragments=(new_fragment("updated", 1),),
        fields_for_preserving_frag_bitmap=(FIELD,),
    )


def update_columns(fragment_id: int, field_id: int = FIELD) -> Update:
    changed = replace(fragment(fragment_id), files=(data_file(f"u{fragment_id}"),))
    return Update(
        updated_fragments=(changed,),
        fields_modified=(field_id,),
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_offsets={fragment_id: BitMap([1, 2])},
    )


def rewrite(*old: int, new: int = 0) -> Rewrite:
    group = RewriteGroup(tuple(map(fragment, old)), (replace(new_fragment("rewritten", 10 * len(old)), id=new),))
    return Rewrite((group,))


def create_index(name: str, covers: tuple[int, ...] = (0,), fields: tuple[int, ...] = (FIELD,)) -> CreateIndex:
    return CreateIndex((index(50, name, fields, covers),))


def replacement(fragment_id: int, fields: tuple[int, ...] = (0, 2, 3)) -> DataReplacement:
    return DataReplacement((DataReplacementGroup(fragment_id, data_file(f"r{fragment_id}", fields)),))


def set_config(key: str) -> UpdateConfig:
    return UpdateConfig(config_updates=UpdateMap({key: "1"}))


MERGE = Merge((replace(fragment(0), files=(data_file("f0"), data_file("new", (4,)))), fragment(1)), SCHEMA, True)
PROJECT = Project(Schema(SCHEMA.fields[:1]), True)
OVERWRITE = Overwrite((new_fragment("over"),), Schema.from_arrow(pa.schema([("z", pa.int8())])))

_KEYS = transaction_pb2.Transaction.KeyExistenceFilter(field_ids=[0])
_KEYS.exact.key_hashes.extend([1, 2])

ONE_OF_EACH: dict[type[Operation], Operation] = {
    Append: Append((new_fragment("a"), new_fragment("b").with_sequences(row_ids=encode_row_id_range(5, 10)))),
    AppendFragmentReuseTransitions: AppendFragmentReuseTransitions(),
    Clone: Clone(True, 3, "/elsewhere", "tag", "branch"),
    CreateIndex: CreateIndex((index(2),), (index(1),)),
    DataOverlay: DataOverlay(transaction_pb2.Transaction.DataOverlay().SerializeToString()),
    DataReplacement: replacement(0),
    Delete: delete(0, dropped=(1,)),
    Merge: MERGE,
    Overwrite: replace(OVERWRITE, config_upsert_values={"k": "v"}, initial_bases=(BasePath(1, "/b", "name", True),)),
    Project: PROJECT,
    ReserveFragments: ReserveFragments(4),
    Restore: Restore(1),
    Rewrite: replace(
        rewrite(0, 1, new=7),
        rewritten_indices=(RewrittenIndex(UUID(int=1), UUID(int=9), index(1).details, 1, index(1).files),),
    ),
    Update: replace(update_columns(0), inserted_rows=_KEYS.SerializeToString(), new_fragments=(new_fragment("n"),)),
    UpdateBases: UpdateBases((BasePath(0, "/c"), BasePath(5, "/d", "d"))),
    UpdateConfig: UpdateConfig(
        UpdateMap({"a": "1", "b": None}),
        UpdateMap({"t": "x"}, replace=True),
        UpdateMap({}, replace=True),
        {0: UpdateMap({"unit": "m"})},
    ),
    UpdateMemWalState: UpdateMemWalState(),
}
