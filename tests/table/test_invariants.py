"""Each invariant catches the manifest that breaks it, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_ops.core.errors import InvalidInput
from lance_ops.table import ALL_INVARIANTS, TOMBSTONED_FIELD, DataFormat, Manifest, check_adds_no_violation, violations
from tests.table.samples import SCHEMA, data_file, fragment, index, manifest

SOUND = manifest(fragment(0), fragment(4, deleted=2), indices=(index(1, covers=(0,)), index(2, covers=(4,))))


def with_files(*names: str, fields: tuple[int, ...] = (0,)) -> Manifest:
    return manifest(replace(fragment(0), files=tuple(data_file(name, fields) for name in names)))


BROKEN = {
    "field_ids_are_unique": replace(
        SOUND, schema=replace(SCHEMA, fields=(*SCHEMA.fields, replace(SCHEMA.fields[0], name="b")))
    ),
    "fragment_ids_are_unique": manifest(fragment(0), replace(fragment(0), files=())),
    "max_fragment_id_bounds_every_fragment": replace(SOUND, max_fragment_id=3),
    "a_data_file_belongs_to_one_fragment": manifest(fragment(0), replace(fragment(0), id=1)),
    "a_field_lies_in_one_file_of_a_fragment": with_files("f", "g"),
    "column_indices_match_fields": manifest(
        replace(fragment(0), files=(replace(data_file("f"), column_indices=(0, 0, 1)),))
    ),
    "fewer_rows_are_deleted_than_there_are": manifest(fragment(0, rows=2, deleted=3)),
    "stable_row_ids_are_on_every_fragment": replace(
        manifest(fragment(0)), reader_feature_flags=2, writer_feature_flags=2
    ),
    "files_have_the_tables_version": replace(
        manifest(fragment(0)), data_format=DataFormat("2.0"), reader_feature_flags=0
    ),
    "base_ids_are_declared": manifest(replace(fragment(0), files=(replace(data_file("f"), base_id=1),))),
    "index_ids_are_unique": manifest(fragment(0), indices=(index(1, "x"), index(1, "y"))),
    "indexed_fields_exist": manifest(fragment(0), indices=(index(1, fields=(9,)),)),
    "a_fragment_is_in_one_segment_of_an_index": manifest(fragment(0), indices=(index(1), index(2))),
    "flags_cover_every_feature_in_use": replace(SOUND, reader_feature_flags=0),
}

OF_NEXT_MANIFEST = {"max_fragment_id_bounds_every_fragment", "flags_cover_every_feature_in_use"}
"""Invariants that hold for carried-over fragments because a commit never lowers the id and computes the flags."""


def test_a_sound_manifest_has_no_violations() -> None:
    assert violations(SOUND) == []


def test_every_invariant_has_a_broken_example() -> None:
    assert sorted(check.__name__ for check in ALL_INVARIANTS) == sorted(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_the_broken_invariant_is_named(name: str) -> None:
    broken = {violation.invariant for violation in violations(BROKEN[name])}

    # A file of another version also lacks the flag that would allow it.
    assert broken - {"flags_cover_every_feature_in_use"} <= {name}
    assert name in broken


def test_a_tombstoned_field_may_be_in_another_file() -> None:
    files = (data_file("f", (0, TOMBSTONED_FIELD, TOMBSTONED_FIELD)), data_file("g", (2, 3)))

    assert violations(manifest(replace(fragment(0), files=files))) == []


def test_a_commit_may_keep_old_violations_and_must_not_add_one() -> None:
    flawed = BROKEN["index_ids_are_unique"]
    check_adds_no_violation(flawed, replace(flawed, version=2))

    with pytest.raises(InvalidInput, match="version 2 would break invariants: indexed fields exist"):
        check_adds_no_violation(flawed, replace(BROKEN["indexed_fields_exist"], version=2))
    with pytest.raises(InvalidInput, match="index ids are unique"):
        check_adds_no_violation(None, flawed)


@pytest.mark.parametrize("name", sorted(BROKEN.keys() - OF_NEXT_MANIFEST))
def test_a_commit_that_breaks_an_invariant_is_refused_with_carried_over_fragments(name: str) -> None:
    with pytest.raises(InvalidInput, match=name.replace("_", " ")):
        check_adds_no_violation(SOUND, replace(BROKEN[name], version=2))


def test_a_new_fragment_that_two_segments_already_cover_is_a_violation() -> None:
    before = manifest(fragment(0), indices=(index(1, covers=(0, 1)), index(2, covers=(1,))))
    after = replace(before, version=2, fragments=before.fragments.with_added([fragment(1)]), max_fragment_id=1)

    with pytest.raises(InvalidInput, match=r"in one segment of an index: .* \[1\] twice"):
        check_adds_no_violation(before, after)
