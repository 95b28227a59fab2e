from __future__ import annotations

import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.api import write_dataset
from lance_ops.dagster.ops import launch
from lance_ops.verbs import REASON_PROPERTY, Cleanup, Compact, DeleteRows, Reindex, Restore, Tag
from tests.dagster.deployment import Deploy, Deployment, output_metadata

pytestmark = pytest.mark.dagster


@pytest.fixture
def filled(deployment: Deployment) -> Deployment:
    """Three batches of ten rows in three fragments. No run recorded the versions 1 to 3."""
    deployment.fill(3)
    return deployment


def test_deleting_rows_commits_records_and_keeps_the_reason(filled: Deployment) -> None:
    asked = DeleteRows(predicate="id < 5", reason="erasure request 7")
    result = filled.run("delete_rows", launch(asked, dry_run=False))
    assert output_metadata(result)["lance/matching_rows"] == 5
    assert filled.data.count_rows() == 25
    assert filled.head_versions() == [4]
    transaction = filled.data.read_transaction(4)
    assert transaction is not None
    assert transaction.transaction_properties[REASON_PROPERTY] == "erasure request 7"


def test_a_dry_run_counts_the_rows_and_deletes_none(filled: Deployment) -> None:
    result = filled.run("delete_rows", launch(DeleteRows(predicate="id < 5", reason="look")))
    assert output_metadata(result)["lance/matching_rows"] == 5
    assert filled.data.version == 3


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (DeleteRows(predicate="id <", reason="r"), "id <"),
        (DeleteRows(predicate="nothing = 1", reason="r"), "nothing"),
        (DeleteRows(predicate=" ", reason="r"), "predicate is empty"),
        (DeleteRows(predicate="id = 1", reason=" "), "reason is empty"),
        (DeleteRows(predicate="true", reason="r", at_most_rows=29), "30 rows match and at_most_rows is 29"),
    ],
)
def test_a_deletion_that_makes_no_sense_fails_and_changes_nothing(
    filled: Deployment, config: DeleteRows, message: str
) -> None:
    with pytest.raises(dg.Failure, match=message):
        filled.run("delete_rows", launch(config))
    assert filled.data.version == 3


def test_invalid_values_that_the_launchpad_accepts_are_refused_by_the_op(filled: Deployment) -> None:
    job = filled.location.definitions.resolve_job_def("trips_compact")
    config = {"ops": {"compact": {"config": {"target_rows_per_fragment": -1}}}}
    with pytest.raises(Exception, match="target_rows_per_fragment"):
        job.execute_in_process(run_config=config, instance=filled.instance)
    assert filled.data.version == 3


def test_reindex_builds_declared_indices_once_and_then_extends_them(filled: Deployment) -> None:
    filled.run("reindex", launch(Reindex(), dry_run=False))
    (index,) = filled.data.describe_indices()
    assert (index.name, index.num_rows_indexed) == ("id_idx", 30)
    version = filled.data.version
    filled.run("reindex", launch(Reindex(), dry_run=False))
    assert filled.data.version == version, "full coverage needs no commit"
    write_dataset(pa.table({"id": range(30, 35), "city": ["Bern"] * 5}), filled.config.uri, mode="append")
    before = output_metadata(filled.run("reindex", launch(Reindex())))
    assert "85.7%" in before["lance/plan"]
    after = output_metadata(filled.run("reindex", launch(Reindex(), dry_run=False)))
    assert after["lance/indexed_id_idx"] == "100.0%"
    assert filled.data.to_table(filter="id = 33").num_rows == 1


def test_reindex_refuses_an_index_that_is_neither_declared_nor_created(filled: Deployment) -> None:
    with pytest.raises(dg.Failure, match=r"has no index nothing; it has \['id_idx'\]"):
        filled.run("reindex", launch(Reindex(indices=("nothing",))))


def test_compaction_merges_drops_deleted_rows_and_keeps_the_index(filled: Deployment) -> None:
    filled.run("reindex", launch(Reindex(), dry_run=False))
    filled.run("delete_rows", launch(DeleteRows(predicate="id < 5", reason="r"), dry_run=False))
    planned = output_metadata(filled.run("compact", launch(Compact())))
    assert "| 3 | 0 … 2 | 25 | 5 |" in planned["lance/plan"]
    done = output_metadata(filled.run("compact", launch(Compact(), dry_run=False)))
    assert (done["lance/fragments_removed"], done["lance/fragments_added"]) == (3, 1)
    assert len(filled.data.get_fragments()) == 1
    assert filled.data.to_table(filter="id = 17")["id"].to_pylist() == [17]
    assert filled.head_versions() == list(range(4, filled.data.version + 1))
    again = output_metadata(filled.run("compact", launch(Compact(), dry_run=False)))
    assert again["lance/fragments_removed"] == 0
    assert again["lance/new_versions"] == "none"


