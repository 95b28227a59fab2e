"""What a person sees of a version on the head asset."""

from __future__ import annotations

import os
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import dagster as dg
import pyarrow as pa
import pytest
from pydantic import ValidationError

import lance_ops
from lance_ops.dagster.head import version_metadata as described
from lance_ops.dagster.head.report import unrecorded
from lance_ops.dagster.head.version_sensor import build_version_sensor
from lance_ops.dagster.ops import launch
from lance_ops.maintenance import health
from lance_ops.verbs import Cleanup
from tests.dagster.deployment import Deploy, Deployment, values

pytestmark = pytest.mark.dagster


def recorded(deployment: Deployment) -> list[dict[str, Any]]:
    """Let the version sensor record what is there; return the metadata of the head's events, the oldest first."""
    sensor = build_version_sensor(deployment.config, grace=timedelta(0))
    with dg.build_sensor_context(instance=deployment.instance) as context:
        for event in sensor.evaluate_tick(context).asset_events:
            deployment.instance.report_runless_asset_event(event)
    found = deployment.instance.fetch_materializations(dg.AssetRecordsFilter(deployment.names.head), limit=100).records
    return [values(each.asset_materialization.metadata) for each in reversed(found) if each.asset_materialization]


def index_story(deployment: Deployment, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the descriptions and metadata of an index's events, the oldest first."""
    records = dg.AssetRecordsFilter(deployment.names.index(name))
    made = deployment.instance.fetch_materializations(records, 50).records
    seen = deployment.instance.fetch_observations(records, 50).records
    told = [
        each.asset_materialization or each.asset_observation
        for each in sorted([*made, *seen], key=lambda record: record.storage_id)
    ]
    return [(event.description or "", values(event.metadata)) for event in told if event is not None]


def images(markdown: str) -> list[ET.Element]:
    parts = markdown.split("](data:image/svg+xml;base64,")[1:]
    return [ET.fromstring(b64decode(part.partition(")")[0])) for part in parts]


def test_each_version_tells_what_it_did(deployment: Deployment) -> None:
    rows = pa.table({"id": range(8), "city": ["Bern"] * 8})
    data = lance_ops.write_dataset(rows, deployment.config.uri, max_rows_per_file=4)
    data.create_scalar_index("id", "BTREE")
    data.delete("id < 2")
    data.update({"city": "'Basel'"}, "id = 5")
    data.insert(rows.slice(0, 1), commit_message="late")
    data.add_columns({"twice": "id * 2"})
    data.tags.create("wide", 6)
    deployment.data.create_branch("trial", 3)
    created, indexed, deleted, updated, appended, widened = recorded(deployment)
    changes = [
        (each["lance/rows_inserted"], each.get("lance/rows_updated"), each["lance/rows_deleted"])
        for each in (created, indexed, deleted, updated, appended)
    ]
    assert changes == [(8, 0, 0), (0, 0, 0), (0, 0, 2), (0, 1, 0), (1, 0, 0)]
    assert created["lance/writer"] == "lance_ops 0.1.0"
    assert "| id_idx | BTree | id | 100.0% | 0 |" in indexed["lance/indices"]
    assert deleted["lance/fragment_changes"] == "0 added, 0 removed, 1 changed"
    assert appended["lance/commit_message"] == "late"
    assert "| id_idx | BTree | id | 71.4% | 2 |" in appended["lance/indices"]
    assert "| twice | added |  | int64 |" in widened["lance/schema_changes"]
    assert "lance/schema_changes" not in appended
    assert widened["lance/seconds_since_last_version"] >= 0
    assert widened["lance/read_amplification"] > created["lance/read_amplification"] > 1

    (chart,) = images(widened["lance/timeline"])
    words = ["".join(each.itertext()) for each in chart.iter("{http://www.w3.org/2000/svg}text")]
    assert {"tag wide", "branch trial", "rows added", "rows deleted", "columns"} <= set(words)
    (trend,) = images(widened["lance/trend"])
    assert len(list(trend.iter("{http://www.w3.org/2000/svg}polyline"))) == 4
    assert "| reindex id_idx |" in widened["lance/debt"]
    assert widened["lance/owed"] == "compact, reindex id_idx"
    assert "lance/verified_at" not in widened
    assert [each.get("lance/trend") for each in (created, indexed, deleted, updated, appended)] == [None] * 5


def test_charts_reach_back_beyond_clean_up(deployment: Deployment) -> None:
    deployment.fill(3)
    recorded(deployment)
    deployment.data.cleanup_old_versions(timedelta(0), retain_versions=1)
    deployment.data.insert(pa.table({"id": [99], "city": ["Bern"]}))
    *_, last = recorded(deployment)
    assert [f"| {version} |" in last["lance/timeline"] for version in range(1, 5)] == [True] * 4


def test_the_head_tells_when_checksums_were_last_verified(deployment: Deployment) -> None:
    deployment.fill(1)
    before = datetime.now(UTC).timestamp()
    deployment.check()
    *_, last = recorded(deployment)
    assert before - 1 <= last["lance/verified_at"] <= datetime.now(UTC).timestamp() + 1


def test_the_newest_version_tells_the_orphan_bytes_that_a_clean_up_counted_last(deployment: Deployment) -> None:
    deployment.fill(1)
    orphan = Path(deployment.config.uri, "data", "orphan.lance")
    orphan.write_bytes(b"0" * 1000)
    os.utime(orphan, (0, 0))
    assert "lance/orphan_bytes" not in recorded(deployment)[-1], "no clean-up has counted them"
    before = datetime.now(UTC).timestamp()
    for dry_run, left in ((True, 1000), (False, 0)):
        deployment.run("cleanup", launch(Cleanup(), dry_run=dry_run))
        deployment.data.insert(pa.table({"id": [99], "city": ["Bern"]}))
        *_, last = recorded(deployment)
        assert last["lance/orphan_bytes"] == left
        assert before - 1 <= last["lance/orphans_counted_at"] <= datetime.now(UTC).timestamp() + 1
    assert not orphan.exists()


def test_the_newest_version_tells_how_much_the_table_grows_a_day(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.fill(2)
    assert "lance/growth_bytes_per_day" not in recorded(deployment)[-1]  # seconds say nothing about a day
    monkeypatch.setattr("lance_ops.maintenance.debt.inventory._SHORTEST", timedelta(0))
    deployment.data.insert(pa.table({"id": [99], "city": ["Bern"]}))
    *older, last = recorded(deployment)
    assert last["lance/growth_bytes_per_day"] > 0
    assert [each for each in older if "lance/growth_bytes_per_day" in each] == []


def test_many_versions_cost_one_manifest_each_and_one_overview(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    lance_ops.write_dataset(pa.table({"id": [0]}), deployment.config.uri)
    for number in range(1, 8):
        lance_ops.write_dataset(pa.table({"id": [number]}), deployment.config.uri, mode="append")
    newest = deployment.data.snapshot
    compared: list[int] = []
    compare = health.compare_versions

    def counted(*args: Any, **options: Any) -> Any:
        compared.append(options["versions"][0].version)
        return compare(*args, **options)

    monkeypatch.setattr(described, "compare_versions", counted)
    found = unrecorded(deployment.instance, deployment.config, newest, [3, 4, 5])
    assert sorted(compared) == [3, 4, 5], "only the asked versions are compared"
    heads = [event for event in found.events if event.asset_key == deployment.names.head]
    assert ["lance/debt" in event.metadata for event in heads] == [False, False, True]
    sizes = [len(str(values(event.metadata))) for event in heads]
    assert max(sizes[:-1]) < 4_000 and sizes[-1] < 30_000


def test_a_declared_index_is_an_asset_with_coverage_and_staleness(deployment: Deployment) -> None:
    deployment.fill(1)
    recorded(deployment)
    data = deployment.data
    data.create_scalar_index("id", "BTREE")
    data.insert(pa.table({"id": [100, 101], "city": ["Bern", "Bern"]}))
    recorded(deployment)
    recorded(deployment)
    data.optimize.optimize_indices()
    recorded(deployment)
    told = index_story(deployment, "id_idx")
    assert [description for description, _ in told] == [
        "version 1: the index is missing; reindex builds it",
        "version 2: the index has new segments",
        "version 3: 83.3% of the rows are covered",
        "version 4: the index has new segments",
    ]
    missing, built, stale, extended = (metadata for _, metadata in told)
    assert [each["lance/indexed_ratio"] for each in (missing, built, stale, extended)] == [0.0, 1.0, 10 / 12, 1.0]
    assert (stale["lance/unindexed_rows"], stale["lance/versions_behind"]) == (2, 2)
    assert built["lance/columns"] == "id" and built["lance/built_at"] > 0


def test_the_declaration_says_how_assets_are_shown(deploy: Deploy) -> None:
    deployment = deploy(
        group_name="traffic",
        owners=["team:lake"],
        tags={"domain": "rides"},
        kinds=["parquet"],
        columns={"city": {"description": "Where the trip began."}},
        head={"sample_rows": 2},
        indices=[{"column": "id", "name": "by.id"}],
    )
    specs = {spec.key: spec for spec in deployment.location.definitions.resolve_all_asset_specs()}
    names = deployment.names
    assert specs.keys() == {names.head, names.batches, names.index("by.id")}
    assert [dep.asset_key for dep in specs[names.index("by.id")].deps] == [names.head]
    for spec in specs.values():
        assert (spec.group_name, list(spec.owners), spec.kinds) == ("traffic", ["team:lake"], {"lance", "parquet"})
        assert spec.tags["domain"] == "rides"
    rows = pa.table({"id": range(4), "city": ["Bern"] * 3 + ["Basel"], "secret": [b"x"] * 4})
    described = pa.schema([pa.field("id", pa.int64(), metadata={"description": "Ascending."}), *list(rows.schema)[1:]])
    lance_ops.write_dataset(rows.cast(described), deployment.config.uri)
    (shown,) = recorded(deployment)
    columns = {column.name: column.description for column in shown["dagster/column_schema"].columns}
    assert columns == {"id": "Ascending.", "city": "Where the trip began.", "secret": None}
    assert shown["lance/sample"].splitlines()[2:] == ["| 2 | Bern | b'x' |", "| 3 | Basel | b'x' |"]


@pytest.mark.parametrize("wrong", [{"group_name": "a b"}, {"tags": {"a b": ""}}, {"owners": ["nobody"]}])
def test_what_dagster_refuses_is_refused_in_the_declaration(wrong: dict[str, Any], deploy: Deploy) -> None:
    with pytest.raises(ValidationError, match="group_name, owners, tags or kinds"):
        deploy(**wrong)
