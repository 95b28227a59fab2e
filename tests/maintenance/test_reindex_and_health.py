from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import IndexNotFound, InvalidInput, StoreUnreachable, UnsupportedFeature
from lance_ops.maintenance.compaction import CompactionOptions
from lance_ops.maintenance.health.health_report import HealthThresholds, Severity, health, rows_of_small_fragments
from lance_ops.maintenance.health.version_timeline import timeline
from lance_ops.snapshot import index_location
from lance_ops.table import BasePath, encode_manifest
from lance_ops.verbs import Reindex, do_now, make_plan
from tests.maintenance.conftest import rows

Make = Callable[..., lance_ops.LanceDataset]


def test_an_index_search_returns_what_a_scan_returns(make: Make) -> None:
    dataset = make()
    dataset.create_scalar_index("key", "BTREE")
    plan = dataset.scanner(filter="key > 500 AND text != 't3'").explain_plan()
    assert "ScalarIndexQuery" in plan and "key_idx" in plan
    for predicate in (
        "key = 919",
        "key > 500 AND text != 't3'",
        "key IN (1, 757, 5)",
        "key IS NULL",
        "key BETWEEN 1 AND 99",
    ):
        assert dataset.to_table(filter=predicate) == dataset.to_table(filter=predicate, use_scalar_index=False)
    assert "ScalarIndexQuery" not in dataset.scanner(filter="key > 500", use_scalar_index=False).explain_plan()


def test_rows_outside_an_index_are_scanned_until_they_are_indexed(make: Make) -> None:
    dataset = make()
    dataset.create_scalar_index("key", "BTREE")
    dataset = lance_ops.write_dataset(rows(100, 140), dataset, mode="append")
    assert dataset.index_statistics("key_idx")["num_unindexed_rows"] == 40
    before = dataset.to_table(filter="key < 200")
    assert "unindexed fragments scanned: 1" in dataset.scanner(filter="key < 200").explain_plan()
    dataset.optimize.optimize_indices()
    assert dataset.index_statistics("key_idx")["num_unindexed_rows"] == 0
    assert "unindexed fragments scanned: 0" in dataset.scanner(filter="key < 200").explain_plan()
    assert dataset.to_table(filter="key < 200") == before
    version = dataset.version
    dataset.optimize.optimize_indices()
    assert dataset.version == version


def test_a_concurrently_dropped_index_is_not_extended(make: Make) -> None:
    dataset = make()
    dataset.create_scalar_index("key", "BTREE")
    stale = lance_ops.write_dataset(rows(100, 140), dataset, mode="append")
    again = lance_ops.dataset(stale.uri)
    lance_ops.dataset(stale.uri).drop_index("key_idx")

    stale.optimize.optimize_indices()

    assert lance_ops.dataset(stale.uri).list_indices() == []
    with pytest.raises(IndexNotFound):
        again.optimize.optimize_indices(index_names=["key_idx"])


def test_an_index_of_the_same_name_is_replaced_or_refused(make: Make) -> None:
    dataset = make(2)
    dataset.create_scalar_index("key", "BTREE", name="k")
    first = dataset.list_indices()[0]["uuid"]
    dataset.create_scalar_index("key", "BTREE", name="k")
    assert [index["uuid"] == first for index in dataset.list_indices()] == [False]
    with pytest.raises(InvalidInput, match="'k' already"):
        dataset.create_scalar_index("key", "BTREE", name="k", replace=False)


def test_columns_that_cannot_be_indexed_are_refused_by_name(make: Make) -> None:
    dataset = make(1)
    with pytest.raises(InvalidInput, match="'nope'"):
        dataset.create_scalar_index("nope", "BTREE")
    with pytest.raises(InvalidInput, match="'HASH'"):
        dataset.create_scalar_index("key", "HASH")
    with pytest.raises(UnsupportedFeature, match="BITMAP"):
        dataset.create_scalar_index("key", "BITMAP")
    for verb in (
        dataset.drop_index,
        dataset.index_statistics,
        lambda name: dataset.optimize.optimize_indices(index_names=[name]),
    ):
        with pytest.raises(IndexNotFound, match="'gone'"):
            verb("gone")


