"""Writers of different columns of one fragment: what each wrote is in the table, in whichever form it says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_ops.core.errors import IncompatibleTransaction, RetryableConflict
from lance_ops.table import Fragment, with_tombstones
from lance_ops.transactions import (
    ApplyContext,
    CreateIndex,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    Overwrite,
    Project,
    Transaction,
    Update,
    UpdateMode,
    commit,
    read_version,
)
from tests.table.samples import SCHEMA, data_file, index
from tests.transactions.samples import rewrite
from tests.transactions.tables import Table


@pytest.fixture
def table() -> Table:
    """Two fragments, each with a file of the fields 0 and 2 and a file of the field 3."""
    table = Table(fragments=0)
    fragments = tuple(
        Fragment(0, (data_file(f"base{number}", (0, 2)), data_file(f"y{number}", (3,))), 10) for number in range(2)
    )
    commit(table.committer, table.store, Transaction(0, Overwrite(fragments, SCHEMA)))
    return table


def written(table: Table, name: str, *field_ids: int, says_fields: bool = True) -> Update:
    """Return an update of fragment 0, planned on the newest version, that writes these fields to a file."""
    planned = table.newest.fragments[0]
    old = (with_tombstones(file, field_ids) for file in planned.files)
    files = (*(file for file in old if file.live_fields), data_file(name, field_ids))
    return Update(
        updated_fragments=(replace(planned, files=files),),
        fields_modified=field_ids if says_fields else (),
        update_mode=UpdateMode.REWRITE_COLUMNS,
    )


def replaced(name: str, *field_ids: int) -> DataReplacement:
    return DataReplacement((DataReplacementGroup(0, data_file(name, field_ids)),))


def files(table: Table, fragment_id: int = 0) -> dict[str, tuple[int, ...]]:
    """Return the live fields of each file of a fragment."""
    fragment = table.newest.fragment(fragment_id)
    assert fragment is not None
    return {file.path.removesuffix(".lance"): file.live_fields for file in fragment.files}


@pytest.mark.parametrize("ours_says", [True, False])
@pytest.mark.parametrize("theirs_says", [True, False])
def test_columns_that_two_writers_wrote_in_place_are_both_kept(
    table: Table, ours_says: bool, theirs_says: bool
) -> None:
    ours = written(table, "ours", 0, says_fields=ours_says)
    theirs = [written(table, "first", 2, says_fields=theirs_says), written(table, "second", 3)]
    for each in theirs:
        table.commit(each, read_version=1)

    made = table.commit(ours, read_version=1)

    assert files(table) == {"first": (2,), "second": (3,), "ours": (0,)}
    assert files(table, 1) == {"base1": (0, 2), "y1": (3,)}
    assert read_version(table.store, table.committer, made.version).transaction == made.transaction


@pytest.mark.parametrize("ours_says", [True, False])
def test_a_replaced_file_does_not_come_back(table: Table, ours_says: bool) -> None:
    ours = written(table, "ours", 0, says_fields=ours_says)
    table.commit(replaced("mended", 3))

    table.commit(ours, read_version=1)

    assert files(table) == {"base0": (2,), "mended": (3,), "ours": (0,)}


def test_a_replacement_keeps_the_column_that_was_written_in_place(table: Table) -> None:
    table.commit(written(table, "theirs", 2))

    table.commit(replaced("ours", 3), read_version=1)

    assert files(table) == {"base0": (0,), "theirs": (2,), "ours": (3,)}


@pytest.mark.parametrize("ours_says", [True, False])
@pytest.mark.parametrize("theirs_says", [True, False])
def test_one_column_that_two_writers_wrote_in_place_is_a_conflict(
    table: Table, ours_says: bool, theirs_says: bool
) -> None:
    ours = written(table, "ours", 0, 3, says_fields=ours_says)
    table.commit(written(table, "theirs", 2, 3, says_fields=theirs_says))
    before = table.files("")

    with pytest.raises(RetryableConflict, match="the same field of fragment 0 got new values"):
        table.commit(ours, read_version=1)

    assert files(table) == {"base0": (0,), "theirs": (2, 3)}
    assert table.files("") == before


def test_a_replacement_beside_a_writer_that_does_not_say_which_fields_it_wrote_is_a_conflict(table: Table) -> None:
    table.commit(written(table, "theirs", 3, says_fields=False))

    with pytest.raises(RetryableConflict, match="does not say which"):
        table.commit(replaced("ours", 3), read_version=1)


def test_rows_deleted_beside_two_writers_of_columns_stay_deleted(table: Table) -> None:
    ours, theirs = written(table, "ours", 0), written(table, "theirs", 2)
    table.commit(table.delete({0: [4]}, 1), read_version=1)
    table.commit(theirs, read_version=1)

    made = table.commit(ours, read_version=1)

    assert list(table.deleted(made.manifest, 0)) == [4]
    assert files(table) == {"theirs": (2,), "y0": (3,), "ours": (0,)}


def test_a_column_dropped_beside_two_writers_of_columns_stays_dropped(table: Table) -> None:
    ours, theirs = written(table, "ours", 0), written(table, "theirs", 2)
    without_y = SCHEMA.project(["a", "s.x"])
    table.commit(Project(without_y, True), read_version=1)
    table.commit(theirs, read_version=1)

    made = table.commit(ours, read_version=1)

    assert made.manifest.schema == without_y
    assert files(table) == {"theirs": (2,), "ours": (0,)}


def test_a_column_of_ours_that_was_dropped_beside_another_writer_is_a_conflict_that_says_so(table: Table) -> None:
    ours, theirs = written(table, "ours", 3), written(table, "theirs", 2)
    table.commit(Project(SCHEMA.project(["a", "s.x"]), True), read_version=1)
    table.commit(theirs, read_version=1)

    with pytest.raises(RetryableConflict, match="field 3, which ours writes in fragment 0, was dropped"):
        table.commit(ours, read_version=1)


def test_an_index_covers_no_fragment_of_which_ours_wrote_its_column(table: Table) -> None:
    ours = [written(table, "ours", 0, says_fields=says) for says in (True, False)]
    table.commit(CreateIndex((index(1, "a_idx", (0,), (0, 1)), index(2, "y_idx", (3,), (0, 1)))))
    newest = table.newest

    for each in ours:
        made = each.apply(newest, ApplyContext())
        assert [list(one.fragment_bitmap or ()) for one in made.indices] == [[1], [0, 1]]


def test_a_removed_fragment_that_was_rewritten_is_a_conflict(table: Table) -> None:
    ours = replace(written(table, "ours", 0), removed_fragment_ids=(1,))
    table.commit(rewrite(1), read_version=1)

    with pytest.raises(RetryableConflict, match="fragment 1"):
        table.commit(ours, read_version=1)


@pytest.mark.parametrize("drops", [False, True])
def test_a_deletion_in_a_fragment_that_its_read_version_lacks_is_refused(table: Table, drops: bool) -> None:
    ours = table.delete({0: [1]})
    strange = replace(ours.updated_fragments[0], id=7)
    ours = Delete(ours.updated_fragments, (7,)) if drops else Delete((*ours.updated_fragments, strange), ())
    table.commit(table.delete({0: [2]}))

    with pytest.raises(IncompatibleTransaction, match=r"fragments \[7\]"):
        table.commit(ours, read_version=1)


def test_an_update_of_a_fragment_that_its_read_version_lacks_is_refused(table: Table) -> None:
    ours = written(table, "ours", 0)
    strange = replace(ours, updated_fragments=(*ours.updated_fragments, Fragment(7, (data_file("z", (0,)),), 10)))
    table.commit(written(table, "theirs", 2))

    with pytest.raises(IncompatibleTransaction, match=r"fragments \[7\]"):
        table.commit(strange, read_version=1)
