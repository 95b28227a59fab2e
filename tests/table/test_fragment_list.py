"""Fragments that are decoded when they are touched."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import hypothesis.strategies as st
import pytest
from hypothesis import given

from lance_ops.core.errors import CorruptFile, LanceOpsError, UnsafePath
from lance_ops.pb import table_pb2
from lance_ops.pb.manifest_parts_pb2 import ManifestParts
from lance_ops.table import Fragment, FragmentList, check_adds_no_violation, flags_for, violations, with_deletion_file
from tests.growth.instructions import count_instructions
from tests.table.samples import FRAGMENTS, fragment, manifest


def messages(fragments: Sequence[Fragment]) -> list[bytes]:
    return [one.to_pb().SerializeToString(deterministic=True) for one in fragments]


def untouched(*fragments: Fragment) -> FragmentList:
    """Return fragments as a manifest that was read has them."""
    return FragmentList.from_messages(messages(fragments), "m")


@given(st.lists(FRAGMENTS, max_size=4))
def test_a_decoded_list_equals_the_written_fragments(content: list[Fragment]) -> None:
    read = untouched(*content)

    assert read == FragmentList(content)
    assert list(read) == content
    assert read.ids == [one.id for one in content]
    assert read.num_rows == sum(one.num_rows for one in content)
    assert read.have_deletions == any(one.deletion_file for one in content)
    assert [read[at] for at in range(len(read))] == list(reversed(read))[::-1] == content
    assert read[1:] == tuple(content[1:])
    assert pickle.loads(pickle.dumps(read)) == read
    assert read != [*content, fragment(0)]


@given(FRAGMENTS, FRAGMENTS)
def test_a_fragment_with_another_deletion_file_keeps_everything_else(one: Fragment, other: Fragment) -> None:
    assert with_deletion_file(one, other.deletion_file) == replace(one, deletion_file=other.deletion_file)


@given(st.lists(FRAGMENTS, max_size=4))
def test_totals_are_sums_over_the_fragments(content: list[Fragment]) -> None:
    files = [file for one in content for file in one.files]
    deletions = [one.deletion_file for one in content if one.deletion_file]
    assert untouched(*content).totals() == FragmentList(content).totals() == (
        sum(one.physical_rows for one in content),
        len(files),
        sum(file.file_size_bytes for file in files),
        sum(deletion.num_deleted_rows for deletion in deletions),
        len(deletions),
    )  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=4), st.integers(0, 4))
def test_the_files_since_a_list_are_those_of_its_new_fragments(content: list[Fragment], num_before: int) -> None:
    before, after = untouched(*content[:num_before]), untouched(*content)
    new = after.changes_since(before).new
    deletions = [(one.deletion_file, one.id) for one in new if one.deletion_file]
    assert after.files_since(before) == FragmentList(content).files_since(FragmentList(content[:num_before])) == (
        [(file.base_id, file.path) for one in new for file in one.files],
        [(deletion.base_id, deletion.name(fragment_id)) for deletion, fragment_id in deletions],
        [(None, path) for one in new for path in one.sequence_paths()],
    )  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [
        table_pb2.DataFragment(files=[table_pb2.DataFile(path="../elsewhere")]),
        table_pb2.DataFragment(external_row_ids=table_pb2.ExternalFile(path="../elsewhere")),
        table_pb2.DataFragment(deletion_file=table_pb2.DeletionFile(file_type=7)),  # type: ignore[arg-type]
        table_pb2.DataFragment(physical_rows=(1 << 32) + 1),
    ],
    ids=["data file", "sequence", "deletion file", "rows"],
)
def test_reading_the_files_refuses_what_decoding_refuses(message: table_pb2.DataFragment) -> None:
    read = FragmentList.from_messages([message.SerializeToString()], "m")
    with pytest.raises(LanceOpsError) as expected:
        read[0]
    with pytest.raises(type(expected.value)) as found:
        read.files_since(FragmentList())
    assert str(found.value) == str(expected.value)


@given(st.lists(FRAGMENTS, max_size=4), st.integers(0, 9))
def test_rebased_files_without_a_base_get_the_base(content: list[Fragment], base_id: int) -> None:
    def seen(there: int | None) -> int:
        return base_id if there is None else there

    expected = []
    for one in content:
        files = tuple(replace(file, base_id=seen(file.base_id)) for file in one.files)
        gone = one.deletion_file and replace(one.deletion_file, base_id=seen(one.deletion_file.base_id))
        expected.append(replace(one, files=files, deletion_file=gone))
    assert untouched(*content).rebased_under(base_id) == expected
    with pytest.raises(CorruptFile, match="fragment"):
        FragmentList.from_messages([b"\xff"], "m").rebased_under(base_id)


def test_a_message_that_is_not_accessed_is_written_back_unchanged() -> None:
    swapped = b"\x20\x05" + table_pb2.DataFragment(id=3).SerializeToString()  # physical rows first
    read = FragmentList.from_messages([swapped, *messages([fragment(4)])], "m")
    assert read[0] == Fragment(3, (), physical_rows=5)

    made = read.with_changes({4: fragment(4, deleted=1)}, added=[fragment(9)])

    assert made.to_messages() == [swapped, *messages([fragment(4, deleted=1), fragment(9)])]
    assert read.to_messages() == [swapped, *messages([fragment(4)])]


def test_only_accessed_fragments_are_decoded() -> None:
    bad = fragment(1).to_pb()
    bad.files[0].path = "../secret"
    read = FragmentList.from_messages([*messages([fragment(0)]), bad.SerializeToString(deterministic=True)], "m")

    assert read[0] == fragment(0)
    assert read.ids == [0, 1]
    assert list(read.having({0})) == [fragment(0)]
    assert read.with_changes({}, removed=[1]) == [fragment(0)]
    with pytest.raises(UnsafePath):
        read[1]


def test_bytes_that_are_not_a_fragment_are_corrupt() -> None:
    read = FragmentList.from_messages([b"\x0a\xff"], "some/path")

    with pytest.raises(CorruptFile, match="some/path: fragment"):
        assert read.ids
    with pytest.raises(CorruptFile, match="some/path: fragment"):
        read[0]


def test_in_order_sorts_fragments_by_id() -> None:
    assert untouched(fragment(4), fragment(2), fragment(7)).in_order().ids == [2, 4, 7]


def test_ids_ascend_above_is_true_for_appended_fragments_only() -> None:
    before = untouched(*map(fragment, range(4)))

    assert before.with_added([fragment(4), fragment(8)]).changes_since(before).ids_ascend_above(3)
    assert before.changes_since(before).ids_ascend_above(3)
    assert not before.with_added([fragment(4)]).changes_since(before).ids_ascend_above(4)
    assert not before.with_added([fragment(8), fragment(4)]).changes_since(before).ids_ascend_above(3)
    assert not before.with_changes({0: fragment(0, deleted=1)}).changes_since(before).ids_ascend_above(3)
    assert not before.with_changes({}, removed=[3]).changes_since(before).ids_ascend_above(3)


def test_a_list_before_some_appends_is_compared_without_a_look_at_each_fragment() -> None:
    fragments = [fragment(number) for number in range(1000)]
    earlier, later = untouched(*fragments[:900]), untouched(*fragments)
    assert earlier.files_since(later) == ([], [], [])
    changes = earlier.changes_since(later)
    assert not changes.new and changes.some_are_gone and not changes.grew
    assert count_instructions(partial(earlier.files_since, later)) < 200


def test_an_extended_section_equals_one_framed_anew() -> None:
    before = untouched(*map(fragment, range(4)))
    assert before.section == FragmentList(before).section

    for after in (
        before.with_added([fragment(4), fragment(200)]),
        before.with_changes({2: fragment(2, deleted=1)}),
        before.as_read_from("n"),
        before.with_added([fragment(4)]).as_read_from("n").with_added([fragment(5)]),
    ):
        assert after.section == FragmentList(after).section
        assert after.section == ManifestParts(fragments=messages(after)).SerializeToString()


def test_changes_since_returns_new_and_changed_fragments() -> None:
    before = untouched(*map(fragment, range(4)))

    assert before.with_added([fragment(8)]).changes_since(before) == ([fragment(8)], False, True)
    assert before.with_changes({2: fragment(2, deleted=1)}).changes_since(before) == (
        [fragment(2, deleted=1)],
        True,
        False,
    )
    assert before.with_changes({}, removed=[0]).changes_since(before) == ([], True, False)
    assert untouched(*map(fragment, range(1, 4))).changes_since(before) == ([], True, False)


@pytest.mark.parametrize(
    ("deleted_before", "after", "flags"),
    [
        (1, lambda known: known.with_added([fragment(9)]), 1),
        (1, lambda known: known.with_changes({0: fragment(0)}), 0),
        (1, lambda known: known.with_changes({}, removed=[0]), 0),
        (0, lambda known: known.with_added([fragment(9, deleted=1)]), 1),
        (0, lambda known: known.with_added([fragment(9)]), 0),
    ],
)
def test_carried_over_fragments_keep_the_flags_of_the_previous_manifest(
    deleted_before: int, after: object, flags: int
) -> None:
    assert callable(after)
    plain = manifest(fragment(0, deleted=deleted_before), fragment(1))
    before = replace(plain, reader_feature_flags=flags_for(plain)[0], writer_feature_flags=flags_for(plain)[1])
    made = replace(before, fragments=after(before.fragments), max_fragment_id=9)

    assert flags_for(made, before) == flags_for(made) == (flags, flags)


def test_a_new_fragment_with_a_carried_over_file_or_id_is_a_violation() -> None:
    before = replace(manifest(), fragments=untouched(fragment(0), fragment(1)), max_fragment_id=9)
    twice = replace(fragment(2), files=fragment(1).files)

    for added, invariant in ((twice, "data file belongs"), (fragment(1), "fragment ids are unique")):
        after = replace(before, fragments=before.fragments.with_added([added]))
        assert violations(after)
        with pytest.raises(ValueError, match=invariant):
            check_adds_no_violation(before, after)
    check_adds_no_violation(before, replace(before, fragments=before.fragments.with_added([fragment(2)])))


def test_changes_are_found_once_and_do_not_keep_the_earlier_list_alive() -> None:
    before = FragmentList([fragment(1), fragment(2)])
    after = before.with_added([fragment(3)])
    changes = after.changes_since(before)
    assert after.changes_since(before) is changes
    assert after.changes_since(FragmentList([fragment(1), fragment(2)])) == changes
    assert after.changes_since(after).new == []
    held = weakref.ref(before)
    after.changes_since(before)
    del before
    gc.collect()
    assert held() is None
