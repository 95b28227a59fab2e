"""Which version of an upstream asset the IO manager loads when events and versions do not simply follow each other."""

# No postponed annotations here: Dagster compares the annotation of `context` as it stands.

import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset
from lance_ops.dagster import LanceIOManager

pytestmark = pytest.mark.dagster

DAYS = dg.StaticPartitionsDefinition(["1", "2"])
BY_DAY = {"partition_column": "day"}


@dg.asset(partitions_def=DAYS, metadata=BY_DAY)
def daily(context: dg.AssetExecutionContext) -> pa.Table:
    return pa.table({"day": [int(context.partition_key)] * 2})


@dg.asset(partitions_def=DAYS, metadata=BY_DAY)
def doubled(daily: pa.Table) -> pa.Table:
    return pa.concat_tables([daily, daily])


@dg.asset
def trips() -> pa.Table:
    return pa.table({"id": range(10)})


class Lake:
    """Assets in a folder, with an instance that records their events."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.folder, self.instance = folder, instance

    def materialize(self, asset: dg.AssetsDefinition, *others: dg.AssetsDefinition, key: str | None = None) -> str:
        manager = LanceIOManager(base_uri=str(self.folder))
        return dg.materialize(
            [asset, *others],
            resources={"io_manager": manager},
            instance=self.instance,
            selection=[asset],
            partition_key=key,
        ).run_id

    def uri(self, name: str) -> Path:
        return self.folder / f"{name}.lance"

    def record(self, name: str, version: int) -> None:
        """Record a version of an asset as an event that is stored now."""
        metadata: dict[str, int | str] = {"lance/version": version, "dagster/uri": str(self.uri(name))}
        self.instance.report_runless_asset_event(dg.AssetMaterialization(name, metadata=metadata))

    def read(self, asset: dg.AssetsDefinition) -> tuple[LanceDataset, list[str]]:
        """Read an asset in a run; return what it read, and the warnings in the log of the run."""
        seen: list[LanceDataset] = []

        @dg.asset(ins={"source": dg.AssetIn(asset.key)})
        def reads(source: LanceDataset) -> None:
            seen.append(source)

        run_id = self.materialize(reads, asset)
        return seen[0], [each.user_message for each in self.instance.all_logs(run_id) if int(each.level) >= 30]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Lake(tmp_path, instance)


def test_an_event_that_is_stored_late_hides_no_partition_of_a_later_version(lake: Lake) -> None:
    lake.materialize(daily, key="1")
    of_first = dataset(lake.uri("daily")).version
    lake.materialize(daily, key="2")
    lake.record("daily", of_first)  # the run of partition 1 committed first, and its event is stored last
    lake.materialize(doubled, daily, key="2")
    assert dataset(lake.uri("doubled")).to_table()["day"].to_pylist() == [2] * 4


def test_a_dataset_that_was_created_again_is_read_at_the_version_recorded_since(lake: Lake) -> None:
    for _ in range(3):
        lake.materialize(trips)
    shutil.rmtree(lake.uri("trips"))
    time.sleep(0.01)
    lake.materialize(trips)
    for number in range(3):
        dataset(lake.uri("trips")).insert(pa.table({"id": [number]}))
    assert lake.read(trips)[0].version == 1, "the version 3 that was recorded is one of the dataset before"


def compacted(lake: Lake) -> LanceDataset:
    """Record a version of two fragments, and compact it."""
    lake.materialize(trips)
    dataset(lake.uri("trips")).insert(pa.table({"id": [10]}))
    lake.record("trips", 2)
    source = dataset(lake.uri("trips"))
    source.optimize.compact_files()
    return dataset(lake.uri("trips"))


@pytest.mark.parametrize("kept", [(), (3,)], ids=["the rewrite", "and the reservation of its ids"])
def test_a_compaction_stands_in_for_the_recorded_version_that_clean_up_removed(lake: Lake, kept: tuple[int]) -> None:
    source = compacted(lake)
    assert lake.read(trips)[0].version == 2
    for version in kept:
        source.tags.create(f"kept-{version}", version)
    source.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    found, warnings = lake.read(trips)
    assert (found.version, found.count_rows()) == (min(kept, default=4), 11)
    told = (
        f"version 2, which asset trips recorded, is gone; version {found.version}, which holds the same rows, is read"
    )
    assert any(told in each for each in warnings)


def rows_after(source: LanceDataset) -> None:
    source.insert(pa.table({"id": [11]}))


def index_after(source: LanceDataset) -> None:
    source.create_scalar_index("id", "BTREE")


def compaction_of_other_rows(source: LanceDataset) -> None:
    source.restore()  # versions 5 and 6 are gone with what they did
    source.insert(pa.table({"id": [11]}))
    source.optimize.compact_files()


@pytest.mark.parametrize("change", [rows_after, index_after, compaction_of_other_rows])
def test_a_recorded_version_that_is_gone_is_an_error_if_no_other_is_known_to_have_its_rows(
    lake: Lake, change: Callable[[LanceDataset], None]
) -> None:
    change(compacted(lake))
    dataset(lake.uri("trips")).cleanup_old_versions(timedelta(0))
    with pytest.raises(Exception, match="version 2, which asset trips recorded, is gone: materialize the asset again"):
        lake.read(trips)
