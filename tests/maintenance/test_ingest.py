import threading
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import lance_ops
from lance_ops.core.schema import SchemaMode
from lance_ops.errors import InvalidInput, RetryableConflict, SchemaMismatch
from lance_ops.maintenance.ingest import IngestBatch, IngestOptions, RawFile, RawReading, ingest, survey_ingest
from lance_ops.maintenance.ingest.planning import plan_ingest
from lance_ops.maintenance.ingest.running import commit_ingest, execute


def land(folder: Path, name: str, table: pa.Table) -> IngestBatch:
    path = folder / f"{name}.parquet"
    pq.write_table(table, path)
    return IngestBatch(name, (RawFile(str(path), path.stat().st_size, f"etag-{table.num_rows}"),))


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    return folder


def day(number: int, num_rows: int = 10) -> pa.Table:
    return pa.table({"day": [number] * num_rows, "flight": list(range(num_rows))})


def test_many_batches_become_one_version(landing: Path, dataset_uri: str) -> None:
    batches = [land(landing, f"d{n}", day(n)) for n in range(7)]
    result = ingest(dataset_uri, batches, options=IngestOptions(max_files_per_task=3))
    assert (result.version, result.num_rows, result.num_fragments) == (1, 70, 3)
    assert result.ingested == tuple(f"d{n}" for n in range(7))
    assert result.rows_by_batch == dict.fromkeys(result.ingested, 10)
    dataset = lance_ops.dataset(dataset_uri)
    assert dataset.count_rows() == 70 and len(dataset.versions()) == 1
    transaction = dataset.read_transaction(1)
    assert transaction is not None
    assert transaction.transaction_properties["lance_ops.batch.d3"] == batches[3].token


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [
        ([37] * 8, [[37] * 4] * 2),  # not seven files and one
        ([90, 90, 90, 90, 90], [[90, 90], [90, 90], [90]]),
        ([130] * 4, [[130]] * 4),
        ([10, 300, 10], [[10], [300], [10]]),
        ([1, 255, 1], [[1, 255], [1]]),
        ([200] + [0] * 6, [[200] + [0] * 4, [0, 0]]),
        ([0] * 6, [[0] * 5, [0]]),
    ],
)
def test_tasks_are_few_and_about_equal_in_bytes(dataset_uri: str, sizes: list[int], shares: list[list[int]]) -> None:
    batches = [IngestBatch(str(n), (RawFile(f"{n}.parquet", size, "tag"),)) for n, size in enumerate(sizes)]
    options = IngestOptions(schema=day(0).schema, max_bytes_per_task=256, max_files_per_task=5)
    plan = plan_ingest(dataset_uri, batches, options=options)
    assert [[part.size_bytes for part in task.parts] for task in plan.tasks] == shares
    assert [key for task in plan.tasks for key in task.batch_keys] == [str(n) for n in range(len(sizes))]


def test_ingest_enables_stable_row_ids_only_on_a_new_table(landing: Path, dataset_uri: str) -> None:
    stable = IngestOptions(enable_stable_row_ids=True)
    ingest(dataset_uri, [land(landing, "d0", day(0))], options=stable)
    ingest(dataset_uri, [land(landing, "d1", day(1))], options=stable)
    table = lance_ops.dataset(dataset_uri).to_table(["day"], with_row_id=True)
    assert table.column("_rowid").to_pylist() == list(range(20))
    ingest(dataset_uri + "2", [land(landing, "d2", day(2))])
    with pytest.raises(InvalidInput, match="created without stable row ids"):
        ingest(dataset_uri + "2", [land(landing, "d3", day(3))], options=stable)


def test_a_replay_commits_nothing_and_writes_no_file(landing: Path, dataset_uri: str) -> None:
    batches = [land(landing, f"d{n}", day(n)) for n in range(2)]
    ingest(dataset_uri, batches)
    before = set(Path(dataset_uri).rglob("*"))
    again = ingest(dataset_uri, batches)
    assert (again.version, again.ingested, again.skipped) == (None, (), ("d0", "d1"))
    assert set(Path(dataset_uri).rglob("*")) == before


def test_only_the_new_batches_of_a_run_are_appended(landing: Path, dataset_uri: str) -> None:
    first, second = land(landing, "d0", day(0)), land(landing, "d1", day(1))
    ingest(dataset_uri, [first])
    result = ingest(dataset_uri, [first, second])
    assert (result.version, result.ingested, result.skipped) == (2, ("d1",), ("d0",))
    assert lance_ops.dataset(dataset_uri).count_rows() == 20


def test_a_replay_after_clean_up_still_commits_nothing(landing: Path, dataset_uri: str) -> None:
    batches = [land(landing, f"d{n}", day(n)) for n in range(3)]
    for batch in batches:
        ingest(dataset_uri, [batch])
    dataset = lance_ops.dataset(dataset_uri)
    dataset.optimize.compact_files()
    for _ in range(2):
        dataset.cleanup_old_versions(timedelta(0))
        assert ingest(dataset_uri, batches).version is None
    late = land(landing, "d9", day(9))
    ingest(dataset_uri, [late])
    dataset.cleanup_old_versions(timedelta(0))
    assert ingest(dataset_uri, [*batches, late]).version is None
    assert lance_ops.dataset(dataset_uri).count_rows() == 40


