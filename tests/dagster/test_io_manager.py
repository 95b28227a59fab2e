# No postponed annotations here: Dagster compares the annotation of `context` as it stands.
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, dataset
from lance_ops.dagster import LanceIOManager
from lance_ops.dagster.io.stored_dataset import StoredDataset
from lance_ops.writing.fragment_writer import FragmentWriter

pytestmark = pytest.mark.dagster

DAYS = dg.StaticPartitionsDefinition(["1", "2"])


@dg.asset(key_prefix="bronze")
def trips() -> pa.Table:
    return pa.table({"id": [1, 2]})


@dg.asset
def frame() -> pd.DataFrame:
    return pd.DataFrame({"id": [1, 2, 3]})


@dg.asset
def nonsense() -> str:
    return "no table"


@dg.asset(partitions_def=DAYS, metadata={"partition_column": "day"})
def daily(context: dg.AssetExecutionContext) -> pa.Table:
    return pa.table({"day": [int(context.partition_key)] * 2, "run": [context.run.run_id] * 2})


@pytest.fixture
def manager(tmp_path: Path) -> LanceIOManager:
    return LanceIOManager(base_uri=str(tmp_path / "lake"))


def materialize(manager: LanceIOManager, *assets: dg.AssetsDefinition, **options: Any) -> dg.ExecuteInProcessResult:
    return dg.materialize(list(assets), resources={"io_manager": manager}, **options)


def test_an_output_is_a_dataset_and_its_version_and_rows_are_recorded(manager: LanceIOManager, tmp_path: Path) -> None:
    result = materialize(manager, trips)
    assert dataset(tmp_path / "lake" / "bronze" / "trips.lance").to_table() == pa.table({"id": [1, 2]})
    (event,) = result.asset_materializations_for_node("bronze__trips")
    assert event.metadata["dagster/row_count"].value == 2
    assert event.metadata["lance/version"].value == 1


def test_an_input_has_its_annotated_type(manager: LanceIOManager) -> None:
    seen: list[Any] = []

    @dg.asset
    def as_table(frame: pa.Table) -> None:
        seen.append(frame)

    @dg.asset
    def as_frame(frame: pd.DataFrame) -> None:
        seen.append(frame)

    @dg.asset
    def as_dataset(frame: LanceDataset) -> None:
        seen.append(frame)

    materialize(manager, frame, as_table, as_frame, as_dataset)
    assert {type(value) for value in seen} == {pa.Table, pd.DataFrame, LanceDataset}


def test_an_output_replaces_or_is_appended_as_configured(tmp_path: Path) -> None:
    managers = (
        LanceIOManager(base_uri=str(tmp_path / "a")),
        LanceIOManager(base_uri=str(tmp_path / "b"), mode="append"),
    )
    for manager, expected in zip(managers, (2, 4), strict=True):
        materialize(manager, trips)
        materialize(manager, trips)
        assert dataset(f"{manager.base_uri}/bronze/trips.lance").count_rows() == expected


def test_a_partition_replaces_its_own_rows_only(manager: LanceIOManager, tmp_path: Path) -> None:
    materialize(manager, daily, partition_key="1")
    materialize(manager, daily, partition_key="2")
    again = materialize(manager, daily, partition_key="1")
    rows = dataset(tmp_path / "lake" / "daily.lance").to_table()
    assert sorted(rows["day"].to_pylist()) == [1, 1, 2, 2]
    assert rows["run"].to_pylist().count(again.run_id) == 2


