from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet
import pytest

from lance_ops.api import dataset, write_dataset
from lance_ops.core.errors import InvalidInput
from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.landing import batch_states
from lance_ops.dagster.ops import Launch, launch, launch_class, launch_plan
from lance_ops.dagster.ops.landed_batches import landed_files
from lance_ops.maintenance import ingested_batches
from lance_ops.verbs import (
    ALL_VERBS,
    Cleanup,
    Clone,
    Compact,
    DeleteRows,
    Erase,
    Execution,
    IngestFiles,
    Reindex,
    Repair,
    Restore,
    Update,
    Verb,
    VerbResult,
    options_of,
)
from tests.dagster.deployment import Deployment, output_metadata

pytestmark = pytest.mark.dagster

MIXED = launch_class(Compact).model_validate({"execute": "PREVIEW", "worst_first": True})
FIVE = launch(DeleteRows(predicate="id < 5", reason="bad delivery"))


@pytest.fixture
def filled(deployment: Deployment) -> Deployment:
    deployment.fill(3)
    return deployment


def observed(deployment: Deployment) -> list[dg.AssetObservation]:
    records = deployment.instance.fetch_observations(deployment.names.head, limit=20).records
    return [record.asset_observation for record in records if record.asset_observation is not None]


def test_a_preview_shows_rows_sizes_and_past_durations_and_its_very_plan_is_executed(filled: Deployment) -> None:
    preview = filled.run("delete_rows", FIVE)
    page = output_metadata(preview)["lance/plan"]
    assert "Delete 5 of 30 rows" in page
    assert f"`delete_rows`, planned on version 3 of {filled.config.uri}. It is executed on this version" in page
    assert "| rows | 30 | 25 | −5 |" in page and "| deleted rows still stored | 0 | 5 | +5 |" in page
    assert "| 4 | Bern |" in page
    assert "| predicate | id < 5 |" in page and "| reason | bad delivery |" in page
    assert f"`execute: {preview.run_id}`" in page
    assert "past runs" not in page
    assert filled.data.version == 3
    write_dataset(pa.table({"id": [1], "city": ["Bern"]}), filled.config.uri, mode="append")
    done = output_metadata(filled.run("delete_rows", launch_plan(DeleteRows, preview.run_id)))
    assert (done["lance/matching_rows"], done["lance/read_version"]) == (5, 3)
    assert "| rows | 30 | 26 |" in done["lance/before_after"]
    assert filled.data.count_rows("id = 1") == 1, "the row that came after the plan is not in it"
    transaction = filled.data.read_transaction(5)
    assert transaction is not None
    assert transaction.read_version == 3
    page = output_metadata(filled.run("delete_rows", FIVE))["lance/plan"]
    assert "s in past runs" in page and "runs, " not in page
    filled.run("delete_rows", launch(DeleteRows(predicate="id = 5", reason="r"), dry_run=False))
    assert "s in past runs (2 runs, " in output_metadata(filled.run("delete_rows", FIVE))["lance/plan"]


def test_a_plan_that_newer_versions_contradict_is_refused_with_their_names(filled: Deployment) -> None:
    preview = filled.run("delete_rows", FIVE)
    filled.data.delete("id = 3")
    with pytest.raises(dg.Failure, match=r"planned on version 3.*4 \(Delete\); plan again"):
        filled.run("delete_rows", launch_plan(DeleteRows, preview.run_id))
    assert filled.data.count_rows() == 29
    restoring = filled.run("restore", launch(Restore(version=2, reason="r")))
    assert "4 | Delete" in output_metadata(restoring)["lance/plan"]
    filled.data.delete("id = 4")
    with pytest.raises(dg.Failure, match="planned on version 4"):
        filled.run("restore", launch_plan(Restore, restoring.run_id))