def test_an_index_whose_files_the_source_of_a_clone_removed_covers_nothing(make: Make, tmp_path: Path) -> None:
    source = make(2)
    source.create_scalar_index("key", "BTREE")
    clone = source.shallow_clone(str(tmp_path / "clone.lance"), source.version)
    assert health(clone.snapshot).indexed_ratio == 1.0
    source.create_scalar_index("key", "BTREE")
    source.cleanup_old_versions(timedelta(0))
    clone = lance_ops.dataset(clone.uri)
    assert "ScalarIndexQuery" not in clone.scanner(filter="key = 1").explain_plan()
    report = health(clone.snapshot)
    assert report.indexed_ratio == 0.0
    assert [finding.what for finding in report.findings] == ["index key_idx does not cover 100.0% of the rows"]
    assert make_plan(Reindex(), clone)[1].summary == "index 40 rows"
    do_now(Reindex(), clone)
    again = lance_ops.dataset(clone.uri)
    assert health(again.snapshot).indexed_ratio == 1.0
    assert "ScalarIndexQuery" in again.scanner(filter="key = 1").explain_plan()


@pytest.mark.parametrize("is_down", [False, True])
def test_the_versions_of_a_clone_ask_its_source_once_for_each_segment(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_down: bool
) -> None:
    source = make(2)
    source.create_scalar_index("key", "BTREE")
    clone = source.shallow_clone(str(tmp_path / "clone.lance"), source.version)
    for value in range(5):
        clone.update_config({"k": str(value)})
    asked = 0

    def holds(*arguments: object) -> bool:
        nonlocal asked
        asked += 1
        if is_down:
            raise StoreUnreachable("the source is down")
        return True

    monkeypatch.setattr(index_location, "_holds", holds)
    opened = lance_ops.dataset(clone.uri).snapshot
    assert [each.indexed_ratio for each in timeline(opened)] == [1.0] * 6
    assert health(opened).indexed_ratio == 1.0
    assert asked == 1


@pytest.mark.parametrize(("path", "is_root"), [("/elsewhere", False), ("s3://bucket/elsewhere", True)])
def test_an_index_under_a_base_that_is_not_followed_covers_nothing(make: Make, path: str, is_root: bool) -> None:
    dataset = make(2)
    dataset.create_scalar_index("key", "BTREE")
    manifest = dataset.snapshot.manifest
    (segment,) = manifest.indices
    bases = (BasePath(1, path, is_dataset_root=is_root),)
    changed = replace(manifest, base_paths=bases, indices=(replace(segment, base_id=1),))
    assert health(dataset.snapshot.with_manifest(changed)).indexed_ratio == 0.0


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_an_index_under_a_base_that_is_not_allowed_is_not_used_until_it_is_rebuilt(
    dataset_uri: str, stable_row_ids: bool
) -> None:
    made = lance_ops.write_dataset(rows(0, 40), dataset_uri, max_rows_per_file=20, enable_stable_row_ids=stable_row_ids)
    made.create_scalar_index("key", "BTREE")
    manifest = made.snapshot.manifest
    (segment,) = manifest.indices
    bases = (BasePath(1, "s3://bucket/elsewhere", is_dataset_root=True),)
    changed = replace(manifest, base_paths=bases, indices=(replace(segment, base_id=1),))
    made.snapshot.store.put(made.snapshot.committer.location(made.version), encode_manifest(changed, b""))
    dataset = lance_ops.dataset(dataset_uri)
    wanted = rows(7, 8)
    condition = f"key = {wanted['key'][0]}"
    assert dataset.to_table(filter=condition) == wanted
    assert "ScalarIndexQuery" not in dataset.scanner(filter=condition).explain_plan()
    dataset.optimize.compact_files()
    assert len(dataset.snapshot.fragments) == 1 and dataset.to_table(filter=condition) == wanted
    dataset.optimize.optimize_indices()
    assert "ScalarIndexQuery" in dataset.scanner(filter=condition).explain_plan()
    assert dataset.to_table(filter=condition) == wanted


