from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from lance_ops.dagster.head.checks import audit_batches
from lance_ops.maintenance.health.version_timeline import VersionSummary
from tests.dagster.deployment import Deploy, Deployment

pytestmark = pytest.mark.dagster


def summary(version: int, operation: str, *batches: str) -> VersionSummary:
    return VersionSummary(version, None, operation, 0, 0, 0, 0, None, (), batches, {})


def test_checks_pass_before_the_dataset_exists(deployment: Deployment) -> None:
    results = deployment.check()
    assert len(results) == 9
    assert all(evaluation.passed for evaluation in results.values())


def test_a_lost_data_file_fails_the_blocking_check_and_names_it(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    (data_file,) = Path(deployment.config.uri, "data").iterdir()
    data_file.unlink()
    results = deployment.check()
    assert not results["valid"].passed
    assert results["valid"].blocking
    assert data_file.name in (results["valid"].description or "")


def test_a_newest_version_that_does_not_open_fails_valid_and_intact_and_the_other_checks_warn(
    deployment: Deployment,
) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    (manifest,) = Path(deployment.config.uri, "_versions").glob("*.manifest")
    manifest.write_bytes(b"garbage")
    red = {name: found for name, found in deployment.check().items() if not found.passed}
    errors = {name for name, found in red.items() if found.severity is dg.AssetCheckSeverity.ERROR}
    assert errors == {"valid", "intact"}
    warned = {
        "batches_settled",
        "batches_exactly_once",
        "small_fragments",
        "deleted_ratio",
        "unindexed_ratio",
        "versions",
    }
    assert red.keys() - errors == warned
    assert all(manifest.name in (found.description or "") for found in red.values())
    assert "trips_repair" in (red["valid"].description or "")


def test_small_fragments_deletions_and_versions_fail_above_their_limits(deploy: Deploy) -> None:
    limits = {"small_fragments": 1, "deleted_ratio": 0.1, "versions": 2}
    deployment = deploy(health=limits, maintenance={"cleanup": {"older_than_days": 0}})
    deployment.fill(3)
    deployment.data.delete("id < 9")
    results = deployment.check()
    failed = {name: evaluation.description for name, evaluation in results.items() if not evaluation.passed}
    assert failed == {
        "small_fragments": "small_fragments is 2, above the limit of 1; run trips_compact",
        "deleted_ratio": "deleted_ratio is 0.3, above the limit of 0.1; run trips_compact",
        "unindexed_ratio": "unindexed_ratio is 1, above the limit of 0.2; run trips_reindex",
        "versions": "versions is 3, above the limit of 2; run trips_cleanup",
    }
    assert results["deleted_ratio"].metadata["lance/value"].value == pytest.approx(0.3)


def test_recorded_batches_that_the_table_has_pass(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    evaluation = deployment.check()["batches_exactly_once"]
    assert evaluation.description == "every recorded batch is in the dataset once"
    assert evaluation.metadata["lance/held"].value == 1


def test_a_batch_whose_partition_was_deleted_may_stay_away(deployment: Deployment) -> None:
    for key in "ab":
        deployment.land(key, range(3))
        deployment.tick()
    deployment.data.checkout_version(1).restore()
    (deployment.landing / "b.parquet").unlink()
    red = deployment.check()["batches_exactly_once"]
    assert not red.passed and "not in the dataset: b; materialize these partitions" in (red.description or "")
    for key in "ab":
        deployment.instance.delete_dynamic_partition(deployment.names.of("batches"), key)
    green = deployment.check()["batches_exactly_once"]
    assert green.passed
    assert green.description == "every recorded batch is in the dataset once", "a is in the table all the same"


def test_an_audit_tells_lost_unrecorded_and_doubled_batches_apart() -> None:
    history = [summary(1, "Overwrite", "a"), summary(2, "Append", "b"), summary(3, "Append", "b")]
    audit = audit_batches({"a", "b", "gone"}, {"a", "b", "extra"}, history)
    assert (audit.lost, audit.unrecorded, audit.doubled) == (("gone",), ("extra",), ("b",))
    assert not audit.passed
    assert "ingested twice: b" in audit.sentence


def test_a_batch_ingested_again_after_a_restore_is_not_doubled() -> None:
    history = [summary(1, "Append", "a"), summary(2, "Append", "b"), summary(3, "Restore"), summary(4, "Append", "b")]
    assert audit_batches({"a", "b"}, {"a", "b"}, history).passed


def test_a_batch_that_was_replaced_is_not_doubled_and_one_that_is_added_after_it_is() -> None:
    history = [summary(1, "Append", "a", "b"), summary(2, "Update", "a", "c")]
    assert audit_batches({"a", "b", "c"}, {"a", "b", "c"}, history).passed
    assert audit_batches(set(), set(), [*history, summary(3, "Append", "c")]).doubled == ("c",)


def test_unrecorded_batches_alone_do_not_fail() -> None:
    audit = audit_batches(set(), {f"k{n:02}" for n in range(30)}, [])
    assert audit.passed
    assert "and 10 more" in audit.sentence
