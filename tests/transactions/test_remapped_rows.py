"""Concurrent deletions and rewrites are both committed, and the rows are those of one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_ops.core.errors import IncompatibleTransaction, RetryableConflict
from lance_ops.core.file_names import DATA_DIR, DELETIONS_DIR
from lance_ops.table import violations
from lance_ops.transactions import DataReplacement, DataReplacementGroup, Project, Rewrite, RewrittenIndex
from tests.table.samples import SCHEMA, data_file, index
from tests.transactions.row_table import RowTable


def but(rows: int, *gone: int) -> list[int]:
    return [number for number in range(rows) if number not in gone]


class TestRewrite:
    """Ours rewrites; theirs, committed first, deletes."""

    @pytest.mark.parametrize("reserve", [True, False])
    def test_a_rewrite_deletes_the_rows_that_were_deleted_concurrently(self, reserve: bool) -> None:
        table = RowTable()
        table.commit(table.deletion(table.newest, [3, 14]))
        planned = table.newest
        ours = table.rewrite(planned, [0, 1, 2], rows=12, reserve=reserve)
        table.commit(table.deletion(table.newest, [0, 4, 29]))
        table.commit(table.deletion(table.newest, [15]))

        made = table.commit(ours, planned.version).manifest

        assert table.rows(made) == but(30, 0, 3, 4, 14, 15, 29)
        assert [len(table.deleted(made, fragment.id)) for fragment in made.fragments] == [2, 1, 1]
        assert violations(made) == []

    def test_a_rewrite_does_not_bring_back_updated_rows(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.rewrite(planned, [0, 1], [2])
        theirs, moved = table.update(planned, [5, 25])
        table.commit(theirs)

        made = table.commit(ours, planned.version).manifest

        assert sorted(table.rows(made)) == [*but(30, 5, 25), *moved]

    def test_a_rewrite_does_not_bring_back_dropped_fragments(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.rewrite(planned, [0, 1, 2], rows=10)
        table.commit(table.deletion(planned, [*range(10, 20), 21]))
        assert table.newest.fragment(1) is None

        result = table.commit(ours, planned.version)

        assert table.rows(result.manifest) == but(30, *range(10, 20), 21)
        assert len(result.manifest.fragments) == 2
        operation = result.transaction.operation
        assert isinstance(operation, Rewrite)
        assert [new.num_rows for new in operation.groups[0].new_fragments] == [10, 0, 9]
        assert len(table.files(DELETIONS_DIR)) == 2  # theirs and ours; none for the emptied fragment

    def test_data_files_of_emptied_fragments_are_removed(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.rewrite(planned, [0, 1, 2], rows=10)
        paths = [f"{DATA_DIR}/{new.files[0].path}" for new in ours.groups[0].new_fragments]
        for path in paths:
            table.store.put(path, b"data")
        table.commit(table.deletion(planned, range(10, 20)))

        table.commit(ours, planned.version)

        assert table.files(DATA_DIR) == {paths[0], paths[2]}

    def test_a_rewrite_whose_rows_are_all_deleted_adds_no_fragment(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.rewrite(planned, [0, 1])
        table.commit(table.deletion(planned, range(20)))

        assert table.rows(table.commit(ours, planned.version).manifest) == list(range(20, 30))

    def test_a_remapped_index_that_was_dropped_is_left_out(self) -> None:
        table = RowTable()
        table.commit_indices(index(1, covers=(0,)), index(2, covers=(1, 2)))
        planned = table.newest
        remaps = tuple(
            RewrittenIndex(index(old).uuid, index(new).uuid, files=index(old).files) for old, new in ((1, 8), (2, 9))
        )
        ours = Rewrite(table.rewrite(planned, [0], [1, 2]).groups, remaps)
        for path in remaps[0].paths():
            table.store.put(path, b"index")
        table.commit(table.deletion(planned, range(10)))
        assert [segment.uuid for segment in table.newest.indices] == [index(2).uuid]

        made = table.commit(ours, planned.version).manifest

        assert [segment.uuid for segment in made.indices] == [index(9).uuid]
        assert made.indices[0].covers(fragment.id for fragment in made.fragments)
        assert table.files("_indices") == set()

    def test_a_remapped_index_whose_column_was_dropped_is_left_out(self) -> None:
        table = RowTable()
        table.commit_indices(index(1, "y_idx", (3,), covers=(0,)), index(2, covers=(0,)))
        planned = table.newest
        remaps = tuple(RewrittenIndex(index(old).uuid, index(old + 7).uuid, files=index(old).files) for old in (1, 2))
        ours = replace(table.rewrite(planned, [0]), rewritten_indices=remaps)
        for path in (*remaps[0].paths(), *remaps[1].paths()):
            table.store.put(path, b"index")
        table.commit(Project(SCHEMA.project(["a", "s.x"]), True))

        made = table.commit(ours, planned.version).manifest

        assert [segment.uuid for segment in made.indices] == [index(9).uuid]
        assert table.files("_indices") == set(remaps[1].paths())
        assert table.rows(made) == list(range(10, 30)) + list(range(10)) and violations(made) == []

    def test_a_segment_that_no_version_has_is_not_left_out(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = replace(table.rewrite(planned, [0]), rewritten_indices=(RewrittenIndex(index(1).uuid, index(2).uuid),))
        table.commit(Project(SCHEMA.project(["a", "s.x"]), True))

        with pytest.raises(IncompatibleTransaction, match="has no index segment"):
            table.commit(ours, planned.version)

    @pytest.mark.parametrize("remapped", [False, True])
    def test_a_new_segment_whose_column_was_dropped_is_no_conflict(self, remapped: bool) -> None:
        table = RowTable()
        planned = table.newest
        ours, theirs = table.rewrite(planned, [0]), table.rewrite(planned, [2])
        table.commit_indices(index(1, "y_idx", (3,), covers=(0, 1, 2)))
        if remapped:
            table.commit(replace(theirs, rewritten_indices=(RewrittenIndex(index(1).uuid, index(2).uuid),)))
        table.commit(Project(SCHEMA.project(["a", "s.x"]), True))

        made = table.commit(ours, planned.version).manifest

        assert made.indices == () and sorted(table.rows(made)) == list(range(30))

    @pytest.mark.parametrize(("remaps", "covers"), [(True, (0, 1, 2)), (False, (0, 1, 2)), (False, (1, 2))])
    def test_a_new_segment_that_another_rewrite_replaced_is_a_conflict_unless_ours_remaps_the_later_one(
        self, remaps: bool, covers: tuple[int, ...]
    ) -> None:
        table = RowTable()
        planned = table.newest
        ours, theirs = table.rewrite(planned, [0]), table.rewrite(planned, [2])
        table.commit_indices(index(1, covers=covers))
        remapped = [RewrittenIndex(index(old).uuid, index(new).uuid) for old, new in ((1, 2), (2, 3))]
        table.commit(replace(theirs, rewritten_indices=tuple(remapped[:1])))
        ours = replace(ours, rewritten_indices=tuple(remapped[1:] if remaps else ()))

        if 0 in covers and not remaps:
            with pytest.raises(RetryableConflict, match="new index"):
                table.commit(ours, planned.version)
            return
        made = table.commit(ours, planned.version).manifest

        assert [segment.uuid for segment in made.indices] == [index(3 if remaps else 2).uuid]
        covered = [fragment.id for fragment in made.fragments if made.indices[0].covers([fragment.id])]
        assert len(covered) == len(covers) and violations(made) == []

    def test_a_rewrite_after_concurrent_new_values_is_retryable(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.rewrite(planned, [0, 1])
        table.commit(table.deletion(planned, [5]))
        table.commit(DataReplacement((DataReplacementGroup(1, data_file("other")),)))

        with pytest.raises(RetryableConflict, match="fragment 1 changed"):
            table.commit(ours, planned.version)

    def test_a_rewrite_after_a_concurrent_rewrite_of_the_same_fragments_is_retryable(self) -> None:
        table = RowTable()
        planned = table.newest
        ours, theirs = table.rewrite(planned, [0, 1]), table.rewrite(planned, [1, 2])
        table.commit(theirs, planned.version)

        with pytest.raises(RetryableConflict, match="fragment 1 left"):
            table.commit(ours, planned.version)
        assert table.rows(table.newest) == list(range(30))

    def test_concurrent_rewrites_of_different_fragments_are_all_committed(self) -> None:
        table = RowTable()
        planned = table.newest
        rewrites = [table.rewrite(planned, [key]) for key in (0, 1, 2)]
        table.commit(table.deletion(planned, [1, 11, 21]))

        for ours in rewrites:
            table.commit(ours, planned.version)

        assert sorted(table.rows(table.newest)) == but(30, 1, 11, 21)


class TestDelete:
    """Ours deletes; theirs, committed first, rewrites."""

    def test_a_deletion_is_remapped_to_the_rewritten_fragments(self) -> None:
        table = RowTable()
        table.commit(table.deletion(table.newest, [0, 15]))
        planned = table.newest
        ours = table.deletion(planned, [1, 14, 16, 29])
        table.commit(table.rewrite(planned, [0, 1, 2], rows=7), planned.version)

        result = table.commit(ours, planned.version)

        assert table.rows(result.manifest) == but(30, 0, 1, 14, 15, 16, 29)
        assert violations(result.manifest) == []
        named = {fragment.deletion_path for fragment in result.manifest.fragments if fragment.deletion_path}
        assert {path for path in table.files(DELETIONS_DIR) if f"-{planned.version}-" in path} == set()
        assert named <= table.files(DELETIONS_DIR)

    def test_a_deletion_of_a_whole_fragment_is_remapped(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.deletion(planned, range(10, 20))
        assert ours.deleted_fragment_ids == (1,)
        table.commit(table.rewrite(planned, [0, 1, 2], rows=5), planned.version)

        made = table.commit(ours, planned.version).manifest

        assert table.rows(made) == but(30, *range(10, 20))
        assert len(made.fragments) == 4

    def test_an_update_is_remapped_to_the_rewritten_fragments(self) -> None:
        table = RowTable()
        planned = table.newest
        ours, moved = table.update(planned, [3, *range(10, 20)])
        table.commit(table.rewrite(planned, [0, 1]), planned.version)

        assert sorted(table.rows(table.commit(ours, planned.version).manifest)) == [*but(30, 3, *range(10, 20)), *moved]

    def test_a_deletion_is_remapped_through_several_rewrites_in_order(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.deletion(planned, [2, 12, 22])
        late = table.rewrite(planned, [1], [2])
        table.commit(table.deletion(table.newest, [0, 13]))
        table.commit(table.deletion(table.newest, [23]))
        table.commit(late, planned.version)
        again = [fragment.id for fragment in table.newest.fragments]
        table.commit(table.rewrite(table.newest, again, rows=11))
        table.commit(table.append(4))
        table.commit(table.deletion(table.newest, [24, 31]))

        made = table.commit(ours, planned.version).manifest

        assert sorted(table.rows(made)) == but(34, 0, 2, 12, 13, 22, 23, 24, 31)
        assert violations(made) == []

    def test_a_deletion_is_remapped_through_a_rebased_rewrite(self) -> None:
        table = RowTable()
        early = table.newest
        theirs = table.rewrite(early, [0, 1])
        table.commit(table.deletion(early, [1, 2]))
        planned = table.newest
        ours = table.deletion(planned, [3, 11])
        table.commit(theirs, early.version)

        assert sorted(table.rows(table.commit(ours, planned.version).manifest)) == but(30, 1, 2, 3, 11)

    @pytest.mark.parametrize("first", ["delete", "rewrite"])
    def test_deletions_of_the_same_row_conflict_across_rewrites(self, first: str) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.deletion(planned, [5, 6])
        rewrite = table.rewrite(planned, [0, 1])
        if first == "rewrite":
            table.commit(rewrite, planned.version)
        table.commit(table.deletion(table.newest, [6]))
        if first == "delete":
            table.commit(rewrite, planned.version)
            table.commit(table.rewrite(table.newest, [fragment.id for fragment in table.newest.fragments]))

        with pytest.raises(RetryableConflict, match="deleted or updated by another"):
            table.commit(ours, planned.version)
        assert sorted(table.rows(table.newest)) == but(30, 6)

    def test_a_deletion_after_new_values_in_the_rewritten_fragments_is_retryable(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.deletion(planned, [5])
        table.commit(table.rewrite(planned, [0, 1]), planned.version)
        new = table.newest.fragments[-1].id
        table.commit(DataReplacement((DataReplacementGroup(new, data_file("other")),)))

        with pytest.raises(RetryableConflict, match="new values"):
            table.commit(ours, planned.version)

    def test_a_deletion_is_not_remapped_through_a_rewrite_that_lost_rows(self) -> None:
        table = RowTable()
        planned = table.newest
        ours = table.deletion(planned, [5])
        theirs = table.rewrite(planned, [0, 1])
        group = theirs.groups[0]
        table.commit(Rewrite((type(group)(group.old_fragments, (table.new(19),)),)), planned.version)

        with pytest.raises(RetryableConflict, match="does not say where its rows went"):
            table.commit(ours, planned.version)


@pytest.mark.parametrize("ours", ["delete", "rewrite", "merge"])
def test_a_rebase_without_the_old_deletion_files_is_retryable(ours: str) -> None:
    table = RowTable()
    table.commit(table.deletion(table.newest, [1, 11]))
    planned = table.newest
    old_files = table.files(DELETIONS_DIR)
    deletion, rewrite = table.deletion(planned, [5]), table.rewrite(planned, [0, 1])
    first, second = {
        "delete": (rewrite, deletion),
        "rewrite": (deletion, rewrite),
        "merge": (table.deletion(planned, [6]), deletion),
    }[ours]
    table.commit(first, planned.version)
    for path in old_files:
        table.store.delete(path)
    before = table.files(DELETIONS_DIR)

    with pytest.raises(RetryableConflict, match="cleaned up"):
        table.commit(second, planned.version)
    assert table.files(DELETIONS_DIR) == before