def test_a_partition_is_read_alone(manager: LanceIOManager) -> None:
    seen: list[pa.Table] = []

    @dg.asset(partitions_def=DAYS)
    def counted(daily: pa.Table) -> None:
        seen.append(daily)

    for key in ("1", "2"):
        materialize(manager, daily, partition_key=key)
    materialize(manager, daily, counted, partition_key="2")
    assert seen[0]["day"].to_pylist() == [2, 2]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failed_partition_write_keeps_its_rows_and_concurrent_writes(
    manager: LanceIOManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    materialize(manager, daily, partition_key="1")
    write = FragmentWriter.write

    def fail(*args: object, **kwargs: object) -> None:
        monkeypatch.setattr(FragmentWriter, "write", write)
        materialize(manager, daily, partition_key="2")
        raise error

    monkeypatch.setattr(FragmentWriter, "write", fail)
    with pytest.raises((OSError, KeyboardInterrupt, dg.DagsterExecutionInterruptedError)):
        materialize(manager, daily, partition_key="1")
    assert sorted(dataset(tmp_path / "lake" / "daily.lance").to_table()["day"].to_pylist()) == [1, 1, 2, 2]


def run_meanwhile(manager: LanceIOManager, monkeypatch: pytest.MonkeyPatch, partition_key: str) -> None:
    """Make another run write a partition after the next run has looked up the dataset."""
    look = StoredDataset.open

    def and_another(self: StoredDataset, version: int | None = None, tag: str | None = None) -> LanceDataset:
        monkeypatch.setattr(StoredDataset, "open", look)
        try:
            return look(self, version, tag)
        finally:
            materialize(manager, daily, partition_key=partition_key)

    monkeypatch.setattr(StoredDataset, "open", and_another)


@pytest.mark.parametrize(
    "begun", [False, True], ids=["the dataset was begun meanwhile", "another was replaced meanwhile"]
)
def test_partitions_written_concurrently_are_both_kept(
    manager: LanceIOManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    if begun:
        for key in ("1", "2"):
            materialize(manager, daily, partition_key=key)
    run_meanwhile(manager, monkeypatch, "2")
    materialize(manager, daily, partition_key="1")
    made = dataset(tmp_path / "lake" / "daily.lance")
    assert sorted(made.to_table()["day"].to_pylist()) == [1, 1, 2, 2]
    assert made.version == (5 if begun else 3)


@pytest.mark.parametrize("before", [(), ("2",), ("1", "2")], ids=["no dataset", "no row of it", "rows of it"])
def test_concurrent_runs_of_one_partition_leave_the_rows_of_the_last_to_end(
    manager: LanceIOManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: tuple[str, ...]
) -> None:
    for key in before:
        materialize(manager, daily, partition_key=key)
    run_meanwhile(manager, monkeypatch, "1")
    last = materialize(manager, daily, partition_key="1")
    there = dataset(tmp_path / "lake" / "daily.lance").to_table(filter="day = 1")
    assert there["run"].to_pylist() == [last.run_id] * 2


@pytest.mark.parametrize(
    ("column", "told"), [(None, "name the column"), ("month", "it has no column 'month'")], ids=["none", "another"]
)
def test_a_partitioned_asset_without_a_column_for_its_keys_is_refused_and_nothing_begun(
    manager: LanceIOManager, tmp_path: Path, column: str | None, told: str
) -> None:
    @dg.asset(partitions_def=DAYS, metadata={"partition_column": column} if column else {})
    def nameless(context: dg.AssetExecutionContext) -> pa.Table:
        return pa.table({"day": [int(context.partition_key)]})

    with pytest.raises(Exception, match=f'{told}.*partition_column="..."'):
        materialize(manager, nameless, partition_key="1")
    assert not (tmp_path / "lake").exists()


def test_an_output_that_is_no_table_is_refused_naming_the_asset(manager: LanceIOManager) -> None:
    with pytest.raises(Exception, match="asset nonsense returned a str"):
        materialize(manager, nonsense)


def test_an_asset_that_was_never_stored_is_named(manager: LanceIOManager) -> None:
    @dg.asset
    def reads(frame: pa.Table) -> None: ...

    with pytest.raises(Exception, match=r"frame\.lance: asset .* was never stored here"):
        materialize(manager, frame, reads, selection=[reads])


class TestOutputsOfOps:
    """Values that ops pass to each other are no assets."""

    def test_an_output_that_is_no_asset_is_refused_with_the_op_and_the_remedy(self, manager: LanceIOManager) -> None:
        @dg.op
        def fetch() -> pa.Table:
            return pa.table({"id": [1]})

        @dg.op
        def clean(table: pa.Table) -> pa.Table:
            return table

        @dg.graph_asset
        def cleaned() -> Any:
            return clean(fetch())

        with pytest.raises(Exception, match=r"output 'result' of op cleaned\.fetch is no asset.*io_manager_key"):
            materialize(manager, cleaned)

    def test_values_between_ops_may_have_another_io_manager(self, manager: LanceIOManager, tmp_path: Path) -> None:
        @dg.op(out=dg.Out(io_manager_key="values"))
        def fetch() -> pa.Table:
            return pa.table({"id": [1]})

        @dg.op
        def clean(table: pa.Table) -> pa.Table:
            return table

        @dg.graph_asset
        def cleaned() -> Any:
            return clean(fetch())

        values = dg.FilesystemIOManager(base_dir=str(tmp_path / "values"))
        assert dg.materialize([cleaned], resources={"io_manager": manager, "values": values}).success
        assert dataset(tmp_path / "lake" / "cleaned.lance").count_rows() == 1

    def test_an_op_without_a_value_stores_nothing(self, manager: LanceIOManager, tmp_path: Path) -> None:
        @dg.op
        def notify():  # type: ignore[no-untyped-def]
            pass

        @dg.op
        def after(before: Any) -> None: ...

        @dg.job(resource_defs={"io_manager": manager})
        def notifying() -> None:
            notify()

        @dg.job(resource_defs={"io_manager": manager})
        def in_order() -> None:
            after(notify())

        assert notifying.execute_in_process().success and not (tmp_path / "lake").exists()
        with pytest.raises(Exception, match="output 'result' of op notify is no asset"):
            in_order.execute_in_process()
