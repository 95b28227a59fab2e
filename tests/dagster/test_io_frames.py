"""What the IO manager and the resource store and load: types, partitions, versions, branches."""

# No postponed annotations here: Dagster compares the annotation of `context` as it stands.
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from itertools import combinations
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lance_ops.api import LanceDataset, LanceScanner, dataset, write_dataset
from lance_ops.core.errors import InvalidInput
from lance_ops.dagster import LanceDatasetResource, LanceIOManager
from lance_ops.dagster.io.loading import load_as
from lance_ops.dagster.io.partition_rows import PartitionRows
from lance_ops.reading import bind_filter

pytestmark = pytest.mark.dagster

ROWS = {"id": [1, 2, 3], "city": ["a", "b", "a"]}
TABLE = pa.table(ROWS)
KEY = dg.AssetKey("trips")


def rows_of(found: Any) -> list[dict[str, Any]]:
    """Return what was loaded as rows, whatever its type is."""
    if isinstance(found, pl.LazyFrame):
        found = found.collect()
    if isinstance(found, LanceScanner):
        found = found.to_reader()
    if isinstance(found, LanceDataset):
        found = found.to_table()
    if isinstance(found, pd.DataFrame):
        found = pa.Table.from_pandas(found)
    rows: list[dict[str, Any]] = pa.table(found).to_pylist()
    return rows


def streamed() -> Iterator[pa.RecordBatch]:
    for number in range(3):
        yield from TABLE.slice(number, 1).to_batches()


DATA: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: pa.RecordBatchReader.from_batches(TABLE.schema, streamed()),
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "lazy polars": lambda: pl.LazyFrame(ROWS),
    "duckdb": lambda: duckdb.connect().from_arrow(TABLE),
}
TYPES = [
    pa.Table,
    pa.RecordBatchReader,
    LanceDataset,
    LanceScanner,
    pd.DataFrame,
    pl.DataFrame,
    pl.LazyFrame,
    duckdb.DuckDBPyRelation,
]


@pytest.mark.parametrize("kind", DATA)
def test_every_kind_of_data_is_stored(tmp_path: Path, kind: str) -> None:
    written = LanceDatasetResource(uri=str(tmp_path / "a.lance")).write(DATA[kind]())
    assert (written.version, rows_of(written)) == (1, TABLE.to_pylist())


@pytest.mark.parametrize("wanted", TYPES)
def test_a_dataset_is_loaded_as_every_type_whole_and_by_a_condition(tmp_path: Path, wanted: type) -> None:
    source = LanceDatasetResource(uri=str(tmp_path / "a.lance")).write(TABLE)
    found = load_as(wanted, source, None)
    assert isinstance(found, wanted)
    assert rows_of(found) == TABLE.to_pylist()
    if wanted is not LanceDataset:
        partitions = PartitionRows(KEY, dg.StaticPartitionsDefinition(["a", "b"]), ("a",), "city")
        found = load_as(wanted, source, partitions.condition(source.schema))
        assert isinstance(found, wanted)
        assert [row["id"] for row in rows_of(found)] == [1, 3]


def test_another_type_is_refused_naming_those_that_are_known(tmp_path: Path) -> None:
    source = LanceDatasetResource(uri=str(tmp_path / "a.lance")).write(TABLE)
    with pytest.raises(InvalidInput, match=r"as builtins\.dict: annotate .* polars\.LazyFrame"):
        load_as(dict, source, None)


def test_a_reader_is_written_while_it_is_read(tmp_path: Path) -> None:
    """The first rows are in a file before the last are asked for, so that a stream need not fit in memory."""
    uri, seen = tmp_path / "a.lance", []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            seen.append(any(uri.glob("data/*")))
            yield pa.record_batch({"id": pa.array(range(number * 1_000_000, (number + 1) * 1_000_000))})

    schema = pa.schema([("id", pa.int64())])
    LanceDatasetResource(uri=str(uri)).write(pa.RecordBatchReader.from_batches(schema, batches()))
    assert seen == [False, True, True]


