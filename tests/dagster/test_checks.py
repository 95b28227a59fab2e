from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.api import write_dataset
from lance_ops.committers import Committer
from lance_ops.dagster.evaluations import LOOKED
from lance_ops.dagster.head import checks
from lance_ops.dagster.head.checks import audit_batches
from lance_ops.dagster.opening import opening_once
from lance_ops.maintenance import batch_properties
from lance_ops.maintenance.health.version_timeline import VersionSummary
from lance_ops.store import Store
from lance_ops.transactions import CommittedVersion
from lance_ops.transactions.committed import committed_versions
from tests.dagster.deployment import Deploy, Deployment, check_results, write_damaged_tag

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


def test_a_damaged_tag_which_clean_up_needs_makes_only_the_check_of_versions_warn(deploy: Deploy) -> None:
    deployment = deploy(health={"small_fragments": 1})
    deployment.fill(3)
    write_damaged_tag(deployment)
    evaluators = checks.head_evaluators(deployment.instance, deployment.config, set(), opening_once(deployment.config))
    (evaluator,) = (each for each in evaluators if "versions" in each.names)
    found = {each.check_name: each for each in evaluator.evaluate()}
    assert not found["small_fragments"].passed
    assert found["small_fragments"].severity is dg.AssetCheckSeverity.ERROR
    assert found["deleted_ratio"].passed
    assert found["versions"].severity is dg.AssetCheckSeverity.WARN
    assert "kept.json" in (found["versions"].description or "")
    assert found["versions"].metadata[LOOKED].value is False, "what was told of the check before still holds"


def test_recorded_batches_that_the_table_has_pass_and_a_run_of_the_ingest_job_reads_no_old_version(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    evaluation = deployment.check()["batches_exactly_once"]
    assert evaluation.description == "every recorded batch is in the dataset once"
    assert evaluation.metadata["lance/held"].value == 1
    monkeypatch.setattr(checks, "timeline", None)
    deployment.land("b", range(3))
    (run,) = deployment.tick().runs
    assert check_results(run)["batches_exactly_once"].metadata["lance/held"].value == 2


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


class Audited:
    """A deployment whose check of batches is evaluated and recorded without a run."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment

    def add(self, *keys: str) -> None:
        """Add versions that ingest a batch each, and record the batches."""
        names, instance = self.deployment.names, self.deployment.instance
        rows = pa.table({"id": [1], "city": ["Bern"]})
        for key in keys:
            write_dataset(
                rows, self.deployment.config.uri, mode="append", transaction_properties=batch_properties({key: "token"})
            )
            instance.report_runless_asset_event(dg.AssetMaterialization(names.batches, partition=key))
        instance.add_dynamic_partitions(names.of("batches"), list(keys))

    def evaluate(self) -> dg.AssetCheckEvaluation:
        config, instance = self.deployment.config, self.deployment.instance
        recorded = instance.get_materialized_partitions(self.deployment.names.batches)
        found = checks.evaluate_batches(instance, config, recorded, opening_once(config), only_new_versions=True)
        instance.report_runless_asset_event(found)
        return found


@pytest.fixture
def audited(deployment: Deployment) -> Audited:
    return Audited(deployment)


def test_the_next_check_of_batches_reads_the_versions_since_the_last_one_that_passed(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Growth: it decodes as many manifests after many versions as after few."""
    decoded: list[int] = []
    decodes = committed_versions.decode_version

    def noted(store: Store, committer: Committer, version: int, data: pa.Buffer, **options: bool) -> CommittedVersion:
        decoded.append(version)
        return decodes(store, committer, version, data, **options)

    counts = []
    for num_versions in (3, 12):
        audited.add(*(f"{num_versions}-{number}" for number in range(num_versions)))
        assert audited.evaluate().passed
        audited.add(f"{num_versions}-last")
        with monkeypatch.context() as patched:
            patched.setattr(committed_versions, "decode_version", noted)
            patched.setattr(checks, "ingested_batches", None)
            found = audited.evaluate()
        assert found.passed and found.metadata["lance/held"].value == audited.deployment.data.version
        counts.append(len(decoded))
        decoded.clear()
    assert counts[0] == counts[1] >= 2


def test_what_the_versions_since_do_not_prove_is_read_whole(audited: Audited) -> None:
    def said() -> str:
        return audited.evaluate().description or ""

    in_order = "every recorded batch is in the dataset once"
    audited.add("a", "b")
    assert said() == in_order
    audited.deployment.data.checkout_version(1).restore()
    assert said().startswith("recorded and not in the dataset: b;")
    audited.add("b")
    assert said() == in_order
    shutil.rmtree(audited.deployment.config.uri)
    audited.add("c", "d", "e", "f", "g")
    assert said().startswith("recorded and not in the dataset: a, b;")
    audited.add("a", "b")
    assert said() == in_order
    audited.add("b")
    assert said().startswith("ingested twice: b;")
    assert said().startswith("ingested twice: b;"), "nothing came since, but the last one did not pass"


def test_a_batch_that_nobody_recorded_is_told_in_each_evaluation(audited: Audited) -> None:
    audited.add("a")
    assert audited.evaluate().passed
    audited.deployment.fill(1)
    for _ in range(2):
        found = audited.evaluate()
        assert found.passed and "in the dataset and not recorded: d0;" in (found.description or "")
