"""How each operation on columns, metadata and base paths changes a manifest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_ops.core.errors import IncompatibleTransaction, InvalidInput
from lance_ops.core.schema import Schema
from lance_ops.table import TOMBSTONED_FIELD, BasePath
from lance_ops.transactions import (
    Append,
    DataReplacement,
    DataReplacementGroup,
    Merge,
    Project,
    UpdateBases,
    UpdateConfig,
    UpdateMap,
)
from tests.table.samples import SCHEMA, data_file, fragment, index, manifest
from tests.transactions.applied import TABLE, after, coverage, stable, versions
from tests.transactions.samples import new_fragment, replacement


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

    def test_field_metadata_sets_the_primary_key(self) -> None:
        key = "lance-schema:unenforced-primary-key"

        made = after(UpdateConfig(field_metadata_updates={0: UpdateMap({key: "true"})}))
        assert made.schema.field("a").unenforced_primary_key

        made = after(UpdateConfig(field_metadata_updates={0: UpdateMap({key: None})}), made)
        assert not made.schema.field("a").unenforced_primary_key

    def test_a_missing_field_is_named(self) -> None:
        with pytest.raises(IncompatibleTransaction, match="field 77"):
            after(UpdateConfig(field_metadata_updates={77: UpdateMap({})}))


class TestProject:
    def test_files_and_indices_of_dropped_columns_are_dropped(self) -> None:
        two_files = replace(fragment(0), files=(data_file("f", (0,)), data_file("g", (2, 3))))
        table = replace(manifest(two_files), indices=(index(1), index(2, "s_idx", fields=(2,))))

        made = after(Project(Schema(SCHEMA.fields[1:]), True), table)

        assert [file.path for file in made.fragments[0].files] == ["g.lance"]
        assert coverage(made) == {"2": [0]}

    def test_a_project_keeps_the_metadata_of_the_schema(self) -> None:
        table = replace(TABLE, schema=replace(SCHEMA, metadata={"kept": "1"}))

        assert after(Project(Schema(SCHEMA.fields[:1]), True), table).schema.metadata == {"kept": "1"}


class TestMerge:
    def test_an_index_does_not_cover_a_column_moved_to_another_file(self) -> None:
        moved = replace(fragment(0), files=(data_file("f0", (TOMBSTONED_FIELD, 2, 3)), data_file("new", (0,))))

        made = after(Merge((moved, fragment(1), fragment(2)), SCHEMA, True))

        assert coverage(made) == {"1": [1]}

    def test_a_merge_that_adds_or_drops_a_fragment_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="every fragment"):
            after(Merge((fragment(0),), SCHEMA, True))

    def test_a_file_without_a_live_field_is_dropped(self) -> None:
        dead = replace(fragment(0), files=(data_file("f0", (TOMBSTONED_FIELD,) * 3), data_file("new", (0, 2, 3))))

        made = after(Merge((dead,), SCHEMA, True), manifest(fragment(0)))

        assert [file.path for file in made.fragments[0].files] == ["new.lance"]


class TestDataReplacement:
    def test_the_file_of_the_same_fields_is_replaced(self) -> None:
        made = after(replacement(1))

        assert [each.files[0].path for each in made.fragments] == ["f0.lance", "r1.lance", "f2.lance"]
        assert coverage(made) == {"1": [0]}

    def test_rows_with_replaced_values_get_this_update_version(self) -> None:
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
        with pytest.raises(IncompatibleTransaction, match="no file of exactly the fields"):
            after(replacement(0, (0,)))

    def test_files_of_different_fields_are_refused(self) -> None:
        groups = (DataReplacementGroup(0, data_file("x", (0,))), DataReplacementGroup(1, data_file("y", (2,))))

        with pytest.raises(InvalidInput, match="same fields"):
            after(DataReplacement(groups))


def test_a_base_without_an_id_gets_the_next_one() -> None:
    made = after(UpdateBases((BasePath(0, "/x"), BasePath(0, "/y"))))

    assert [(base.id, base.path) for base in made.base_paths] == [(1, "/x"), (2, "/y")]
    with pytest.raises(InvalidInput, match="must differ"):
        after(UpdateBases((BasePath(0, "/x"),)), made)
