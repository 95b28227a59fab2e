"""What each operation makes of a manifest."""

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
    TOMBSTONED,
    WRITER,
    BasePath,
    DataFormat,
    FeatureFlag,
    Fragment,
    IndexDetails,
    IndexMetadata,
    Manifest,
    check_adds_no_violation,
    violations,
)
from lance_ops.table.row_ids import decode_row_ids, decode_versions, encode_row_id_range, encode_row_ids
from lance_ops.table.row_runs import RowIds
from lance_ops.transactions import (
    NO_TABLE,
    Append,
    Context,
    CreateIndex,
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
    Transaction,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
    UpdateMode,
    next_manifest,
)
from tests.table.samples import SCHEMA, data_file, fragment, index, manifest
from tests.transactions.samples import delete, new_fragment, replacement, rewrite, set_config, thinned, update

TABLE = manifest(fragment(0), fragment(1), fragment(2), version=4, indices=(index(1, covers=(0, 1)),))
LATER = (TABLE.timestamp_ns or 0) + 1_000_000


def after(operation: Operation, table: Manifest = TABLE, context: Context | None = None) -> Manifest:
    """Return the version after `table`, which must be sound."""
    made = next_manifest(table, Transaction(table.version, operation), context or Context(), LATER)
    check_adds_no_violation(table if table.version else None, made)
    assert violations(made) == []
    return made


def ids(table: Manifest) -> list[int]:
    return [each.id for each in table.fragments]


def coverage(table: Manifest) -> dict[str, list[int]]:
    return {str(each.uuid.int): list(each.fragment_bitmap or ()) for each in table.indices}


def stable(*fragments: Fragment, next_row_id: int) -> Manifest:
    """Return a table of stable row ids."""
    both = FeatureFlag.STABLE_ROW_IDS
    return replace(
        manifest(*fragments, version=4),
        reader_feature_flags=int(both),
        writer_feature_flags=int(both),
        next_row_id=next_row_id,
    )


def row_ids(each: Fragment) -> list[int]:
    assert isinstance(each.row_ids, bytes)
    return [int(row_id) for row_id in decode_row_ids(each.row_ids, each.physical_rows, "f").expand()[0]]


def versions(each: Fragment, which: str) -> list[int]:
    data = getattr(each, f"{which}_versions")
    assert isinstance(data, bytes)
    return [int(version) for version in decode_versions(data, each.physical_rows, "f").expand()]


class TestEveryVersion:
    def test_it_says_who_made_it_when_and_by_what(self) -> None:
        transaction = Transaction(4, set_config("k"), tag="t")

        made = next_manifest(TABLE, transaction, Context(), LATER)

        assert (made.version, made.timestamp_ns, made.tag) == (5, LATER, "t")
        assert made.writer_version == WRITER
        assert made.transaction_file == transaction.file_name

    def test_its_time_never_goes_back(self) -> None:
        made = next_manifest(TABLE, Transaction(4, set_config("k")), Context(), 5)

        assert made.timestamp_ns == TABLE.timestamp_ns

    def test_its_flags_say_what_is_there(self) -> None:
        assert after(set_config("k")).writer_feature_flags == FeatureFlag.TABLE_CONFIG
        assert after(delete(0)).reader_feature_flags == FeatureFlag.DELETION_FILES
        assert after(rewrite(0, 1), after(delete(0))).reader_feature_flags == 0

    def test_what_a_newer_writer_left_stays(self) -> None:
        made = after(Append((new_fragment("a"),)), replace(TABLE, unknown=b"\xc2\x3e\x03new"))

        assert made.unknown == b"\xc2\x3e\x03new"

    def test_there_must_be_a_table(self) -> None:
        with pytest.raises(InvalidInput, match="Append needs a table"):
            after(Append((new_fragment("a"),)), NO_TABLE)