def test_clean_up_is_a_dry_run_unless_told_otherwise_and_keeps_tags(filled: Deployment) -> None:
    filled.run("tag", launch(Tag(tag="kept", version=2), dry_run=False))
    explained = output_metadata(filled.run("cleanup", launch(Cleanup(older_than_days=0))))
    assert explained["lance/dry_run"] is True
    assert [version["version"] for version in filled.data.versions()] == [1, 2, 3]
    done = output_metadata(filled.run("cleanup", launch(Cleanup(older_than_days=0), dry_run=False)))
    assert done["lance/old_versions"] == 1
    assert [version["version"] for version in filled.data.versions()] == [2, 3]
    observations = filled.instance.fetch_observations(filled.names.head, limit=10).records
    described = [str(record.asset_observation and record.asset_observation.description) for record in observations]
    assert [description.partition(":")[0] for description in described] == ["cleanup", "plan of cleanup", "tag"]


def test_replays_stay_no_ops_after_clean_up(filled: Deployment) -> None:
    filled.run("cleanup", launch(Cleanup(retain_versions=1), dry_run=False))
    filled.instance.add_dynamic_partitions(filled.names.of("batches"), ["d0", "d1", "d2"])
    filled.ingest("d0", "d2")
    assert filled.data.count_rows() == 30


def test_the_declared_policy_applies_without_run_config(filled: Deployment) -> None:
    done = output_metadata(filled.run("cleanup", launch(Cleanup(), dry_run=False)))
    assert done["lance/old_versions"] == 0, "nothing is two weeks old"


def test_a_restore_allows_removed_batches_to_be_ingested_again(filled: Deployment) -> None:
    filled.tick()
    filled.run("tag", launch(Tag(tag="good", version=2), dry_run=False))
    filled.run("restore", launch(Restore(tag="good", reason="d2 was a mistake"), dry_run=False))
    assert filled.data.version == 4
    assert filled.data.count_rows() == 20
    transaction = filled.data.read_transaction(4)
    assert transaction is not None
    assert transaction.transaction_properties[REASON_PROPERTY] == "d2 was a mistake"
    results = filled.check()
    assert not results["batches_exactly_once"].passed
    assert "recorded and not in the dataset: d2" in (results["batches_exactly_once"].description or "")
    filled.ingest("d2")
    assert filled.data.count_rows() == 30
    assert filled.check()["batches_exactly_once"].passed


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Restore(reason="r"), "either a version or a tag"),
        (Restore(version=1, tag="t", reason="r"), "either a version or a tag"),
        (Restore(version=1, reason=""), "reason is empty"),
        (Restore(version=99, reason="r"), "no version 99"),
        (Restore(tag="nothing", reason="r"), "no tag 'nothing'"),
    ],
)
def test_a_restore_that_makes_no_sense_fails(filled: Deployment, config: Restore, message: str) -> None:
    with pytest.raises(dg.Failure, match=message):
        filled.run("restore", launch(config))
    assert filled.data.version == 3


def test_tags_are_created_moved_and_deleted(filled: Deployment) -> None:
    filled.run("tag", launch(Tag(tag="t", version=1), dry_run=False))
    filled.run("tag", launch(Tag(tag="t", action="move"), dry_run=False))
    assert filled.data.tags.get_version("t") == 3
    with pytest.raises(dg.Failure, match="exists already"):
        filled.run("tag", launch(Tag(tag="t"), dry_run=False))
    filled.run("tag", launch(Tag(tag="t", action="delete"), dry_run=False))
    assert filled.data.tags.list() == {}


def test_a_verb_on_a_missing_dataset_fails_by_name(deployment: Deployment) -> None:
    with pytest.raises(dg.Failure, match="no Lance dataset at .*trips.lance"):
        deployment.run("compact", launch(Compact(), dry_run=False))


def test_every_verb_keeps_the_ids_of_a_dataset_declared_with_stable_row_ids(deploy: Deploy) -> None:
    deployment = deploy(write={"enable_stable_row_ids": True})
    for key, ids in (("a", range(10)), ("b", range(10, 30))):
        deployment.land(key, ids)
        deployment.tick()
    deployment.run("reindex", launch(Reindex(), dry_run=False))
    deployment.run("delete_rows", launch(DeleteRows(predicate="id < 5", reason="r"), dry_run=False))
    deployment.run("compact", launch(Compact(), dry_run=False))
    deployment.run("cleanup", launch(Cleanup(older_than_days=0), dry_run=False))
    data = deployment.data
    assert len(data.get_fragments()) == 1
    assert data.to_table(["id"], with_row_id=True).to_pylist() == [{"id": n, "_rowid": n} for n in range(5, 30)]
    assert "ScalarIndexQuery" in data.scanner(filter="id = 7").explain_plan()
    data.validate()
