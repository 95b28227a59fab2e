"""How each operation on rows and indices changes a manifest, and what every new version records."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from lance_ops.core.errors import IncompatibleTransaction, InvalidInput, UnsupportedFeature
from lance_ops.core.schema import Schema
from lance_ops.table import (
    WRITER,
    BasePath,
    DataFormat,
    FeatureFlag,
    IndexDetails,
    IndexMetadata,
)
from lance_ops.table.rows.row_id_runs import RowIds
from lance_ops.table.rows.row_sequences import encode_row_id_range, encode_row_ids
from lance_ops.transactions import (
    NO_TABLE,
    Append,
    ApplyContext,
    CreateIndex,
    Delete,
    Overwrite,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Transaction,
    Update,
    UpdateMode,
    next_manifest,
)
from tests.table.samples import SCHEMA, data_file, fragment, index, manifest
from tests.transactions.applied import LATER, TABLE, after, coverage, ids, row_ids, stable, versions
from tests.transactions.samples import delete, new_fragment, replacement, rewrite, set_config, update, with_deletions


class TestEveryVersion:
    def test_a_version_records_writer_time_and_transaction(self) -> None:
        transaction = Transaction(4, set_config("k"), tag="t")

        made = next_manifest(TABLE, transaction, ApplyContext(), LATER)

        assert (made.version, made.timestamp_ns, made.tag) == (5, LATER, "t")
        assert made.writer_version == WRITER
        assert made.transaction_file == transaction.file_name

    @pytest.mark.parametrize(("seconds", "is_taken_over"), [(1, True), (3600, True), (3601, False), (-1, False)])
    def test_the_timestamp_never_decreases_unless_one_clock_is_wrong(self, seconds: int, is_taken_over: bool) -> None:
        now_ns = LATER - seconds * 10**9
        ahead = replace(TABLE, timestamp_ns=LATER)

        made = next_manifest(ahead, Transaction(4, set_config("k")), ApplyContext(), now_ns)

        assert made.timestamp_ns == (LATER if is_taken_over else now_ns)

    def test_the_flags_name_the_features_in_use(self) -> None:
        assert after(set_config("k")).writer_feature_flags == FeatureFlag.TABLE_CONFIG
        assert after(delete(0)).reader_feature_flags == FeatureFlag.DELETION_FILES
        assert after(rewrite(0, 1), after(delete(0))).reader_feature_flags == 0

    def test_unknown_parts_of_a_manifest_are_kept(self) -> None:
        made = after(Append((new_fragment("a"),)), replace(TABLE, unknown=b"\xc2\x3e\x03new"))

        assert made.unknown == b"\xc2\x3e\x03new"

    def test_only_some_operations_create_a_table(self) -> None:
        with pytest.raises(InvalidInput, match="Append needs a table"):
            after(Append((new_fragment("a"),)), NO_TABLE)


class TestAppend:
    def test_new_fragment_ids_follow_the_highest_ever_assigned(self) -> None:
        made = after(Append((new_fragment("a"), new_fragment("b"))), replace(TABLE, max_fragment_id=7))

        assert ids(made) == [0, 1, 2, 8, 9]
        assert made.max_fragment_id == 9

    def test_the_first_fragment_of_a_table_has_id_0(self) -> None:
        assert ids(after(Append((new_fragment("a"),)), manifest())) == [0]

    def test_indices_do_not_cover_the_new_rows(self) -> None:
        assert coverage(after(Append((new_fragment("a"),)))) == {"1": [0, 1]}

    def test_new_rows_get_the_next_row_ids_and_this_version(self) -> None:
        table = stable(next_row_id=100)

        made = after(Append((new_fragment("a", 3), new_fragment("b", 2))), table)

        assert [row_ids(each) for each in made.fragments] == [[100, 101, 102], [103, 104]]
        assert made.next_row_id == 105
        assert versions(made.fragments[0], "created_at") == versions(made.fragments[0], "last_updated_at") == [5] * 3


class TestDelete:
    def test_a_delete_changes_only_the_deletion_file(self) -> None:
        made = after(delete(1, dropped=(2,)))

        assert ids(made) == [0, 1]
        assert made.fragments[1] == replace(TABLE.fragments[1], deletion_file=with_deletions(1).deletion_file)
        assert made.max_fragment_id == 2

    def test_a_delete_keeps_files_that_changed_concurrently(self) -> None:
        changed = after(replacement(1))

        assert after(delete(1), changed).fragments[1].files == changed.fragments[1].files

    def test_a_missing_fragment_is_named(self) -> None:
        with pytest.raises(IncompatibleTransaction, match=r"Delete changes fragments \[9\]"):
            after(delete(9))

    def test_an_empty_segment_is_dropped_if_another_covers_fragments(self) -> None:
        table = replace(TABLE, indices=(index(1, covers=(0,)), index(2, covers=(1, 2))))

        assert coverage(after(delete(dropped=(0,)), table)) == {"2": [1, 2]}

    def test_the_oldest_of_empty_segments_stays_so_that_the_index_stays_declared(self) -> None:
        table = replace(TABLE, indices=(index(2, covers=(1,)), index(1, covers=(0,))))

        assert coverage(after(delete(dropped=(0, 1)), table)) == {"1": [0]}


class TestOverwrite:
    OTHER = Schema.from_arrow(pa.schema([("z", pa.int8())]), first_id=10)

    def test_an_overwrite_replaces_all_but_the_counters(self) -> None:
        table = replace(TABLE, config={"kept": "1", "set": "1"}, table_metadata={"t": "1"}, writer_feature_flags=8)
        new = replace(new_fragment("z"), files=(data_file("z", (10,)),))

        made = after(Overwrite((new,), self.OTHER, {"set": "2"}), table)

        assert ids(made) == [3]
        assert made.schema == self.OTHER
        assert made.indices == ()
        assert made.config == {"kept": "1", "set": "2"}
        assert made.table_metadata == {"t": "1"}

    def test_it_creates_version_1(self) -> None:
        made = after(Overwrite((new_fragment("a"),), SCHEMA), NO_TABLE)

        assert (made.version, ids(made), made.max_fragment_id) == (1, [0], 0)

    def test_the_file_version_comes_from_the_option_the_table_or_the_files(self) -> None:
        old = replace(new_fragment("a"), files=(replace(data_file("a"), file_minor_version=0),))

        assert after(Overwrite((old,), SCHEMA), NO_TABLE).data_format == DataFormat("2.0")
        assert after(Overwrite((), SCHEMA), NO_TABLE).data_format == DataFormat("2.2")
        assert (
            after(Overwrite((), SCHEMA), NO_TABLE, ApplyContext(data_storage_version="2.1")).data_format.version
            == "2.1"
        )
        assert (
            after(Overwrite((), SCHEMA), replace(manifest(), data_format=DataFormat("2.1"))).data_format.version
            == "2.1"
        )

    def test_stable_row_ids_are_set_at_creation_and_continue_to_count(self) -> None:
        first = after(Overwrite((new_fragment("a"),), SCHEMA), NO_TABLE, ApplyContext(stable_row_ids=True))
        second = after(Overwrite((new_fragment("b"),), SCHEMA), first)

        assert first.uses_stable_row_ids
        assert second.uses_stable_row_ids
        assert row_ids(second.fragments[0]) == list(range(10, 20))
        with pytest.raises(InvalidInput, match="when the table is created"):
            after(Overwrite((), SCHEMA), TABLE, ApplyContext(stable_row_ids=True))

    def test_an_empty_table_keeps_its_stable_row_ids(self) -> None:
        assert after(Overwrite((), SCHEMA), NO_TABLE, ApplyContext(stable_row_ids=True)).uses_stable_row_ids

    def test_only_a_creation_adds_bases(self) -> None:
        operation = Overwrite((), SCHEMA, initial_bases=(BasePath(1, "/b"),))

        assert after(operation, NO_TABLE).base_paths == (BasePath(1, "/b"),)
        with pytest.raises(InvalidInput, match="creation"):
            after(operation)


KINDS = ("/lance.table.BTreeIndexDetails", "/lance.index.pb.VectorIndexDetails")


class TestRewrite:
    def test_rewritten_fragments_stand_in_the_order_of_their_ids(self) -> None:
        made = after(rewrite(0, 1, new=7), replace(TABLE, indices=(), max_fragment_id=7))

        assert ids(made) == [2, 7]

    def test_fragments_without_reserved_ids_get_new_ones(self) -> None:
        assert ids(after(rewrite(0, 2), replace(TABLE, indices=()))) == [1, 3]

    def test_a_remapped_segment_replaces_the_old_one(self) -> None:
        remap = RewrittenIndex(UUID(int=1), UUID(int=9), IndexDetails("/lance.table.BTreeIndexDetails"), 0)
        table = replace(TABLE, indices=(index(1, covers=(0, 1)), index(2, "b_idx", covers=(2,))))

        made = after(replace(rewrite(0, 1), rewritten_indices=(remap,)), table)

        assert coverage(made) == {"9": [3], "2": [2]}
        assert made.indices[0].files == ()
        assert made.indices[0].name == "a_idx"

    def test_the_bitmap_of_a_segment_has_the_fragments_that_entries_of_deleted_rows_name(self) -> None:
        remaps = tuple(
            RewrittenIndex(UUID(int=n), UUID(int=n + 8), IndexDetails(url)) for n, url in enumerate(KINDS, 1)
        )
        kinds = [replace(index(n, f"i{n}", covers=(0, 1)), details=IndexDetails(url)) for n, url in enumerate(KINDS, 1)]
        elsewhere = replace(index(5, "i2", covers=(2,)), details=IndexDetails(KINDS[1]))
        groups = rewrite(0, 1, new=7).groups
        emptied = replace(new_fragment("emptied"), id=8, deletion_file=with_deletions(8, deleted=10).deletion_file)
        whole = replace(groups[0], old_fragments=(with_deletions(0), fragment(1)))
        operation = Rewrite((replace(whole, new_fragments=(*whole.new_fragments, emptied)),), remaps)

        made = after(operation, replace(TABLE, indices=(*kinds, elsewhere), max_fragment_id=8))

        assert ids(made) == [2, 7]
        assert coverage(made) == {"9": [7], "10": [0, 7, 8], "5": [2]}

    def test_so_it_has_if_all_fragments_of_a_group_were_dropped_meanwhile(self) -> None:
        vectors = replace(index(2, "i2", covers=(0, 1, 9)), details=IndexDetails(KINDS[1]))
        remap = RewrittenIndex(UUID(int=2), UUID(int=10), IndexDetails(KINDS[1]))
        emptied = replace(new_fragment("emptied"), id=8, deletion_file=with_deletions(8, deleted=10).deletion_file)
        dropped = RewriteGroup((fragment(9),), (emptied,))
        operation = Rewrite((*rewrite(0, 1, new=7).groups, dropped), (remap,))

        made = after(operation, replace(TABLE, indices=(vectors,), max_fragment_id=9))

        assert ids(made) == [2, 7]
        assert coverage(made) == {"10": [7, 8, 9]}

    def test_a_segment_that_was_not_remapped_covers_no_new_fragment(self) -> None:
        assert coverage(after(rewrite(0, 1))) == {"1": [0, 1]}

    def test_a_group_that_a_remapped_segment_covers_in_part_is_refused(self) -> None:
        remap = RewrittenIndex(UUID(int=1), UUID(int=9))

        with pytest.raises(InvalidInput, match="covers only some"):
            after(replace(rewrite(1, 2), rewritten_indices=(remap,)))

    def test_a_missing_segment_is_named(self) -> None:
        with pytest.raises(IncompatibleTransaction, match="no index segment"):
            after(replace(rewrite(0), rewritten_indices=(RewrittenIndex(UUID(int=8), UUID(int=9)),)))

    def test_a_fragment_in_two_groups_is_refused(self) -> None:
        twice = Rewrite((*rewrite(0).groups, *rewrite(0).groups))

        with pytest.raises(InvalidInput, match="two groups"):
            after(twice)

    @pytest.mark.parametrize(
        ("details", "index_version", "expected"),
        [
            ("BTreeIndexDetails", 0, [3]),
            ("BTreeIndexDetails", 1, []),
            ("BitmapIndexDetails", 0, [3]),
            ("VectorIndexDetails", 1, [3]),
            ("ZoneMapIndexDetails", 0, []),
            ("SomethingNewDetails", 0, []),
        ],
    )
    def test_a_segment_of_stable_row_ids_covers_the_rewritten_fragments(
        self, details: str, index_version: int, expected: list[int]
    ) -> None:
        kept = [fragment(number).with_sequences(row_ids=encode_row_id_range(10 * number, 10)) for number in range(3)]
        segment = replace(index(1, covers=(0, 1)), details=IndexDetails(f"/x.{details}"), index_version=index_version)
        table = replace(stable(*kept, next_row_id=30), indices=(segment,))
        new = new_fragment("n", 20).with_sequences(row_ids=encode_row_id_range(0, 20))

        made = after(Rewrite((RewriteGroup(tuple(kept[:2]), (new,)),)), table)

        assert coverage(made) == {"1": expected}


class TestCreateIndex:
    def test_a_new_segment_is_added_to_those_of_the_same_name(self) -> None:
        assert coverage(after(CreateIndex((index(2, covers=(2,)),)))) == {"1": [0, 1], "2": [2]}

    def test_segments_are_removed_by_their_id(self) -> None:
        assert coverage(after(CreateIndex((index(2, covers=(0, 1, 2)),), (index(1),)))) == {"2": [0, 1, 2]}
        assert coverage(after(CreateIndex((), (index(1),)))) == {}

    def test_a_fragment_covered_twice_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="covers fragments \\[1\\] twice"):
            after(CreateIndex((index(2, covers=(1,)),)))


class TestRestore:
    def test_a_restore_brings_back_all_but_the_counters(self) -> None:
        old = replace(manifest(fragment(0), version=1), config={"k": "old"}, writer_feature_flags=8)
        table = replace(TABLE, max_fragment_id=9, next_row_id=50)

        made = after(Restore(1), table, ApplyContext({1: old}))

        assert (made.version, ids(made), made.config) == (5, [0], {"k": "old"})
        assert (made.max_fragment_id, made.next_row_id) == (9, 50)
        assert made.indices == ()

    def test_a_version_without_stable_row_ids_is_not_restored(self) -> None:
        with pytest.raises(InvalidInput, match="stable row ids"):
            after(Restore(1), stable(next_row_id=0), ApplyContext({1: manifest()}))

    def test_a_version_that_needs_a_newer_writer_is_not_restored(self) -> None:
        with pytest.raises(UnsupportedFeature):
            after(Restore(1), TABLE, ApplyContext({1: replace(manifest(), writer_feature_flags=1 << 20)}))


def test_reserved_ids_are_not_assigned() -> None:
    assert after(ReserveFragments(3)).max_fragment_id == 5
    assert after(ReserveFragments(3), manifest()).max_fragment_id == 2


class TestUpdate:
    def test_rows_move_to_new_fragments(self) -> None:
        made = after(update(0, dropped=(2,)))

        assert ids(made) == [0, 1, 3]
        assert made.fragments[0].deletion_file == with_deletions(0).deletion_file
        assert coverage(made) == {"1": [0, 1]}

    def test_an_index_does_not_cover_columns_written_in_place(self) -> None:
        changed = replace(fragment(1), files=(data_file("u"),))
        operation = Update(updated_fragments=(changed,), fields_modified=(0,), update_mode=UpdateMode.REWRITE_COLUMNS)

        made = after(operation, after(delete(1)))

        assert made.fragments[1].files == changed.files
        assert made.fragments[1].deletion_file == with_deletions(1).deletion_file
        assert coverage(made) == {"1": [0]}

    def test_updated_rows_keep_their_row_ids_and_creation_versions(self) -> None:
        first = after(Append((new_fragment("a", 4),)), stable(next_row_id=100))
        moved = new_fragment("m", 3).with_sequences(row_ids=encode_row_ids(RowIds.of(np.array([102, 100], np.uint64))))
        operation = Update(
            updated_fragments=(replace(first.fragments[0], deletion_file=with_deletions(0).deletion_file),)
        )

        made = after(replace(operation, new_fragments=(moved,)), first)

        assert row_ids(made.fragments[1]) == [102, 100, 104]
        assert made.next_row_id == 105
        assert versions(made.fragments[1], "created_at") == [5, 5, 6]
        assert versions(made.fragments[1], "last_updated_at") == [6, 6, 6]

    def test_offsets_updated_in_place_get_this_update_version(self) -> None:
        first = after(Append((new_fragment("a", 4),)), stable(next_row_id=0))
        operation = Update(
            updated_fragments=(replace(first.fragments[0], files=(data_file("u"),)),),
            fields_modified=(0,),
            update_mode=UpdateMode.REWRITE_COLUMNS,
            updated_offsets={0: BitMap([1, 3])},
        )

        made = after(operation, first)

        assert versions(made.fragments[0], "last_updated_at") == [5, 6, 5, 6]
        assert versions(made.fragments[0], "created_at") == [5] * 4

    @pytest.mark.parametrize(("changed_field", "covered"), [(0, [0]), (2, [0, 1])])
    def test_a_segment_of_row_ids_covers_moved_unchanged_rows(self, changed_field: int, covered: list[int]) -> None:
        first = after(Append((new_fragment("a", 4),)), stable(next_row_id=0))
        bitmap_index = replace(index(1), details=IndexDetails("/x.BitmapIndexDetails"))
        first = replace(first, indices=(bitmap_index,))
        moved = new_fragment("m", 1).with_sequences(row_ids=encode_row_ids(RowIds.counting_from(2, 1)))
        operation = Update(
            updated_fragments=(replace(first.fragments[0], deletion_file=with_deletions(0).deletion_file),),
            new_fragments=(moved,),
            fields_for_preserving_frag_bitmap=(changed_field,),
        )

        assert coverage(after(operation, first)) == {"1": covered}


def test_an_index_without_a_bitmap_is_not_changed() -> None:
    unknown: IndexMetadata = replace(index(1), fragment_bitmap=None)

    made = after(Delete((), (0, 1)), replace(TABLE, indices=(unknown,)))

    assert made.indices == (unknown,)