class TestAppend:
    def test_fragments_are_numbered_after_the_highest_ever_given(self) -> None:
        made = after(Append((new_fragment("a"), new_fragment("b"))), replace(TABLE, max_fragment_id=7))

        assert ids(made) == [0, 1, 2, 8, 9]
        assert made.max_fragment_id == 9

    def test_the_first_fragment_of_all_is_0(self) -> None:
        assert ids(after(Append((new_fragment("a"),)), manifest())) == [0]

    def test_indices_do_not_cover_the_new_rows(self) -> None:
        assert coverage(after(Append((new_fragment("a"),)))) == {"1": [0, 1]}

    def test_stable_rows_get_the_next_ids_and_this_version(self) -> None:
        table = stable(next_row_id=100)

        made = after(Append((new_fragment("a", 3), new_fragment("b", 2))), table)

        assert [row_ids(each) for each in made.fragments] == [[100, 101, 102], [103, 104]]
        assert made.next_row_id == 105
        assert versions(made.fragments[0], "created_at") == versions(made.fragments[0], "last_updated_at") == [5] * 3


class TestDelete:
    def test_only_the_deletion_file_is_taken_over(self) -> None:
        made = after(delete(1, dropped=(2,)))

        assert ids(made) == [0, 1]
        assert made.fragments[1] == replace(TABLE.fragments[1], deletion_file=thinned(1).deletion_file)
        assert made.max_fragment_id == 2

    def test_files_that_changed_meanwhile_stay_changed(self) -> None:
        changed = after(replacement(1))

        assert after(delete(1), changed).fragments[1].files == changed.fragments[1].files

    def test_a_fragment_that_is_gone_is_named(self) -> None:
        with pytest.raises(IncompatibleTransaction, match=r"Delete is about fragments \[9\]"):
            after(delete(9))

    def test_a_segment_left_without_fragments_goes_when_another_has_some(self) -> None:
        table = replace(TABLE, indices=(index(1, covers=(0,)), index(2, covers=(1, 2))))

        assert coverage(after(delete(dropped=(0,)), table)) == {"2": [1, 2]}

    def test_the_oldest_of_empty_segments_stays_so_that_the_index_stays_declared(self) -> None:
        table = replace(TABLE, indices=(index(2, covers=(1,)), index(1, covers=(0,))))

        assert coverage(after(delete(dropped=(0, 1)), table)) == {"1": [0]}


class TestOverwrite:
    OTHER = Schema.from_arrow(pa.schema([("z", pa.int8())]), first_id=10)

    def test_rows_schema_and_indices_are_replaced_and_counting_goes_on(self) -> None:
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

    def test_the_file_version_is_the_files_or_the_tables_or_the_one_asked_for(self) -> None:
        old = replace(new_fragment("a"), files=(replace(data_file("a"), file_minor_version=0),))

        assert after(Overwrite((old,), SCHEMA), NO_TABLE).data_format == DataFormat("2.0")
        assert after(Overwrite((), SCHEMA), NO_TABLE).data_format == DataFormat("2.2")
        assert after(Overwrite((), SCHEMA), NO_TABLE, Context(data_storage_version="2.1")).data_format.version == "2.1"
        assert (
            after(Overwrite((), SCHEMA), replace(manifest(), data_format=DataFormat("2.1"))).data_format.version
            == "2.1"
        )

    def test_stable_row_ids_are_chosen_at_creation_and_go_on_counting(self) -> None:
        first = after(Overwrite((new_fragment("a"),), SCHEMA), NO_TABLE, Context(stable_row_ids=True))
        second = after(Overwrite((new_fragment("b"),), SCHEMA), first)

        assert first.uses_stable_row_ids
        assert second.uses_stable_row_ids
        assert row_ids(second.fragments[0]) == list(range(10, 20))
        with pytest.raises(InvalidInput, match="when the table is created"):
            after(Overwrite((), SCHEMA), TABLE, Context(stable_row_ids=True))

    def test_an_empty_table_keeps_its_stable_row_ids(self) -> None:
        assert after(Overwrite((), SCHEMA), NO_TABLE, Context(stable_row_ids=True)).uses_stable_row_ids

    def test_bases_belong_to_the_creation(self) -> None:
        operation = Overwrite((), SCHEMA, initial_bases=(BasePath(1, "/b"),))

        assert after(operation, NO_TABLE).base_paths == (BasePath(1, "/b"),)
        with pytest.raises(InvalidInput, match="creation"):
            after(operation)


