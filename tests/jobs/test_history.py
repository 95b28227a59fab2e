from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from jobs.flights import read_flights
from jobs.history import seed
from jobs.instance import DemoPlace
from lance_ops.api import dataset
from lance_ops.dagster.declaration import DatasetNames
from lance_ops.dagster.head.recorded_versions import RecordedVersion

pytestmark = pytest.mark.dagster

NAMES = DatasetNames("flights")
FLIGHTS_OF_ELEVEN_DAYS = 10_000


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DemoPlace:
    """An empty demo that is prepared, and its environment."""
    made = DemoPlace(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    made.prepare()
    return made


def events_of(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[dg.AssetMaterialization]:
    """Return the materializations of an asset, the oldest first."""
    found = instance.fetch_materializations(dg.AssetRecordsFilter(key), limit=100).records
    return [record.asset_materialization for record in reversed(found) if record.asset_materialization]


def checks_of(instance: dg.DagsterInstance, run_id: str) -> dict[str, bool]:
    """Return the checks that a run evaluated, and whether each passed."""
    found = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    events = [each.event_log_entry.dagster_event for each in found]
    evaluations = [event.asset_check_evaluation_data for event in events if event]
    return {each.check_name: each.passed for each in evaluations}


def test_an_empty_demo_gets_its_history_once_also_after_a_seeding_that_died(place: DemoPlace) -> None:
    flights = read_flights().slice(0, FLIGHTS_OF_ELEVEN_DAYS)
    (place.dagster_home / "seeding").touch()
    (place.lake / "half.lance").mkdir()
    assert seed(place, flights)
    assert [path.name for path in place.lake.iterdir()] == ["flights.lance"]
    with dg.DagsterInstance.get() as instance:
        versions = [each for event in events_of(instance, NAMES.head) if (each := RecordedVersion.told_by(event))]
        days = [event.partition for event in events_of(instance, NAMES.batches)]
        assert instance.get_latest_materialization_event(NAMES.index("tailnum_idx"))
        newest, *others = instance.get_runs()
        assert all(run.status == dg.DagsterRunStatus.SUCCESS for run in (newest, *others))
        checks = checks_of(instance, newest.run_id)
    operations = [each.operation for each in versions]
    # The sixth version is of another writer, the last one of the erasure.
    assert operations[:8] == ["Overwrite", *["Append"] * 5, "CreateIndex", "Delete"]
    assert "Rewrite" in operations[8:-1]
    assert days[-1] == "2013-01-03" and len(set(days)) == len(days) == 8, "one day comes late, each once"
    rows = [each.num_rows for each in versions]
    assert rows[:6] == sorted(rows[:6]) and rows[6] > rows[7] > rows[-1]
    assert len(checks) >= 9 and all(checks.values()), checks
    assert {run.job_name for run in others} == {
        NAMES.of(each) for each in ("ingest", "reindex", "delete_rows", "compact", "erase")
    }
    data = dataset(str(place.lake / "flights.lance"))
    assert data.count_rows("tailnum = 'N725MQ'") == 0
    assert data.count_rows() == rows[-1]
    assert not seed(place, flights)
    assert dataset(data.uri).version == data.version