def test_a_clean_up_shows_its_versions_before_and_after(filled: Deployment) -> None:
    preview = filled.run("cleanup", launch(Cleanup(retain_versions=1)))
    filled.data.delete("id = 3")
    page = output_metadata(filled.run("cleanup", launch_plan(Cleanup, preview.run_id)))["lance/before_after"]
    was, became = filled.data.version, 2
    assert f"| versions | {was} | {became} |" in page, "the newest one and the one that the preview kept stay"


def test_a_plan_of_upkeep_is_made_again_on_the_newest_version(filled: Deployment) -> None:
    preview = filled.run("compact", launch(Compact()))
    filled.data.delete("id = 3")
    done = output_metadata(filled.run("compact", launch_plan(Compact, preview.run_id)))
    assert (done["lance/fragments_removed"], done["lance/fragments_added"]) == (3, 1)
    assert filled.data.count_rows() == 29


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (launch_plan(DeleteRows, "nothing"), "no run 'nothing'"),
        (launch_plan(DeleteRows, "PREVIEW"), "has no plan of delete_rows"),
        (MIXED, "leave the other options alone"),
    ],
)
def test_only_a_run_that_previewed_the_verb_can_be_executed(filled: Deployment, config: Launch, message: str) -> None:
    preview = filled.run("compact", launch(Compact()))
    asked: dict[str, Any] = config.model_dump()
    asked["execute"] = asked["execute"].replace("PREVIEW", preview.run_id)
    verb = "compact" if isinstance(config, launch_class(Compact)) else "delete_rows"
    with pytest.raises(dg.Failure, match=message):
        filled.run(verb, type(config)(**asked))
    assert filled.data.version == 3


def test_rows_are_deleted_by_the_keys_of_files(filled: Deployment, tmp_path: Path) -> None:
    keys = str(tmp_path / "keys.parquet")
    pyarrow.parquet.write_table(pa.table({"id": [1, 1, 7, 99], "other": [0] * 4}), keys)
    asked = DeleteRows(key_files=(keys,), on=("id",), reason="r")
    previewed = output_metadata(filled.run("delete_rows", launch(asked)))
    assert previewed["lance/matching_rows"] == 2 and "| 7 | Bern |" in previewed["lance/plan"]
    assert f"refused when one of these has changed: {keys}" in previewed["lance/plan"]
    filled.run("delete_rows", launch(asked, dry_run=False))
    assert filled.data.count_rows() == 28
    plan = next(o.metadata["lance/stored_plan"].value for o in observed(filled) if "lance/stored_plan" in o.metadata)
    assert json.loads(json.dumps(plan))["options"]["key_files"] == [keys]


def test_an_erasure_is_executed_by_its_preview_and_links_the_proof(filled: Deployment, tmp_path: Path) -> None:
    filled.run("reindex", launch(Reindex(), dry_run=False))
    filled.data.update({"city": "'gone-7f3a'"}, "id = 7")
    keys = str(tmp_path / "keys.parquet")
    pyarrow.parquet.write_table(pa.table({"city": ["gone-7f3a"]}), keys)
    preview = filled.run("erase", launch(Erase(key_files=(keys,), on=("city",), reason="request 12")))
    page = output_metadata(preview)["lance/plan"]
    assert "Erase 1 rows" in page
    assert "| main | 5 | it names files that store the rows |" in page
    done = output_metadata(filled.run("erase", launch_plan(Erase, preview.run_id)))
    assert (done["lance/erased_rows"], done["lance/is_proven"]) == (1, True)
    assert "Proven: no remaining file" in Path(done["lance/report"]).read_text()
    root = Path(filled.config.uri)
    assert not [path for path in root.rglob("*") if path.is_file() and b"gone-7f3a" in path.read_bytes()]
    assert filled.data.count_rows() == 29


@pytest.mark.parametrize("verb", ALL_VERBS, ids=lambda verb: verb.name)
def test_the_launchpad_offers_and_describes_every_option_of_a_verb(verb: type[Verb]) -> None:
    shape = launch_class(verb).to_config_schema().as_field().config_type
    assert isinstance(shape, dg.Shape)
    offered = {name: field.description for name, field in shape.fields.items()}
    assert list(offered) == ["dry_run", "execute", *options_of(verb)]
    assert all(option.described.description in str(offered[name]) for name, option in options_of(verb).items())