class TestRewrite:
    def test_fragments_are_exchanged_in_the_order_of_their_ids(self) -> None:
        made = after(rewrite(0, 1, new=7), replace(TABLE, indices=(), max_fragment_id=7))

        assert ids(made) == [2, 7]

    def test_ids_that_were_not_reserved_are_given(self) -> None:
        assert ids(after(rewrite(0, 2), replace(TABLE, indices=()))) == [1, 3]

    def test_a_remapped_segment_takes_the_place_of_the_old(self) -> None:
        remap = RewrittenIndex(UUID(int=1), UUID(int=9), IndexDetails("/lance.table.BTreeIndexDetails"), 0)
        table = replace(TABLE, indices=(index(1, covers=(0, 1)), index(2, "b_idx", covers=(2,))))

        made = after(replace(rewrite(0, 1), rewritten_indices=(remap,)), table)

        assert coverage(made) == {"9": [3], "2": [2]}
        assert made.indices[0].files == ()
        assert made.indices[0].name == "a_idx"

    def test_a_segment_that_was_not_remapped_covers_nothing_new(self) -> None:
        assert coverage(after(rewrite(0, 1))) == {"1": [0, 1]}

    def test_a_group_that_a_remapped_segment_covers_in_part_is_refused(self) -> None:
        remap = RewrittenIndex(UUID(int=1), UUID(int=9))

        with pytest.raises(InvalidInput, match="in part"):
            after(replace(rewrite(1, 2), rewritten_indices=(remap,)))

    def test_a_segment_that_is_gone_is_named(self) -> None:
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
    def test_a_segment_of_stable_ids_follows_its_rows(
        self, details: str, index_version: int, expected: list[int]
    ) -> None:
        kept = [replace(fragment(number), row_ids=encode_row_id_range(10 * number, 10)) for number in range(3)]
        segment = replace(index(1, covers=(0, 1)), details=IndexDetails(f"/x.{details}"), index_version=index_version)
        table = replace(stable(*kept, next_row_id=30), indices=(segment,))
        new = replace(new_fragment("n", 20), row_ids=encode_row_id_range(0, 20))

        made = after(Rewrite((RewriteGroup(tuple(kept[:2]), (new,)),)), table)

        assert coverage(made) == {"1": expected}


class TestCreateIndex:
    def test_a_segment_stands_beside_those_of_the_same_name(self) -> None:
        assert coverage(after(CreateIndex((index(2, covers=(2,)),)))) == {"1": [0, 1], "2": [2]}

    def test_removed_segments_go_by_their_id(self) -> None:
        assert coverage(after(CreateIndex((index(2, covers=(0, 1, 2)),), (index(1),)))) == {"2": [0, 1, 2]}
        assert coverage(after(CreateIndex((), (index(1),)))) == {}

    def test_a_fragment_covered_twice_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="covers fragments \\[1\\] twice"):
            after(CreateIndex((index(2, covers=(1,)),)))


class TestRestore:
    def test_all_comes_back_but_the_counters(self) -> None:
        old = replace(manifest(fragment(0), version=1), config={"k": "old"}, writer_feature_flags=8)
        table = replace(TABLE, max_fragment_id=9, next_row_id=50)

        made = after(Restore(1), table, Context({1: old}))

        assert (made.version, ids(made), made.config) == (5, [0], {"k": "old"})
        assert (made.max_fragment_id, made.next_row_id) == (9, 50)
        assert made.indices == ()

    def test_a_version_without_stable_ids_does_not_come_back(self) -> None:
        with pytest.raises(InvalidInput, match="stable row ids"):
            after(Restore(1), stable(next_row_id=0), Context({1: manifest()}))

    def test_a_version_that_needs_a_newer_writer_does_not_come_back(self) -> None:
        with pytest.raises(UnsupportedFeature):
            after(Restore(1), TABLE, Context({1: replace(manifest(), writer_feature_flags=1 << 20)}))


