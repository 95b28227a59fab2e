"""`sql`: COPY INTO ingests raw files, each once, by the options of Spark's readers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import fsspec
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from lance_ops.api import LanceDataset, write_dataset
from lance_ops.core.errors import (
    DatasetNotFound,
    InvalidInput,
    ObjectNotFound,
    RawFileRefused,
    SchemaMismatch,
    UnsupportedFeature,
)
from lance_ops.maintenance import ingested_batches
from lance_ops.runners import InThreads
from lance_ops.spark import sql, use_namespace
from lance_ops.spark.sql_access import copy_into
from tests.pickling_runner import PicklingRunner
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A namespace with an empty table `seen`, and a folder `in`."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("s", pa.string())])
    write_dataset(schema.empty_table(), tmp_path / "seen.lance")
    (tmp_path / "in").mkdir()
    use_namespace(spark, tmp_path)
    yield tmp_path
    use_namespace(spark, None)


@pytest.fixture
def run(spark: SparkSession, lake: Path) -> Any:
    """Run a statement with tasks in threads; return the only row."""

    def run_statement(text: str, **options: Any) -> tuple[Any, ...]:
        (row,) = sql(spark, text, runner=InThreads(), **options).collect()
        return tuple(row)

    return run_statement


def stored(lake: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in LanceDataset(lake / "seen.lance").to_table().to_pylist())


def test_files_of_a_pattern_come_in_once(run: Any, lake: Path) -> None:
    for at in (1, 2):
        (lake / "in" / f"{at}.csv").write_text(f"id;day;s\n{at};03.0{at}.2026;NA\n")
    (lake / "in" / "_SUCCESS").write_text("")
    text = (
        f"COPY INTO seen FROM '{lake}/in/*' FILEFORMAT = CSV FORMAT_OPTIONS ('HEADER' = 'true', 'delimiter' = ';', "
        "'dateFormat' = 'dd.MM.yyyy', 'nullValue' = 'NA')"
    )
    assert run(text) == (2, 2, 2)
    assert stored(lake) == [(1, date(2026, 1, 3), None), (2, date(2026, 2, 3), None)]
    assert run(text) == (None, 0, 0)
    (lake / "in" / "3.csv").write_text("id;day;s\n3;03.03.2026;c\n")
    assert run(text) == (3, 1, 1)
    assert len(stored(lake)) == 3


def test_each_format_comes_in(run: Any, lake: Path) -> None:
    rows = pa.table({"id": [1], "s": ["p"]})
    pyarrow.parquet.write_table(rows, lake / "in" / "a.parquet")
    pyarrow.orc.write_table(rows, lake / "in" / "b.orc")
    (lake / "in" / "c.json").write_text('{"id": 2, "s": "j"}\n')
    (lake / "in" / "d.csv").write_text("3,2026-01-01,c\n")
    for name, clauses in (
        ("a.parquet", "FILEFORMAT = PARQUET"),
        ("b.orc", "FILEFORMAT = orc"),
        ("c.json", "FILEFORMAT = JSON FORMAT_OPTIONS ('encoding' = 'utf-8')"),
        ("d.csv", "FORMAT_OPTIONS (header = false, 'sep' = ',')"),
    ):
        assert run(f"COPY INTO lance.`{lake}/seen.lance` FROM '{lake}/in/{name}' {clauses}")[1:] == (1, 1)
    assert sorted((row[0], row[2]) for row in stored(lake)) == [(1, "p"), (1, "p"), (2, "j"), (3, "c")]


def test_new_columns_come_in_if_schemas_are_merged(run: Any, lake: Path) -> None:
    (lake / "in" / "a.csv").write_text("id,extra\n1,x\n")
    text = f"COPY INTO seen FROM '{lake}/in/a.csv'"
    for options in ("", " COPY_OPTIONS ('mergeSchema' = 'false')"):
        with pytest.raises(SchemaMismatch, match="extra"):
            run(text + options)
    assert run(f"{text} COPY_OPTIONS ('mergeSchema' = 'true')")[1:] == (1, 1)
    assert stored(lake) == [(1, None, None, "x")]


def test_the_files_of_a_folder_come_in(run: Any, lake: Path) -> None:
    folder = lake / "in" / "day[1]"
    (folder / "below").mkdir(parents=True)
    for name in ("a.csv", "b.csv", "_c.csv", "below/d.csv"):
        (folder / name).write_text(f"id\n{len(name)}\n")
    (folder / "e.json").write_text('{"id": 9}\n')
    assert run(f"COPY INTO seen FROM '{folder}' FILEFORMAT = CSV") == (2, 2, 2)
    assert run(f"COPY INTO seen FROM '{folder}/'") == (3, 1, 1)
    assert [row[0] for row in stored(lake)] == [5, 5, 9]
    memory = fsspec.filesystem("memory")
    memory.pipe({f"/{lake.name}/folder/f.csv": b"id\n1\n", f"/{lake.name}/folder/below/g.csv": b"id\n1\n"})
    assert run(f"COPY INTO seen FROM 'memory://{lake.name}/folder/'") == (4, 1, 1)
    with pytest.raises(ObjectNotFound, match="nope.csv"):
        run(f"COPY INTO seen FROM 'memory://{lake.name}/folder/nope.csv'")


def test_columns_match_by_the_case_rule_of_the_session(spark: SparkSession, run: Any, lake: Path) -> None:
    (lake / "in" / "a.csv").write_text("ID\n1\n")
    text = f"COPY INTO seen FROM '{lake}/in/a.csv'"
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaMismatch, match="ID"):
            run(text)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert run(text)[1:] == (1, 1)


def test_policies_and_forms_of_the_verb_are_options(run: Any, lake: Path) -> None:
    (lake / "in" / "a.csv").write_text("made by x\nid;ratio\n1.000;2,5\n")
    text = f"COPY INTO seen FROM '{lake}/in/a.csv' FORMAT_OPTIONS (sep = ';', decimal_point = ',', thousands = '.', "
    text += "'skip_lines' = 1) COPY_OPTIONS "
    with pytest.raises(SchemaMismatch, match="day"):
        run(f"{text} (extra_columns = ignore, missing_columns = refuse)")
    assert run(f"{text} ('extra_columns' = 'IGNORE')")[1:] == (1, 1)
    assert stored(lake) == [(1000, None, None)]
    (lake / "in" / "a.csv").rename(lake / "in" / "b.csv")
    assert run(text.replace("a.csv", "b.csv") + "('schema_mode' = 'overwrite')")[1:] == (1, 1)
    assert LanceDataset(lake / "seen.lance").to_table().to_pylist() == [{"id": 1000, "ratio": 2.5}]


def test_files_of_a_store_come_in_with_options_of_their_own(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe({f"/{lake.name}/in/{at}/{at}.csv": f"id\n{at}\n".encode() for at in (1, 2)})
    given: list[dict[str, Any]] = []
    made = type(memory).__init__

    def remember(self: Any, *args: Any, **options: Any) -> None:
        given.append(options)
        made(self, *args, **options)

    monkeypatch.setattr(type(memory), "__init__", remember)
    text = f"COPY INTO seen FROM 'memory://{lake.name}/in/*/*.csv'"
    assert run(text, raw_storage_options={"endpoint": "here"})[1:] == (2, 2)
    assert [row[0] for row in stored(lake)] == [1, 2]
    assert {"endpoint": "here"} in given


@pytest.mark.server
def test_each_statement_lists_a_store_anew(run: Any, lake: Path, s3_server: S3Server) -> None:
    options = {"key": ACCESS_KEY, "secret": SECRET_KEY, "endpoint_url": s3_server.endpoint}
    bucket = s3_server.new_bucket()
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
    client = boto3.client("s3", endpoint_url=s3_server.endpoint, region_name="us-east-1", **keys)

    def put(name: str, number: int) -> None:
        client.put_object(Bucket=bucket, Key=f"in/{name}.csv", Body=f"id\n{number}\n".encode())

    for version, source in enumerate(("*.csv", "*.csv", "", "d.csv"), 2):
        put("abcd"[version - 2], version)
        assert run(f"COPY INTO seen FROM 's3://{bucket}/in/{source}'", raw_storage_options=options) == (version, 1, 1)
    put("a", 9)
    with pytest.raises(InvalidInput, match=r"'a\.csv' was ingested in version 2 with other content"):
        run(f"COPY INTO seen FROM 's3://{bucket}/in/*.csv'", raw_storage_options=options)
    client.close()
    assert [row[0] for row in stored(lake)] == [2, 3, 4, 5]


def test_files_that_jobs_have_not_committed_stay_out_unless_their_folder_is_named(run: Any, lake: Path) -> None:
    names = ("a.csv", "_temporary/0/b.csv", "day/.staging/c.csv", "day/d.csv")
    for name in names:
        (lake / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (lake / "in" / name).write_text("id\n1\n")
    in_store = {f"/{lake.name}/in/{name.replace('.csv', '-2.csv')}": b"id\n1\n" for name in names}
    fsspec.filesystem("memory").pipe(in_store)
    assert run(f"COPY INTO seen FROM '{lake}/in/**/*.csv'")[1:] == (2, 2)
    assert run(f"COPY INTO seen FROM 'memory://{lake.name}/in/**/*.csv'")[1:] == (2, 2)
    assert run(f"COPY INTO seen FROM '{lake}/in/_temporary/*/*.csv'")[1:] == (1, 1)


def test_folders_of_partitions_and_hidden_names_that_the_pattern_has_come_in(run: Any, lake: Path) -> None:
    for name in ("_year=2026/a.csv", "day/_export/b.csv", "day/_export/_temporary/c.csv", "day/_exported/d.csv"):
        (lake / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (lake / "in" / name).write_text("id\n1\n")
    assert run(f"COPY INTO seen FROM '{lake}/in/**/*.csv'")[1:] == (1, 1)
    assert run(f"COPY INTO seen FROM '{lake}/in/*/_export/**/*.csv'")[1:] == (1, 1)
    assert run(f"COPY INTO seen FROM 'file://{lake}/in/*/_exp*/*.csv'")[1:] == (1, 1)
    batches = ingested_batches(LanceDataset(lake / "seen.lance").snapshot)
    assert sorted(batches) == ["a.csv", "b.csv", "d.csv"]


@pytest.mark.parametrize("has_etags", [True, False])
def test_a_listed_store_is_not_asked_again_for_each_file(
    run: Any, lake: Path, monkeypatch: pytest.MonkeyPatch, has_etags: bool
) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe({f"/{lake.name}/in/{number}.csv": b"id\n1\n" for number in range(5)})
    asked: list[str] = []
    info, find, forget = type(memory).info, type(memory).find, type(memory).invalidate_cache

    def noted(self: Any, path: str, **options: Any) -> Any:
        asked.append(path)
        return info(self, path, **options)

    def with_etags(self: Any, *args: Any, **options: Any) -> Any:
        listed = find(self, *args, **options)
        return {name: {**each, "ETag": name} for name, each in listed.items()} if has_etags else listed

    def forgotten(self: Any, path: str | None = None) -> None:
        asked.append("anew")
        forget(self, path)

    monkeypatch.setattr(type(memory), "info", noted)
    monkeypatch.setattr(type(memory), "find", with_etags)
    monkeypatch.setattr(type(memory), "invalidate_cache", forgotten)
    planned: list[Any] = []

    def plan(uri: str, batches: list[Any], **options: Any) -> Any:
        planned.extend(batches)
        raise InvalidInput("planned")

    monkeypatch.setattr(copy_into, "ingest", plan)
    with pytest.raises(InvalidInput, match="planned"):
        run(f"COPY INTO seen FROM 'memory://{lake.name}/in/*.csv'")
    assert [batch.key for batch in planned] == [f"{number}.csv" for number in range(5)]
    assert sum(path.endswith(".csv") for path in asked) == (0 if has_etags else 5)
    assert 1 <= asked.count("anew") <= 2


def test_a_statement_that_cannot_mean_what_it_says_is_refused(run: Any, lake: Path) -> None:
    source = lake / "in"
    (source / "a.csv").write_text("id\n1\n")
    (source / "b.json").write_text('{"id": 1}\n')
    pyarrow.parquet.write_table(pa.table({"id": [1]}), source / "c.parquet")
    (source / "sub").mkdir()
    (source / "sub" / "a.csv").write_text("id\n1\n")
    (source / "sub" / "b").mkdir()
    (source / "sub" / "b" / "notes").write_text("")
    for rest, kind, message in (
        ("a.csv' FILEFORMAT = AVRO", InvalidInput, "no FILEFORMAT 'AVRO': there are CSV, JSON, PARQUET, ORC"),
        ("a.csv' FILEFORMAT = JSON", InvalidInput, "a.csv is CSV by its ending, not JSON"),
        ("a.csv' FORMAT_OPTIONS ('inferSchema' = 'true')", InvalidInput, "'inferSchema' for CSV: .*header, delimiter"),
        ("b.json' FORMAT_OPTIONS ('header' = 'true')", InvalidInput, "'header' for JSON: there are encoding"),
        ("c.parquet' FORMAT_OPTIONS ('header' = 'true')", InvalidInput, "for PARQUET: there are none"),
        ("a.csv' FORMAT_OPTIONS ('header' = 'x')", InvalidInput, "'header' is true or false, not 'x'"),
        ("a.csv' FORMAT_OPTIONS ('sep' = ';', 'delimiter' = ',')", InvalidInput, "'delimiter' is given twice"),
        ("a.csv' FORMAT_OPTIONS ('dateFormat' = 'dd MMM yyyy')", InvalidInput, "'dateFormat' is a pattern of yyyy"),
        ("a.csv' COPY_OPTIONS ('force' = 'true')", InvalidInput, "no copy option 'force': there are mergeSchema, sch"),
        ("a.csv' COPY_OPTIONS ('missing_columns' = 'x')", InvalidInput, "'missing_columns' is fill or refuse, not 'x'"),
        ("a.csv' COPY_OPTIONS ('mergeSchema' = true, schema_mode = add)", InvalidInput, "'schema_mode' is given twice"),
        ("a.csv' FORMAT_OPTIONS (skip_lines = x)", InvalidInput, "'skip_lines' is a whole number, not 'x'"),
        ("b.json' FORMAT_OPTIONS (skip_lines = 1)", InvalidInput, "'skip_lines' for JSON: there are encoding"),
        ("sub' FILEFORMAT = ORC", InvalidInput, r"no file matches .*/sub/\*"),
        ("a.csv' COPY_OPTIONS ('mergeSchema' = '1')", InvalidInput, "'mergeSchema' is true or false, not '1'"),
        ("a.csv' PATTERN = '*.csv'", InvalidInput, "FILEFORMAT, FORMAT_OPTIONS or COPY_OPTIONS is needed"),
        ("**/*.csv'", InvalidInput, "have one name, by which a file is ingested once"),
        ("*.orc'", InvalidInput, "no file matches"),
        ("sub/b'", RawFileRefused, "its ending must be one of"),
    ):
        with pytest.raises(kind, match=message):
            run(f"COPY INTO seen FROM '{source}/{rest}")
    with pytest.raises(UnsupportedFeature, match="INSERT INTO t SELECT"):
        run(f"COPY INTO seen FROM (SELECT * FROM '{source}/a.csv')")
    with pytest.raises(InvalidInput, match="credentials in storage_options"):
        run("COPY INTO seen FROM 's3://key:secret@bucket/a.csv'")
    with pytest.raises(DatasetNotFound):
        run(f"COPY INTO lance.`{lake}/nope.lance` FROM '{source}/a.csv'")
    with pytest.raises(InvalidInput, match="nope is no Lance table"):
        run(f"COPY INTO nope FROM '{source}/a.csv'")
    assert LanceDataset(lake / "seen.lance").version == 1


def test_files_are_read_by_tasks(spark: SparkSession, lake: Path) -> None:
    (lake / "in" / "a.csv").write_text("id\n1\n")
    assert sql(spark, f"COPY INTO seen FROM '{lake}/in/a.csv'").collect()[0].rows == 1
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    shown = [str(jobs.apply(i).description()) for i in range(jobs.size())]
    assert any("lance: ingest into seen" in text for text in shown), shown
    (lake / "in" / "b.csv").write_text("id\n2\n")
    runner = PicklingRunner()
    sql(spark, f"COPY INTO seen FROM '{lake}/in/b.csv'", runner=runner)
    assert runner.task_bytes
