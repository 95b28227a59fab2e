"""Conflicts that the measured matrix does not contain: reserved ids, bases, keys, columns, nulls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lance_ops.pb import transaction_pb2
from lance_ops.table import BasePath
from lance_ops.transactions import (
    Append,
    Clone,
    Compatible,
    CreateIndex,
    Incompatible,
    InsertedKeys,
    Operation,
    Rebase,
    Remap,
    ReserveFragments,
    Restore,
    Retry,
    Rewrite,
    RewrittenIndex,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
    UpdateMode,
    judge,
)
from tests.table.samples import fragment, index
from tests.transactions.samples import (
    MERGE,
    ONE_OF_EACH,
    OVERWRITE,
    PROJECT,
    create_index,
    delete,
    new_fragment,
    replacement,
    rewrite,
    set_config,
    update,
    update_columns,
)

APPEND = Append((new_fragment("a"),))
RESERVE = ReserveFragments(3)


def test_a_verdict_reads_as_a_sentence() -> None:
    verdict = judge(delete(0, 3), delete(dropped=(3,)))

    assert isinstance(verdict, Retry)
    assert verdict.reason == "fragment 3 left the table"


def test_an_overwrite_that_was_computed_from_the_rows_is_compatible_only_with_what_keeps_them() -> None:
    computed = replace(OVERWRITE, reads_rows=True)
    found = {kind for kind, each in ONE_OF_EACH.items() if not isinstance(judge(computed, each), Retry)}
    assert found == {CreateIndex, ReserveFragments, Rewrite, UpdateBases}
    assert judge(computed, set_config("k")) == Compatible()


def test_deletions_in_the_same_fragments_are_rebased_in_these() -> None:
    assert judge(delete(0, 1, 2), delete(2, 1, 5)) == Rebase(frozenset({1, 2}))


def test_a_deletion_and_a_rewrite_of_the_same_fragments_are_remapped() -> None:
    assert judge(delete(0, 3, dropped=(5,)), rewrite(3, 4, 5)) == Remap(frozenset({3, 5}))
    assert judge(rewrite(3, 4, 5), delete(0, 3, dropped=(5,))) == Remap(frozenset({3, 5}))


def test_a_remapped_deletion_conflicts_in_its_new_fragments() -> None:
    moved = [(frozenset({0, 1}), frozenset({7, 8}))]

    for ours in (delete(0, 2), delete(2, dropped=(0,)), update(0, 2)):
        assert judge(ours, rewrite(8, 9), moved) == Remap(frozenset({8}))
        assert judge(ours, delete(7, 9), moved) == Rebase(frozenset({7}))
        assert judge(ours, delete(dropped=(8,)), moved) == Rebase(frozenset({8}))
        assert isinstance(judge(ours, MERGE, moved), Retry)
        assert isinstance(judge(ours, replacement(7), moved), Retry)
        assert isinstance(judge(ours, replacement(9), moved), Compatible)


def test_values_written_in_place_conflict_with_a_rewrite() -> None:
    assert isinstance(judge(rewrite(0), update_columns(0)), Retry)
    assert isinstance(judge(update_columns(0), rewrite(0)), Retry)


def test_reserved_ids_conflict_only_with_a_replaced_table() -> None:
    for other in ONE_OF_EACH.values():
        if not other.footprint().is_known:
            continue
        replaced = isinstance(other, Clone | Restore | type(OVERWRITE))
        assert isinstance(judge(RESERVE, other), Incompatible if replaced else Compatible)
        assert isinstance(judge(other, RESERVE), Compatible)


def test_a_clone_replaces_the_table() -> None:
    clone = Clone(True, 3, "/elsewhere")
    assert isinstance(judge(APPEND, clone), Incompatible)
    assert isinstance(judge(Restore(1), clone), Compatible)


def test_an_overwrite_that_sets_a_key_set_concurrently_is_retryable() -> None:
    ours = replace(OVERWRITE, config_upsert_values={"k": "1"})

    assert isinstance(judge(ours, set_config("k")), Retry)
    assert isinstance(judge(ours, set_config("other")), Compatible)
    assert isinstance(judge(set_config("k"), ours), Incompatible)


@pytest.mark.parametrize(
    ("ours", "theirs", "meet"),
    [
        (UpdateConfig(UpdateMap({"a": "1"})), UpdateConfig(None, UpdateMap({"a": "1"})), False),
        (UpdateConfig(UpdateMap({"a": "1"})), UpdateConfig(UpdateMap({}, replace=True)), True),
        (UpdateConfig(UpdateMap({}, replace=True)), UpdateConfig(UpdateMap({"a": None})), True),
        (
            UpdateConfig(field_metadata_updates={1: UpdateMap({"a": "1"})}),
            UpdateConfig(field_metadata_updates={2: UpdateMap({"a": "1"})}),
            False,
        ),
        (
            UpdateConfig(field_metadata_updates={1: UpdateMap({"a": "1"})}),
            UpdateConfig(field_metadata_updates={1: UpdateMap({"a": "2"})}),
            True,
        ),
    ],
)
def test_keys_conflict_only_in_the_same_map(ours: UpdateConfig, theirs: UpdateConfig, meet: bool) -> None:
    assert isinstance(judge(ours, theirs), Incompatible if meet else Compatible)


def test_field_metadata_conflicts_with_a_replaced_table() -> None:
    ours = UpdateConfig(field_metadata_updates={0: UpdateMap({"a": "1"})})

    assert isinstance(judge(ours, OVERWRITE), Incompatible)
    assert isinstance(judge(set_config("a"), OVERWRITE), Compatible)


@pytest.mark.parametrize("ours", [PROJECT, MERGE])
def test_a_new_schema_does_not_undo_metadata(ours: Operation) -> None:
    assert isinstance(judge(ours, UpdateConfig(schema_metadata_updates=UpdateMap({"a": "1"}))), Retry)


def test_a_schema_that_may_forbid_nulls_conflicts_with_writers() -> None:
    strict = replace(PROJECT, preserves_nullability=False)

    assert isinstance(judge(APPEND, strict), Retry)
    assert isinstance(judge(strict, APPEND), Retry)
    assert isinstance(judge(replacement(0), strict), Retry)
    assert isinstance(judge(delete(0), strict), Compatible)


def test_columns_written_in_place_conflict_by_field() -> None:
    assert isinstance(judge(update_columns(0, 0), replacement(0, (0,))), Retry)
    assert judge(update_columns(0, 0), replacement(0, (2,))) == Rebase(frozenset({0}))
    assert isinstance(judge(replacement(0, (2,)), update_columns(0, 0)), Compatible)
    assert isinstance(judge(update_columns(0), update(0)), Retry)
    assert isinstance(judge(delete(0), update_columns(0)), Retry)


def test_an_index_conflicts_with_writes_to_its_columns() -> None:
    assert isinstance(judge(create_index("i", fields=(2,)), replacement(0, (0,))), Compatible)
    assert isinstance(judge(create_index("i", fields=(0,)), update_columns(0, 0)), Retry)
    assert isinstance(judge(update_columns(0, 0), create_index("i", fields=(0,))), Retry)


def test_an_update_with_modified_fields_writes_in_place_in_any_mode() -> None:
    unsaid = replace(update_columns(0, 0), update_mode=UpdateMode.REWRITE_ROWS)

    assert isinstance(judge(delete(0), unsaid), Retry)
    assert isinstance(judge(create_index("i", fields=(0,)), unsaid), Retry)
    assert judge(update_columns(0, 2), unsaid) == Rebase(frozenset({0}))


def test_an_index_of_row_ids_is_compatible_with_a_rewrite_that_keeps_them() -> None:
    by_row_id, by_address = (CreateIndex((replace(index(1), index_version=version),)) for version in (0, 1))
    [group] = rewrite(0).groups
    kept = tuple(fragment.with_sequences(row_ids=b"") for fragment in group.new_fragments)
    keeping = Rewrite((replace(group, new_fragments=kept),))

    assert judge(by_row_id, keeping) == Remap(frozenset({0}))
    assert judge(keeping, by_row_id) == Compatible()
    assert isinstance(judge(by_row_id, rewrite(0)), Retry)
    assert isinstance(judge(by_address, keeping), Retry)
    moved = (frozenset({0}), frozenset({7}))
    again = Rewrite((replace(keeping.groups[0], old_fragments=(fragment(7),)),))
    assert judge(by_row_id, again, [moved]) == Remap(frozenset({7}))


def test_an_index_without_a_fragment_bitmap_conflicts_with_every_rewrite() -> None:
    unknown = CreateIndex((replace(index(1), fragment_bitmap=None),))

    assert isinstance(judge(unknown, rewrite(7)), Retry)


def test_only_one_of_two_operations_remaps_or_replaces_a_segment() -> None:
    remap = Rewrite(rewrite(5).groups, (RewrittenIndex(index(1).uuid, index(9).uuid),))
    merge_segments = CreateIndex((index(2, "other", covers=(0,)),), (index(1),))
    built_meanwhile = CreateIndex((index(1, "new", covers=(5,)),))

    assert isinstance(judge(remap, merge_segments), Retry)
    assert isinstance(judge(merge_segments, remap), Retry)
    assert isinstance(judge(merge_segments, rewrite(5)), Compatible)
    assert isinstance(judge(remap, built_meanwhile), Compatible)
    assert isinstance(judge(rewrite(5), built_meanwhile), Retry)


def test_a_base_declared_by_both_is_incompatible() -> None:
    one = UpdateBases((BasePath(0, "/x"),))

    assert isinstance(judge(one, UpdateBases((BasePath(0, "/y"),))), Compatible)
    assert isinstance(judge(one, UpdateBases((BasePath(0, "/x"),))), Incompatible)
    assert isinstance(judge(one, OVERWRITE), Compatible)


def inserting(*hashes: int, bloom: bool = False) -> Update:
    keys = transaction_pb2.Transaction.KeyExistenceFilter(field_ids=[0])
    if bloom:
        keys.bloom.num_bits = 8
    else:
        keys.exact.key_hashes.extend(hashes)
    return Update(new_fragments=(new_fragment("i"),), inserted_rows=keys.SerializeToString())


def test_concurrent_inserts_of_the_same_primary_key_conflict() -> None:
    assert isinstance(judge(inserting(1, 2), inserting(3)), Compatible)
    assert isinstance(judge(inserting(1, 2), inserting(2)), Retry)
    assert isinstance(judge(inserting(1), inserting(bloom=True)), Retry)


def test_rows_of_unknown_keys_conflict_with_the_insert_of_a_primary_key() -> None:
    assert isinstance(judge(inserting(1), APPEND), Retry)
    assert isinstance(judge(APPEND, inserting(1)), Compatible)
    assert isinstance(judge(inserting(), APPEND), Compatible)
    empty = InsertedKeys.from_hashes((0,), np.empty(0, np.uint64)).encode()
    assert isinstance(judge(replace(inserting(), inserted_rows=empty), APPEND), Compatible)
    assert isinstance(judge(inserting(1), Update(new_fragments=(new_fragment("i"),))), Retry)
    assert isinstance(judge(inserting(1), update_columns(1, 0)), Retry)
    assert isinstance(judge(inserting(1), update_columns(1, 5)), Compatible)