def test_a_launch_gives_only_what_the_verb_does_not_have_by_default() -> None:
    assert launch(Compact(cluster_by=("a",), cluster_order="z_order")).given == {
        "cluster_by": ["a"],
        "cluster_order": "z_order",
    }
    assert launch(Reindex(create={"i": "x"}), dry_run=False).given == {"create": {"i": "x"}}


def test_a_repair_previews_and_goes_back_from_a_manifest_that_cannot_be_read(filled: Deployment) -> None:
    newest = min(Path(filled.config.uri, "_versions").glob("*.manifest"))  # names count down
    newest.write_bytes(b"garbage" * 50)
    with pytest.raises(dg.Failure, match=newest.name):
        filled.run("compact", launch(Compact()))
    asked = Repair(restore_older_version=True, level="quick")
    preview = filled.run("repair", launch(asked))
    assert "go back to a readable version" in output_metadata(preview)["lance/plan"]
    done = output_metadata(filled.run("repair", launch_plan(Repair, preview.run_id)))
    assert (done["lance/actions"], done["lance/new_versions"]) == (1, "4")
    assert filled.data.count_rows() == 20


def test_verbs_of_rows_and_of_copies_run_as_jobs_on_the_launch_s_options(filled: Deployment, tmp_path: Path) -> None:
    target = str(tmp_path / "clone.lance")
    preview = filled.run("update", launch(Update({"city": "'Chur'"}, "id = 1")))
    assert "| 1 | Bern | Chur |" in output_metadata(preview)["lance/plan"]
    filled.run("update", launch_plan(Update, preview.run_id))
    filled.run("clone", launch(Clone(target), dry_run=False))
    assert dataset(target).to_table(["id"], filter="city = 'Chur'").to_pylist() == [{"id": 1}]
    assert filled.head_versions() == [4]


def test_landed_batches_are_ingested_by_a_plan_and_are_not_asked_for_again(deployment: Deployment) -> None:
    for number in range(2):
        deployment.land(f"d{number}", range(number * 10, number * 10 + 10))
    junk = deployment.land("junk", range(1))
    landed_at = junk.stat().st_mtime
    junk.write_bytes(b"junk")
    os.utime(junk, (landed_at, landed_at))
    preview = deployment.run("ingest_files")
    page = output_metadata(preview)["lance/plan"]
    assert "Ingest 2 files of 2 batches, 20 rows" in page
    assert "1 batches would be set aside" in page and "quarantined: raw file" in page
    assert "| rows | 0 | 20 |" in page
    deployment.land("d2", range(20, 30))
    with pytest.raises(dg.Failure, match="1 of 3 batches are set aside"):
        deployment.run("ingest_files", launch_plan(IngestFiles, preview.run_id))
    assert (deployment.data.version, deployment.data.count_rows()) == (1, 20)
    assert deployment.head_versions() == [1]
    states = {batch.key: batch.state.value for batch in batch_states(deployment.config, deployment.instance).batches}
    assert states == {"d0": "ingested", "d1": "ingested", "d2": "landed", "junk": "quarantined"}
    asked = [request.partition_key or request.tags for request in deployment.tick(raise_on_error=False).run_requests]
    assert asked and "d0" not in str(asked) and "d1" not in str(asked)
    assert deployment.data.count_rows() == 30
    named = deployment.run("ingest_files", launch(IngestFiles(only=("d2",))))
    assert "skipped: the table holds it" in output_metadata(named)["lance/plan"]
    with pytest.raises(dg.Failure, match="is in the landing folder"):
        deployment.run("ingest_files", launch(IngestFiles((str(junk),))))


