"""`explain_plan` and `analyze_plan` of a merge describe what it does."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.api import MergeInsertBuilder
from lance_ops.changing.merge_insert.matching import most_keys_for_index
from lance_ops.errors import InvalidInput
from lance_ops.store import MemoryStore

ROWS = pa.table({"id": range(100), "v": [float(i) for i in range(100)], "s": ["a"] * 100})
CLAUSES = (
    "MergeInsert: on=[id], when_matched=UpdateIf(source.v > target.v), when_not_matched=InsertAll, "
    "when_not_matched_by_source=Keep"
)


@pytest.fixture
def dataset(dataset_uri: str) -> lance_ops.LanceDataset:
    return lance_ops.write_dataset(ROWS, dataset_uri, max_rows_per_file=40)


def upsert(dataset: lance_ops.LanceDataset) -> MergeInsertBuilder:
    return dataset.merge_insert("id").when_matched_update_all("source.v > target.v").when_not_matched_insert_all()


def files(dataset: lance_ops.LanceDataset) -> list[Path]:
    return sorted(path for path in Path(dataset.uri).rglob("*") if path.is_file())


def test_a_plan_names_the_clauses_the_columns_written_and_the_columns_read(dataset: lance_ops.LanceDataset) -> None:
    before = files(dataset)
    assert upsert(dataset).explain_plan(ROWS.schema.remove(2)).splitlines() == [
        CLAUSES,
        "  MoveRows: from_source=[id, v], from_target=[s]",
        "  InsertRows: from_source=[id, v], null=[s]",
        "  HashJoin: on=[id]",
        "    LanceRead: projection=[id, v], num_fragments=3, tasks=1",
    ]
    assert files(dataset) == before


def test_the_table_s_own_schema_is_the_default(dataset: lance_ops.LanceDataset) -> None:
    assert upsert(dataset).explain_plan() == upsert(dataset).explain_plan(dataset.schema, verbose=True)


def test_a_merge_in_place_names_the_columns_written_anew(dataset: lance_ops.LanceDataset) -> None:
    builder = dataset.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    plan = builder.explain_plan(ROWS.schema.remove(2))
    assert "  RewriteColumns: from_source=[v]\n" in plan
    assert "MoveRows" not in plan and "InsertRows" not in plan


def test_a_remote_index_serves_many_keys_only_if_it_takes_fewer_requests_than_a_scan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri = f"memory://merge-plans-{uuid.uuid4().hex}"
    dataset = lance_ops.write_dataset(ROWS, uri, max_rows_per_file=10)
    dataset.create_scalar_index("id", "BTREE", name="tree")
    dataset.create_scalar_index("v", "ZONEMAP", name="zones")

    def most(name: str) -> int:
        snapshot = lance_ops.dataset(uri).snapshot
        with monkeypatch.context() as patch:
            patch.setattr(MemoryStore, "reads_in_place", False)
            return most_keys_for_index(snapshot, name)

    assert (most("tree"), most("zones")) == (16_384, 16)
    dataset.insert(ROWS.slice(0, 7), max_rows_per_file=1)
    assert most("tree") == 16_384, "two files and seven fragments, against seventeen fragments"
    dataset.insert(pa.concat_tables([ROWS] * 170))
    dataset.delete("id > 0")
    assert dataset.count_rows() < 200 and most("tree") == 16, "the index has entries of deleted rows"
    lance_ops.write_dataset(ROWS, uri, mode="overwrite", max_rows_per_file=50)
    lance_ops.dataset(uri).create_scalar_index("id", "BTREE", name="tree")
    assert most("tree") == 16, "two files, against two fragments"


def test_a_plan_names_the_number_of_keys_up_to_which_an_index_is_used(dataset: lance_ops.LanceDataset) -> None:
    dataset.create_scalar_index("id", "BTREE")
    builder = upsert(dataset)
    assert builder.explain_plan().splitlines()[3:] == [
        "  Choose: by_index=[1 to 16 distinct keys in the source]",
        "    IndexJoin: on=[id]",
        "      LanceRead: projection=[id, v]",
        "        ScalarIndexQuery: query=[id IN source keys]@id_idx",
        "    HashJoin: on=[id]",
        "      LanceRead: projection=[id, v], num_fragments=3, tasks=1",
    ]
    assert "IndexJoin: on=[id], source_rows=16" in builder.analyze_plan(ROWS.slice(0, 16))
    assert "HashJoin: on=[id], source_rows=17" in builder.analyze_plan(ROWS.slice(0, 17))


@pytest.mark.parametrize("how", ["use_index off", "every row is looked at"])
def test_a_plan_does_not_name_an_unused_index(dataset: lance_ops.LanceDataset, how: str) -> None:
    dataset.create_scalar_index("id", "BTREE")
    builder = upsert(dataset)
    builder = builder.use_index(False) if how == "use_index off" else builder.when_not_matched_by_source_delete("v > 5")
    assert "id_idx" not in builder.explain_plan()
    assert "id_idx" not in builder.analyze_plan(ROWS.slice(0, 2))


def test_an_analysis_counts_what_a_merge_would_do_and_leaves_nothing(dataset: lance_ops.LanceDataset) -> None:
    before, source = files(dataset), pa.table({"id": [3, 4, 500], "v": [99.0, 0.0, 1.0], "s": ["x", "y", "z"]})
    analysis = upsert(dataset).analyze_plan(source)
    assert re.match(
        r"AnalyzeExec: elapsed=[\d.]+ms, metrics=\[bytes_written=[1-9]\d*, num_files_written=2, "
        r"num_inserted_rows=1, num_updated_rows=1, num_deleted_rows=0\]\nMergeInsert: on=\[id\]",
        analysis,
    )
    assert files(dataset) == before
    assert dataset.version == dataset.latest_version == 1
    result = upsert(dataset).execute(source)
    assert result == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert len(files(dataset)) == len(before) + 4  # two as analysed, a transaction and a manifest


def test_explaining_an_invalid_merge_raises(dataset: lance_ops.LanceDataset) -> None:
    with pytest.raises(InvalidInput, match="changes nothing"):
        dataset.merge_insert("id").explain_plan()
    with pytest.raises(InvalidInput, match="no column 'id'"):
        upsert(dataset).explain_plan(ROWS.schema.remove(0))