def test_a_resource_appends_upserts_and_opens_versions_tags_and_branches(tmp_path: Path) -> None:
    uri = str(tmp_path / "a.lance")
    resource = LanceDatasetResource(uri=uri)
    resource.write(TABLE)
    resource.write(pa.table({"id": [4], "city": ["c"]}), "append")
    resource.open().tags.create("four", 2)
    resource.write(pl.DataFrame({"id": [4, 5], "city": ["d", "e"]}), "upsert", ["id"])
    assert sorted(row["city"] for row in rows_of(resource.open())) == ["a", "a", "b", "d", "e"]
    assert LanceDatasetResource(uri=uri, version=1).open().count_rows() == 3
    assert LanceDatasetResource(uri=uri, tag="four").open().version == 2
    with pytest.raises(InvalidInput, match="pinned"):
        LanceDatasetResource(uri=uri, tag="four").write(TABLE)
    with pytest.raises(InvalidInput, match="needs the key columns"):
        resource.write(TABLE, "upsert")
    dev = LanceDatasetResource(uri=uri, branch="dev")
    assert dev.open().count_rows() == 5
    dev.write(TABLE.slice(0, 1))
    assert (dev.open().count_rows(), resource.open().count_rows()) == (1, 5)
    assert LanceDatasetResource(uri=uri, branch="dev", version=dev.open().version).open().count_rows() == 1


DAYS = dg.DailyPartitionsDefinition("2026-01-01", timezone="Europe/Berlin")
HOURS = dg.HourlyPartitionsDefinition("2026-01-01-00:00")
PLACES = dg.StaticPartitionsDefinition(["x", "y"])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.date32(), [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3), date(2026, 1, 4)]),
        (pa.timestamp("us"), [datetime(2026, 1, 1, 23, 59), datetime(2026, 1, 2), datetime(2026, 1, 3, 23, 59, 59)]),
        (pa.timestamp("ms", "UTC"), [datetime(2026, 1, 1, 22, 59), datetime(2026, 1, 1, 23), datetime(2026, 1, 3, 22)]),
        (pa.string(), ["2026-01-01", "2026-01-02", "2026-01-03"]),
    ],
    ids=str,
)
def test_time_windows_are_ranges_in_the_zone_of_the_partitions(kind: pa.DataType, values: list[Any]) -> None:
    table = pa.table({"at": pa.array(values, kind)})
    found = PartitionRows(KEY, DAYS, ("2026-01-03", "2026-01-02"), "at").condition(table.schema)
    assert table.filter(found)["at"].to_pylist() == table["at"].to_pylist()[1:3]
    stored = write_dataset(table, "memory://windows", mode="overwrite")
    as_sql = bind_filter(stored.snapshot, found).to_sql()  # as Spark gets it
    assert stored.to_table(filter=as_sql)["at"].to_pylist() == table["at"].to_pylist()[1:3]


def test_a_range_of_time_windows_is_one_comparison() -> None:
    keys = tuple(f"2026-01-{day:02}" for day in range(1, 29))
    condition = str(PartitionRows(KEY, DAYS, keys, "at").condition(pa.schema([("at", pa.timestamp("us"))])))
    assert condition.count(">=") == 1