def test_reserved_ids_are_never_given_to_others() -> None:
    assert after(ReserveFragments(3)).max_fragment_id == 5
    assert after(ReserveFragments(3), manifest()).max_fragment_id == 2


class TestUpdateConfig:
    def test_each_map_is_updated(self) -> None:
        table = replace(TABLE, config={"a": "1", "b": "1"}, table_metadata={"t": "1"}, writer_feature_flags=8)
        made = after(
            UpdateConfig(
                UpdateMap({"a": None, "c": "2"}),
                UpdateMap({"u": "2"}, replace=True),
                UpdateMap({"s": "2"}),
                {3: UpdateMap({"unit": "m"})},
            ),
            table,
        )

        assert made.config == {"b": "1", "c": "2"}
        assert made.table_metadata == {"u": "2"}
        assert made.schema.metadata == {"s": "2"}
        assert made.schema.field("s.y").metadata == {"unit": "m"}
        assert made.schema.field("a").metadata == {}

    def test_a_primary_key_is_more_than_metadata(self) -> None:
        key = "lance-schema:unenforced-primary-key"

        made = after(UpdateConfig(field_metadata_updates={0: UpdateMap({key: "true"})}))
        assert made.schema.field("a").unenforced_primary_key

        made = after(UpdateConfig(field_metadata_updates={0: UpdateMap({key: None})}), made)
        assert not made.schema.field("a").unenforced_primary_key

    def test_a_field_that_is_gone_is_named(self) -> None:
        with pytest.raises(IncompatibleTransaction, match="field 77"):
            after(UpdateConfig(field_metadata_updates={77: UpdateMap({})}))


class TestProject:
    def test_files_and_indices_of_dropped_columns_leave(self) -> None:
        two_files = replace(fragment(0), files=(data_file("f", (0,)), data_file("g", (2, 3))))
        table = replace(manifest(two_files), indices=(index(1), index(2, "s_idx", fields=(2,))))

        made = after(Project(Schema(SCHEMA.fields[1:]), True), table)

        assert [file.path for file in made.fragments[0].files] == ["g.lance"]
        assert coverage(made) == {"2": [0]}

    def test_the_schemas_metadata_stays(self) -> None:
        table = replace(TABLE, schema=replace(SCHEMA, metadata={"kept": "1"}))

        assert after(Project(Schema(SCHEMA.fields[:1]), True), table).schema.metadata == {"kept": "1"}


class TestMerge:
    def test_a_column_in_another_file_is_not_indexed_any_more(self) -> None:
        moved = replace(fragment(0), files=(data_file("f0", (TOMBSTONED, 2, 3)), data_file("new", (0,))))

        made = after(Merge((moved, fragment(1), fragment(2)), SCHEMA, True))

        assert coverage(made) == {"1": [1]}

    def test_no_fragment_comes_or_goes(self) -> None:
        with pytest.raises(InvalidInput, match="every fragment"):
            after(Merge((fragment(0),), SCHEMA, True))

    def test_a_file_without_a_live_field_leaves(self) -> None:
        dead = replace(fragment(0), files=(data_file("f0", (TOMBSTONED,) * 3), data_file("new", (0, 2, 3))))

        made = after(Merge((dead,), SCHEMA, True), manifest(fragment(0)))

        assert [file.path for file in made.fragments[0].files] == ["new.lance"]