@pytest.mark.parametrize("landing", ["local", "s3"])
def test_files_of_the_landing_folder_are_known_by_every_spelling(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, landing: str
) -> None:
    root = deployment.landing
    (tmp_path / "link").symlink_to(root)
    monkeypatch.chdir(root.parent)
    local = (
        f"file://{root}/d1.csv",
        f"{root.name}/d1.csv",
        f"{root}/../{root.name}/d1.csv",
        f"{root.parent}//{root.name}//d1.csv",
        str(tmp_path / "link" / "d1.csv"),
    )
    inside, outside = {
        "local": (local, (f"{root}2/d1.csv", f"{root}/../d1.csv", "s3://bucket/d1.csv")),
        "s3": (("s3://bucket/in/d1.csv", "s3a://bucket/in/d1.csv"), ("s3://bucket/in2/d1.csv", "/bucket/in/d1.csv")),
    }[landing]
    declared = {"name": "a", "uri": "x", "raw": {"uri": str(root) if landing == "local" else "s3://bucket/in"}}
    config = DatasetConfig.model_validate(declared)
    for file in inside:
        with pytest.raises(InvalidInput, match=r"d1\.csv is in the landing folder"):
            landed_files(config, None, deployment.instance, {"files": [file]})
    assert landed_files(config, None, deployment.instance, {"files": [*outside]}) == {}


def test_a_choice_of_a_launch_counts_even_if_it_is_the_verb_s_default(deployment: Deployment) -> None:
    deployment.land("d0", range(10))
    junk = deployment.land("junk", range(1))
    landed_at = junk.stat().st_mtime
    junk.write_bytes(b"junk")
    os.utime(junk, (landed_at, landed_at))
    shape = launch_class(IngestFiles)
    assert shape().given == {} and shape.model_validate({"bad": "refuse"}).given == {"bad": "refuse"}
    assert "batches would be set aside" in output_metadata(deployment.run("ingest_files"))["lance/plan"]
    refusing = deployment.run("ingest_files", shape.model_validate({"bad": "refuse"}))
    assert "It would be refused" in output_metadata(refusing)["lance/plan"]


def test_files_that_are_moved_after_the_commit_are_recorded_as_they_were(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.land("d0", range(10))
    execute = IngestFiles.execute

    def archived(verb: IngestFiles, work: Execution) -> VerbResult:
        result = execute(verb, work)
        for file in verb.files:
            Path(file).unlink()
        return result

    monkeypatch.setattr(IngestFiles, "execute", archived)
    deployment.run("ingest_files", launch_class(IngestFiles)(dry_run=False))
    assert not [*deployment.landing.iterdir()] and deployment.head_versions() == [1]
    record = deployment.instance.fetch_materializations(deployment.names.batches, limit=1).records[0]
    held = ingested_batches(deployment.data.snapshot)["d0"]
    assert record.partition_key == "d0" and record.asset_materialization is not None
    assert record.asset_materialization.metadata["lance/batch_token"].value == held.token


@pytest.mark.parametrize("stored", [False, True])
def test_batches_of_a_run_that_died_after_its_commit_are_recorded_by_the_next(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    deployment.land("d0", range(10))
    asked = launch_class(IngestFiles)(dry_run=False)
    if stored:
        asked = launch_plan(IngestFiles, deployment.run("ingest_files").run_id)

    def died(*_: object) -> None:
        raise SystemError("killed")

    with monkeypatch.context() as patched:
        patched.setattr("lance_ops.dagster.ops.verb_ops.record_outcome", died)
        with pytest.raises(SystemError):
            deployment.run("ingest_files", asked)
    recorded = deployment.instance.get_materialized_partitions
    assert deployment.data.count_rows() == 10 and not recorded(deployment.names.batches)
    deployment.land("d1", range(10, 20))
    deployment.run("ingest_files", asked)
    expected = {"d0"} if stored else {"d0", "d1"}
    assert recorded(deployment.names.batches) == expected
    assert deployment.data.count_rows() == 10 * len(expected)