@pytest.mark.parametrize("cron", ["0 * * * *", "*/30 * * * *"])
@pytest.mark.parametrize("zone", ["Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "America/Havana", "UTC"])
def test_a_window_has_its_own_rows_or_is_refused_when_clocks_are_set_back(cron: str, zone: str) -> None:
    """Every window, and every range of windows, of the days on which clocks change, with a row every quarter hour."""
    refused = 0
    for day in ("2026-03-28", "2026-04-04", "2026-10-24", "2026-10-31"):
        start = datetime.fromisoformat(f"{day}T23:00").replace(tzinfo=ZoneInfo(zone))
        windows = dg.TimeWindowPartitionsDefinition(start, "%Y-%m-%d-%H:%M", timezone=zone, cron_schedule=cron)
        keys = windows.get_partition_keys(current_time=datetime.fromtimestamp(start.timestamp() + 6 * 3600, UTC))
        rows = [datetime.fromtimestamp(start.timestamp() + 900 * number, ZoneInfo(zone)) for number in range(24)]
        zoned = pa.table({"at": pa.array(rows, pa.timestamp("us", zone)), "row": range(len(rows))})
        naive = zoned.set_column(0, "at", pa.array([row.replace(tzinfo=None) for row in rows], pa.timestamp("us")))
        for first, last in combinations(range(len(keys) + 1), 2):
            some = tuple(keys[first:last])
            begin, end = (windows.time_window_for_partition_key(some[place]) for place in (0, -1))
            bounds = (begin.start.timestamp(), end.end.timestamp())
            own = [number for number, row in enumerate(rows) if bounds[0] <= row.timestamp() < bounds[1]]
            of = PartitionRows(KEY, windows, some, "at")
            assert zoned.filter(of.condition(zoned.schema))["row"].to_pylist() == own
            local = (begin.start.replace(tzinfo=None), end.end.replace(tzinfo=None))
            alike = [number for number, row in enumerate(rows) if local[0] <= row.replace(tzinfo=None) < local[1]]
            if alike != own:
                refused += 1
                with pytest.raises(InvalidInput, match="name a column with a zone"):
                    of.condition(naive.schema)
                continue
            assert naive.filter(of.condition(naive.schema))["row"].to_pylist() == own
    assert bool(refused) is (zone != "UTC")


@pytest.mark.parametrize("cron", ["0 2 * * *", "30 2 * * *", "0 2 * * 0", "0 2 25 * *", "0 */2 * * *"])
def test_longer_windows_that_begin_within_the_repeated_hour_divide_the_rows_by_local_time(cron: str) -> None:
    zone = ZoneInfo("Europe/Zurich")
    start = datetime(2026, 9, 20, tzinfo=zone)
    windows = dg.TimeWindowPartitionsDefinition(start, "%Y-%m-%d-%H:%M", timezone="Europe/Zurich", cron_schedule=cron)
    night, morning = (datetime(2026, 10, 25, hour, tzinfo=zone).timestamp() for hour in (0, 5))
    rows = [
        datetime.fromtimestamp(night + 900 * number, zone).replace(tzinfo=None) for number in range(24)
    ]  # until 05:00
    table = pa.table({"at": pa.array(rows, pa.timestamp("us"))})
    divided = []
    for key in windows.get_partition_keys(current_time=datetime(2026, 12, 1, tzinfo=zone)):
        window = windows.time_window_for_partition_key(key)
        if window.end.timestamp() < night or window.start.timestamp() > morning:
            continue
        found = table.filter(PartitionRows(KEY, windows, (key,), "at").condition(table.schema))["at"].to_pylist()
        divided += found
        assert all(window.start.replace(tzinfo=None) <= row < window.end.replace(tzinfo=None) for row in found)
    assert sorted(divided) == sorted(rows), "each row is in one partition"


def test_hours_in_a_column_of_dates_are_refused() -> None:
    with pytest.raises(InvalidInput, match="column 'at' holds dates, and its partitions begin within a day"):
        PartitionRows(KEY, HOURS, ("2026-01-01-05:00",), "at").condition(pa.schema([("at", pa.date32())]))


@pytest.mark.parametrize("column", [{"day": "at"}, "at", None], ids=str)
def test_a_dimension_without_a_column_is_named(column: Any) -> None:
    several = dg.MultiPartitionsDefinition({"day": DAYS, "place": PLACES})
    schema = pa.schema([("at", pa.date32()), ("place", pa.string())])
    with pytest.raises(InvalidInput, match="asset trips is partitioned: name the column of dimension"):
        PartitionRows(KEY, several, ("2026-01-01|x",), column).condition(schema)


several = dg.MultiPartitionsDefinition({"day": DAYS, "place": PLACES})


@dg.asset(partitions_def=several, metadata={"partition_column": {"day": "at", "place": "place"}})
def visits(context: dg.AssetExecutionContext) -> pl.DataFrame:
    key = context.partition_key
    assert isinstance(key, dg.MultiPartitionKey)
    day, place = (key.keys_by_dimension[name] for name in ("day", "place"))
    return pl.DataFrame({"at": [datetime.fromisoformat(f"{day}T12:00")] * 2, "place": place, "run": context.run.run_id})


@dg.asset(partitions_def=several)
def counted(visits: pd.DataFrame) -> dg.MaterializeResult[Any]:
    return dg.MaterializeResult(metadata={"places": visits["place"].tolist()})


@dg.asset(metadata={"keys": "id"})
def people() -> list[dict[str, Any]]:
    return [{"id": 1, "name": "Ada"}]


@dg.asset
def names(people: LanceDataset) -> LanceScanner:
    return people.scanner(columns=["name"])


@dg.asset(ins={"people": dg.AssetIn(metadata={"version": 1})})
def before(people: pa.Table) -> pa.Table:
    return people


@dg.asset
def astray() -> pa.Table:
    return TABLE


def test_a_multi_partition_replaces_and_reads_its_own_rows(tmp_path: Path) -> None:
    manager = LanceIOManager(base_uri=str(tmp_path))
    with dg.DagsterInstance.ephemeral() as instance:

        def run(key: str, *assets: dg.AssetsDefinition) -> dg.ExecuteInProcessResult:
            return dg.materialize(list(assets), resources={"io_manager": manager}, instance=instance, partition_key=key)

        run("2026-01-01|x", visits)
        run("2026-01-01|y", visits)
        last = run("2026-01-01|x", visits, counted)
        (event,) = last.asset_materializations_for_node("counted")
    assert event.metadata["places"].value == ["x", "x"]
    stored = dataset(tmp_path / "visits.lance").to_table()
    assert sorted(stored["place"].to_pylist()) == ["x", "x", "y", "y"]
    assert stored["run"].to_pylist().count(last.run_id) == 2


def test_a_row_of_another_partition_is_refused_and_nothing_is_committed(tmp_path: Path) -> None:
    @dg.asset(partitions_def=PLACES, metadata={"partition_column": "city"})
    def astray() -> pa.Table:
        return TABLE.set_column(1, "city", [["x", "x", "y"]])

    with pytest.raises(Exception, match="1 of 3 rows are of other partitions than x"):
        dg.materialize([astray], resources={"io_manager": LanceIOManager(base_uri=str(tmp_path))}, partition_key="x")
    assert dataset(tmp_path / "astray.lance").count_rows() == 0
    assert not any((tmp_path / "astray.lance" / "data").glob("*"))


def test_events_tell_data_version_schema_and_lineage_and_inputs_keep_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    manager = {"io_manager": LanceIOManager(base_uri=".")}
    with dg.DagsterInstance.ephemeral() as instance:
        dg.materialize([people], resources=manager, instance=instance)
        uri = tmp_path / "people.lance"
        recorded = dataset(uri).version
        LanceDatasetResource(uri=str(uri)).write([{"id": 2, "name": "Eve"}], "append")
        run = dg.materialize([people, names, before], resources=manager, instance=instance, selection=[names, before])
        (event,) = run.asset_materializations_for_node("names")
        upstream = instance.get_latest_materialization_event(people.key)
    assert rows_of(dataset(tmp_path / "names.lance")) == [{"name": "Ada"}]
    assert rows_of(dataset(tmp_path / "before.lance")) == []  # the version before the first upsert
    assert upstream is not None
    assert upstream.asset_materialization is not None
    assert upstream.asset_materialization.tags is not None
    assert upstream.asset_materialization.tags["dagster/data_version"] == str(recorded) == "2"
    schema, lineage = (event.metadata[f"dagster/column_{what}"].value for what in ("schema", "lineage"))
    assert isinstance(schema, dg.TableSchema)
    assert [column.name for column in schema.columns] == ["name"]
    assert isinstance(lineage, dg.TableColumnLineage)
    assert lineage.deps_by_column == {"name": [dg.TableColumnDep(people.key, "name")]}
    assert event.tags is not None
    assert event.tags["dagster/input_data_version/people"] == "2"


@dg.asset
def zones() -> pa.Table:
    return pa.table({"city": ["a", "b"], "zone": [1, 2]})


def loading(kind: type) -> dg.AssetsDefinition:
    """Return an asset that loads `astray` as a type, and returns it as it is."""

    def downstream(astray: Any) -> Any:
        assert isinstance(astray, kind)
        return astray

    downstream.__annotations__["astray"] = kind
    return dg.asset(downstream)


def lineage_of(run: dg.ExecuteInProcessResult, name: str) -> dict[str, list[tuple[str, str]]]:
    """Return the column lineage that the event of an asset tells, as pairs of an asset and a column."""
    (event,) = run.asset_materializations_for_node(name)
    found = event.metadata["dagster/column_lineage"].value
    assert isinstance(found, dg.TableColumnLineage)
    return {
        column: [(each.asset_key.to_user_string(), each.column_name) for each in origins]
        for column, origins in found.deps_by_column.items()
    }


@pytest.mark.parametrize("kind", TYPES)
def test_an_input_of_every_type_gives_data_versions_and_column_lineage(tmp_path: Path, kind: type) -> None:
    manager = {"io_manager": LanceIOManager(base_uri=str(tmp_path))}
    with dg.DagsterInstance.ephemeral() as instance:
        run = dg.materialize([astray, loading(kind)], resources=manager, instance=instance)
        (event,) = run.asset_materializations_for_node("downstream")
    assert lineage_of(run, "downstream") == {"id": [("astray", "id")], "city": [("astray", "city")]}
    assert event.tags is not None
    assert (event.tags["dagster/data_version"], event.tags["dagster/input_data_version/astray"]) == ("1", "1")


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_a_column_comes_from_the_columns_of_its_name_in_all_loaded_inputs(tmp_path: Path, is_partitioned: bool) -> None:
    manager = {"io_manager": LanceIOManager(base_uri=str(tmp_path))}

    @dg.asset(partitions_def=PLACES if is_partitioned else None, metadata={"partition_column": "place"})
    def joined(astray: pl.DataFrame, zones: pa.Table) -> pl.DataFrame:
        both = astray.join(pl.DataFrame(zones), on="city").rename({"id": "number"})
        return both.with_columns(place=pl.lit("x"))

    with dg.DagsterInstance.ephemeral() as instance:
        dg.materialize([astray, zones], resources=manager, instance=instance)
        run = dg.materialize(
            [astray, zones, joined],
            resources=manager,
            instance=instance,
            selection=[joined],
            partition_key="x" if is_partitioned else None,
        )
    assert lineage_of(run, "joined") == {"city": [("astray", "city"), ("zones", "city")], "zone": [("zones", "zone")]}


def test_an_asset_without_inputs_has_no_column_lineage(tmp_path: Path) -> None:
    run = dg.materialize([zones], resources={"io_manager": LanceIOManager(base_uri=str(tmp_path))})
    (event,) = run.asset_materializations_for_node("zones")
    assert "dagster/column_lineage" not in event.metadata


@pytest.mark.parametrize("by_context", [False, True])
def test_the_column_lineage_that_an_asset_states_itself_stays(tmp_path: Path, by_context: bool) -> None:
    stated = dg.TableColumnLineage({"city": [dg.TableColumnDep(zones.key, "zone")]})

    @dg.asset
    def knowing(context: dg.AssetExecutionContext, zones: pa.Table) -> dg.MaterializeResult[pa.Table]:
        if by_context:
            context.add_output_metadata({"dagster/column_lineage": stated})
            return dg.MaterializeResult(value=zones)
        return dg.MaterializeResult(value=zones, metadata={"dagster/column_lineage": stated})

    run = dg.materialize([zones, knowing], resources={"io_manager": LanceIOManager(base_uri=str(tmp_path))})
    assert lineage_of(run, "knowing") == {"city": [("zones", "zone")]}


def test_a_later_write_does_not_change_what_a_run_reads(tmp_path: Path) -> None:
    """Another run stores the upstream asset while this one runs: both steps of this run read the same version."""
    manager = {"io_manager": LanceIOManager(base_uri=str(tmp_path))}
    seen: list[int] = []
    with dg.DagsterInstance.ephemeral() as instance:

        @dg.asset
        def first(astray: LanceDataset) -> pa.Table:
            seen.append(astray.version)
            dg.materialize([globals()["astray"]], resources=manager, instance=instance)
            return TABLE

        @dg.asset(deps=[first])
        def second(astray: LanceDataset) -> pa.Table:
            seen.append(astray.version)
            return TABLE

        dg.materialize([astray], resources=manager, instance=instance)
        dg.materialize([astray, first, second], resources=manager, instance=instance)
        dg.materialize([astray, first, second], resources=manager, instance=instance, selection=[second])
    assert seen == [2, 2, 3]


def test_a_branch_keeps_the_main_branch_as_it_is(tmp_path: Path) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        for branch in (None, "dev", "dev"):
            manager = LanceIOManager(base_uri=str(tmp_path), mode="append", branch=branch)
            dg.materialize([astray], resources={"io_manager": manager}, instance=instance)
        manager = LanceIOManager(base_uri=str(tmp_path), branch="new")
        dg.materialize([people, names], resources={"io_manager": manager}, instance=instance)
    opened = dataset(tmp_path / "astray.lance")
    assert (opened.count_rows(), opened.checkout_version(("dev", None)).count_rows()) == (3, 9)
    assert dataset(tmp_path / "names.lance").count_rows() == 0
    assert dataset(tmp_path / "names.lance").checkout_version(("new", None)).count_rows() == 1


def test_what_the_documentation_shows_runs(tmp_path: Path) -> None:
    section = (Path(__file__).parents[2] / "docs" / "dagster.md").read_text().split("\n## Load and store\n")[1]
    code = section.split("```python\n")[1].split("```")[0].replace("/data/lake", str(tmp_path))
    names: dict[str, Any] = {}
    exec(compile(code, "docs/dagster.md", "exec"), names)
    job = names["defs"].resolve_implicit_global_asset_job_def()
    for day in ("2026-01-02", "2026-01-03", "2026-01-02"):
        assert job.execute_in_process(partition_key=day).success
    assert dataset(tmp_path / "rides.lance").to_table()["at"].value_counts().field("counts").to_pylist() == [2, 2]
    assert dataset(tmp_path / "riders.lance").count_rows() == 2


def test_the_event_of_a_head_pins_the_main_branch_alone(tmp_path: Path) -> None:
    """A version number means another state on each branch, and the head's events name no place."""
    seen: list[int] = []

    @dg.asset
    def reads(astray: LanceDataset) -> pa.Table:
        seen.append(astray.version)
        return TABLE

    resource = LanceDatasetResource(uri=str(tmp_path / "astray.lance"))
    for _ in range(2):
        resource.write(TABLE)
    LanceDatasetResource(uri=resource.uri, branch="dev").write(TABLE)
    with dg.DagsterInstance.ephemeral() as instance:
        event = dg.AssetMaterialization("astray", metadata={"lance/version": 1})
        instance.report_runless_asset_event(event)
        for branch in (None, "dev"):
            manager = {"io_manager": LanceIOManager(base_uri=str(tmp_path), branch=branch)}
            dg.materialize([astray, reads], resources=manager, instance=instance, selection=[reads])
    assert seen == [1, 3]