@pytest.mark.parametrize("num_rows", [0, 3])
@pytest.mark.parametrize("kind", ["BTREE", "ZONEMAP"])
def test_values_in_a_list_cannot_be_indexed(dataset_uri: str, num_rows: int, kind: str) -> None:
    tags = pa.array([["a", "b"], [], None][:num_rows], pa.list_(pa.string()))
    dataset = lance_ops.write_dataset(pa.table({"tags": tags}), dataset_uri)
    with pytest.raises(InvalidInput, match="an index on 'tags.item': 'tags' has several values in a row"):
        dataset.create_scalar_index("tags.item", kind)
    assert lance_ops.dataset(dataset_uri).version == 1


def test_a_dropped_index_is_not_used(make: Make) -> None:
    dataset = make(1)
    dataset.create_scalar_index("key", "BTREE")
    dataset.drop_index("key_idx")
    assert dataset.list_indices() == []
    assert "ScalarIndexQuery" not in dataset.scanner(filter="key = 1").explain_plan()


def test_a_healthy_table_has_no_findings(make: Make) -> None:
    report = health(make(1).snapshot)
    assert report.is_healthy and report.num_rows == 20 and report.indexed_ratio is None


def test_each_problem_is_a_finding_with_advice(make: Make) -> None:
    dataset = make()
    dataset.create_scalar_index("key", "BTREE")
    dataset.delete("id < 60")
    dataset = lance_ops.write_dataset(rows(100, 140), dataset, mode="append")
    limits = HealthThresholds(max_small_fragments=2, max_versions=3)
    report = health(dataset.snapshot, limits)
    advice = {finding.advice.split()[0].strip(":") for finding in report.findings}
    assert advice == {"compact", "reindex", "clean"}
    assert report.num_rows == 80 and report.num_fragments == 3
    assert report.indexed_ratio == pytest.approx(0.5)
    assert {finding.severity for finding in report.findings} >= {Severity.ERROR}


def test_health_reads_no_data_file(make: Make) -> None:
    dataset = make()
    for path in (Path(dataset.uri) / "data").iterdir():
        path.unlink()
    assert health(dataset.snapshot).num_rows == 100


def test_the_timeline_summarises_each_version(make: Make) -> None:
    dataset = make(2)
    dataset.tags.create("two")
    dataset.create_scalar_index("key", "BTREE")
    dataset.delete("id = 1")
    told = timeline(dataset.snapshot)
    assert [(line.version, line.operation) for line in told] == [
        (1, "Overwrite"),
        (2, "Append"),
        (3, "CreateIndex"),
        (4, "Delete"),
    ]
    assert [line.tags for line in told] == [(), ("two",), (), ()]
    assert [line.indexed_ratio for line in told] == [None, None, 1.0, 1.0]
    assert told[-1].num_rows == 39 and told[-1].num_deleted_rows == 1
    assert [line.version for line in timeline(dataset.snapshot, limit=2)] == [3, 4]


def test_a_fragment_that_a_compaction_filled_is_not_small_when_some_rows_are_deleted(dataset_uri: str) -> None:
    made = lance_ops.write_dataset(pa.table({"a": range(100)}), dataset_uri)
    thresholds = HealthThresholds(small_fragment_rows=rows_of_small_fragments(100))
    for last, num_small in ((24, 0), (25, 1)):  # 75 rows are three quarters of the target
        made.delete(f"a <= {last}")
        assert health(made.snapshot, thresholds).num_small_fragments == num_small
    of_default = rows_of_small_fragments(CompactionOptions().target_rows_per_fragment)
    assert HealthThresholds() == HealthThresholds(small_fragment_rows=of_default)