class TestDataReplacement:
    def test_the_file_of_the_same_fields_is_exchanged(self) -> None:
        made = after(replacement(1))

        assert [each.files[0].path for each in made.fragments] == ["f0.lance", "r1.lance", "f2.lance"]
        assert coverage(made) == {"1": [0]}

    def test_stable_rows_count_as_changed_where_values_were_exchanged(self) -> None:
        first = after(Append((new_fragment("a", 4), new_fragment("b", 4))), stable(next_row_id=0))
        _, second = first.fragments

        made = after(replacement(second.id, second.files[0].fields), first)

        assert [versions(each, "last_updated_at") for each in made.fragments] == [[5] * 4, [6] * 4]
        assert [versions(each, "created_at") for each in made.fragments] == [[5] * 4, [5] * 4]

    def test_a_column_that_was_null_gets_a_file(self) -> None:
        table = manifest(replace(fragment(0), files=(data_file("f", (0,)),)))

        made = after(replacement(0, (2, 3)), table)

        assert [file.path for file in made.fragments[0].files] == ["f.lance", "r0.lance"]

    def test_fields_in_a_file_with_others_cannot_be_replaced(self) -> None:
        with pytest.raises(IncompatibleTransaction, match="in no file of just these"):
            after(replacement(0, (0,)))

    def test_all_files_hold_the_same_fields(self) -> None:
        groups = (DataReplacementGroup(0, data_file("x", (0,))), DataReplacementGroup(1, data_file("y", (2,))))

        with pytest.raises(InvalidInput, match="same fields"):
            after(DataReplacement(groups))


class TestUpdate:
    def test_rows_move_to_new_fragments(self) -> None:
        made = after(update(0, dropped=(2,)))

        assert ids(made) == [0, 1, 3]
        assert made.fragments[0].deletion_file == thinned(0).deletion_file
        assert coverage(made) == {"1": [0, 1]}

    def test_columns_written_in_place_are_not_indexed_any_more(self) -> None:
        changed = replace(fragment(1), files=(data_file("u"),))
        operation = Update(updated_fragments=(changed,), fields_modified=(0,), update_mode=UpdateMode.REWRITE_COLUMNS)

        made = after(operation, after(delete(1)))

        assert made.fragments[1].files == changed.files
        assert made.fragments[1].deletion_file == thinned(1).deletion_file
        assert coverage(made) == {"1": [0]}

    def test_stable_rows_keep_their_ids_and_when_they_came(self) -> None:
        first = after(Append((new_fragment("a", 4),)), stable(next_row_id=100))
        moved = replace(new_fragment("m", 3), row_ids=encode_row_ids(RowIds.of(np.array([102, 100], np.uint64))))
        operation = Update(updated_fragments=(replace(first.fragments[0], deletion_file=thinned(0).deletion_file),))

        made = after(replace(operation, new_fragments=(moved,)), first)

        assert row_ids(made.fragments[1]) == [102, 100, 104]
        assert made.next_row_id == 105
        assert versions(made.fragments[1], "created_at") == [5, 5, 6]
        assert versions(made.fragments[1], "last_updated_at") == [6, 6, 6]

    def test_offsets_updated_in_place_changed_now(self) -> None:
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
    def test_a_segment_of_row_ids_follows_rows_whose_value_stayed(self, changed_field: int, covered: list[int]) -> None:
        first = after(Append((new_fragment("a", 4),)), stable(next_row_id=0))
        bitmap_index = replace(index(1), details=IndexDetails("/x.BitmapIndexDetails"))
        first = replace(first, indices=(bitmap_index,))
        moved = replace(new_fragment("m", 1), row_ids=encode_row_ids(RowIds.counting_from(2, 1)))
        operation = Update(
            updated_fragments=(replace(first.fragments[0], deletion_file=thinned(0).deletion_file),),
            new_fragments=(moved,),
            fields_for_preserving_frag_bitmap=(changed_field,),
        )

        assert coverage(after(operation, first)) == {"1": covered}


def test_bases_get_the_next_id() -> None:
    made = after(UpdateBases((BasePath(0, "/x"), BasePath(0, "/y"))))

    assert [(base.id, base.path) for base in made.base_paths] == [(1, "/x"), (2, "/y")]
    with pytest.raises(InvalidInput, match="must differ"):
        after(UpdateBases((BasePath(0, "/x"),)), made)


def test_an_index_without_a_bitmap_is_left_alone() -> None:
    unknown: IndexMetadata = replace(index(1), fragment_bitmap=None)

    made = after(Delete((), (0, 1)), replace(TABLE, indices=(unknown,)))

    assert made.indices == (unknown,)