def test_a_batch_removed_by_a_restore_can_be_ingested_again(landing: Path, dataset_uri: str) -> None:
    first, second = land(landing, "d0", day(0)), land(landing, "d1", day(1))
    ingest(dataset_uri, [first])
    ingest(dataset_uri, [second])
    lance_ops.dataset(dataset_uri, version=1).restore()
    result = ingest(dataset_uri, [first, second])
    assert (result.ingested, result.skipped) == (("d1",), ("d0",))
    assert lance_ops.dataset(dataset_uri).count_rows() == 20


def test_the_same_key_with_other_content_is_refused(landing: Path, dataset_uri: str) -> None:
    ingest(dataset_uri, [land(landing, "d0", day(0))])
    with pytest.raises(InvalidInput, match="'d0' was ingested in version 1 with other content"):
        ingest(dataset_uri, [land(landing, "d0", day(0, num_rows=11))])


def test_two_concurrent_runs_append_a_batch_once(landing: Path, dataset_uri: str) -> None:
    ingest(dataset_uri, [land(landing, "d0", day(0))])
    batch = land(landing, "d1", day(1))
    plans = [plan_ingest(dataset_uri, [batch]) for _ in range(2)]
    outcomes = [[execute(task) for task in plan.tasks] for plan in plans]
    commit_ingest(plans[0], outcomes[0])
    with pytest.raises(RetryableConflict, match="batch 'd1'"):
        commit_ingest(plans[1], outcomes[1])
    data_files = list((Path(dataset_uri) / "data").iterdir())
    assert len(data_files) == 2

    results = []
    late = land(landing, "d2", day(2))
    racers = [threading.Thread(target=lambda: results.append(ingest(dataset_uri, [late]))) for _ in range(4)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert sorted(result.version is None for result in results) == [False, True, True, True]
    assert lance_ops.dataset(dataset_uri).count_rows("day = 2") == 10


def test_a_file_that_does_not_fit_the_schema_is_named_and_nothing_is_appended(landing: Path, dataset_uri: str) -> None:
    ingest(dataset_uri, [land(landing, "d0", day(0))])
    good = land(landing, "d1", day(1))
    bad = land(landing, "d2", pa.table({"day": ["two"], "flight": [1]}))
    before = set(Path(dataset_uri).rglob("*"))
    with pytest.raises(SchemaMismatch, match=r"d2\.parquet.*'day'"):
        ingest(dataset_uri, [good, bad], options=IngestOptions(max_files_per_task=1))
    assert set(Path(dataset_uri).rglob("*")) == before


def test_an_unreadable_raw_file_is_named_in_the_error(landing: Path, dataset_uri: str) -> None:
    path = landing / "broken.parquet"
    path.write_bytes(b"PAR1 this is not parquet PAR1")
    with pytest.raises(InvalidInput, match=r"broken\.parquet"):
        ingest(dataset_uri, [IngestBatch("broken", (RawFile(str(path), 29, "t"),))])
    with pytest.raises(InvalidInput, match="ending"):
        ingest(dataset_uri, [IngestBatch("x", (RawFile(str(landing / "x.docx"), 1, "t"),))])


def test_a_new_table_has_the_columns_of_all_raw_files_if_columns_may_be_added(landing: Path, dataset_uri: str) -> None:
    narrow = land(landing, "a", pa.table({"x": pa.array([1], pa.int32())}))
    wide = land(landing, "b", pa.table({"x": pa.array([1 << 40]), "y": ["late column"]}))
    with pytest.raises(SchemaMismatch, match=r"b\.parquet: column 'y'"):
        ingest(dataset_uri, [narrow, wide])
    ingest(dataset_uri, [narrow, wide], options=IngestOptions(schema_mode=SchemaMode.ADD))
    assert lance_ops.dataset(dataset_uri).to_table().to_pylist() == [
        {"x": 1, "y": None},
        {"x": 1 << 40, "y": "late column"},
    ]


def test_a_survey_tells_that_no_column_is_taken_from_the_names_of_folders(landing: Path, dataset_uri: str) -> None:
    lance_ops.write_dataset(pa.table({"year": [2025], "month": [1], "x": [0]}), dataset_uri)
    folder = landing / "year=2026" / "month=2"
    folder.mkdir(parents=True)
    batch = land(folder, "a", pa.table({"x": [1], "month": [2]}))
    (file,) = survey_ingest(dataset_uri, [batch], options=IngestOptions(reading=RawReading(isolated=False))).files
    assert file.effects == ("fills year with nulls", "takes no year from the names of its folders")


def test_raw_files_are_read_by_their_file_ending(landing: Path, dataset_uri: str) -> None:
    table = day(1)
    pyarrow.csv.write_csv(table, landing / "a.csv")
    pyarrow.feather.write_feather(table, landing / "b.arrow", compression="uncompressed")
    (landing / "c.jsonl").write_text("".join(f'{{"day": 1, "flight": {n}}}\n' for n in range(10)))
    batches = [IngestBatch(name, (RawFile(str(landing / name), 1, "t"),)) for name in ("a.csv", "b.arrow", "c.jsonl")]
    assert ingest(dataset_uri, batches).num_rows == 30


def test_batches_without_key_or_files_and_duplicates_are_refused(landing: Path, dataset_uri: str) -> None:
    batch = land(landing, "d0", day(0))
    with pytest.raises(InvalidInput, match="twice"):
        ingest(dataset_uri, [batch, batch])
    with pytest.raises(InvalidInput, match="key"):
        IngestBatch("", batch.files)
    with pytest.raises(InvalidInput, match="no files"):
        IngestBatch("d0", ())
    with pytest.raises(InvalidInput, match="no batches"):
        ingest(dataset_uri, [])
