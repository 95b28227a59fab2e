from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from lance_ops.cli.commands import app
from lance_ops.dagster.declaration import DatasetConfig, RawFiles, StoreLocation
from lance_ops.dagster.declaration.config_files import load_dataset, load_datasets
from lance_ops.dagster.ops.landed_batches import declared_ingestion
from lance_ops.errors import ConfigError
from lance_ops.indices import ALL_INDEX_TYPES
from lance_ops.maintenance.ingest import (
    BadBatches,
    ChangedBatches,
    HistoryColumns,
    IngestOptions,
    RawLimits,
    RawReading,
    TextReading,
)
from lance_ops.verbs import IngestFiles, make_verb

pytestmark = pytest.mark.dagster


def write(folder: Path, text: str, name: str = "flights.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_minimal_declaration_has_the_defaults(tmp_path: Path) -> None:
    config = load_dataset(write(tmp_path, "name: flights\nuri: /lake/flights.lance\n"))
    assert config.raw is None
    assert config.write.max_rows_per_file == 1024 * 1024
    assert config.maintenance.cleanup.older_than_days == 14
    assert config.table().uri == "/lake/flights.lance"


def test_a_declaration_with_every_key_is_read(tmp_path: Path) -> None:
    text = """
name: bronze/flights
uri: ${LAKE}/flights.lance/
storage_options: {aws_secret_access_key: "${SECRET}"}
owners: [team:data]
raw:
  uri: ${LANDING}/flights/
  glob: "**/*.parquet"
  batch: folder
  marker: _SUCCESS
  max_files_per_tick: 7
write: {max_rows_per_file: 1000, columns: {embedding: "fixed_size_list:float:8"}}
indices: [{column: tailnum}, {column: dest, name: by_dest}]
maintenance:
  cron: null
  cleanup: {older_than_days: null, retain_versions: 3}
health: {hours_without_version: 6}
"""
    config = load_dataset(write(tmp_path, text))
    environment = {"LAKE": "s3://lake", "LANDING": "s3://in", "SECRET": "hunter2"}
    assert config.table(environment) == StoreLocation("s3://lake/flights.lance", {"aws_secret_access_key": "hunter2"})
    assert config.landing().location(environment).uri == "s3://in/flights"
    assert [index.index_name for index in config.indices] == ["tailnum_idx", "by_dest"]
    assert config.maintenance.cleanup.older_than is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("uri: x", "name: Field required"),
        ("name: Flights\nuri: x", "name: use lower case"),
        ("name: a\nuri: x\nbogus: 1", "bogus: "),
        ("name: a\nuri: x\nraw: {uri: y, settle_seconds: -1}", "raw.settle_seconds: "),
        ("name: a\nuri: x\nraw: {uri: y, max_wait_hours: 1.0e+10}", "raw.max_wait_hours: "),
        ("name: a\nuri: x\nraw: {uri: y, unmatched: refuse}", "raw.unmatched: "),
        ("name: a\nuri: x\nraw: {uri: y, key: '('}", "raw.key: not a regular expression"),
        ("name: a\nuri: x\nraw: {uri: y, key: 'x'}", r"raw.key: needs a group named key"),
        ("name: a\nuri: x\nraw: {uri: y, changed: replace}", "raw.changed: replace finds the rows of a batch by"),
        (
            "name: a\nuri: x\nraw: {uri: y}\nwrite: {mode: upsert}",
            "raw and write do not go together: mode 'upsert' needs keys",
        ),
        ("name: a\nuri: x\nraw: {uri: y, schema_mode: add, extra_columns: ignore}", "raw: schema_mode add takes extra"),
        ("name: a\nuri: x\nraw: {uri: y, text: {delimiter: ;;}}", "raw.text: delimiter must be one ASCII character"),
        ("name: a\nuri: x\nwrite: {columns: {c: text}}", "write.columns: "),
        ("name: a\nuri: x\nindices: [{column: c, type: MAGIC}]", "indices.0.type: "),
        ("name: a\nuri: x\nindices: [{column: c}, {column: c}]", "two indices are named c_idx"),
        ("name: a\nuri: x\nmaintenance: {cron: often}", "maintenance.cron: not a cron schedule"),
        ("name: a\nuri: x\nmaintenance: {timezone: Mars/Olympus}", "maintenance.timezone: not a time zone"),
        (
            "name: a\nuri: x\nmaintenance: {cleanup: {older_than_days: null}}",
            "maintenance.cleanup: give older_than_days",
        ),
        ("name: a\nuri: x\nhealth: {deleted_ratio: 2}", "health.deleted_ratio: "),
        ("name: a\nuri: x\nhealth: {hours_without_version: .inf}", "health.hours_without_version: "),
        ("name: a\nuri: x\nhealth: {hours_without_version: 1.0e+30}", "health.hours_without_version: "),
        ("name: a\nuri: x\nmaintenance: {cleanup: {older_than_days: 1.0e+9}}", "maintenance.cleanup.older_than_days: "),
        (
            "name: a\nuri: x\nmaintenance: {upkeep: {verify_after_days: 1.0e+9}}",
            "maintenance.upkeep.verify_after_days: ",
        ),
        ("name: a\nuri: x\nraw: {uri: y, glob: ''}", "raw.glob: "),
        ("name: a\nuri: x\nraw: {uri: y, marker: ''}", "raw.marker: "),
        ("name: a\nuri: x\nraw: {uri: y, marker: done/_SUCCESS}", "raw.marker: "),
        ("name: a\nuri: x\nraw: {uri: y, settle_seconds: .inf}", "raw.settle_seconds: "),
        (
            "name: a\nuri: x\nraw: {uri: y, limits: {seconds: 1.0e+12}}",
            "raw.limits: seconds must be more than 0 and at",
        ),
        (
            f"name: a\nuri: x\nraw: {{uri: y, limits: {{memory_bytes: {10**30}}}}}",
            "raw.limits: memory_bytes must be more than 0 and at most",
        ),
        ("name: a\nuri: x\nraw: {uri: y, text: {skip_lines: 3000000000}}", "raw.text: skip_lines must be from 0 to"),
        (f"name: a\nuri: x\nraw: {{uri: y}}\nwrite: {{max_rows_per_file: {10**30}}}", "max_rows_per_file must be"),
        ("name: a\nuri: x\nwrite: {data_storage_version: newest}", "write.data_storage_version: file version 'newest'"),
        ("name: a\nuri: x\nwrite: {batch_column: ''}", "write.batch_column: column '': the name is empty"),
        ("name: a\nuri: x\nwrite: {valid_to: _rowid}", "write.valid_to: column '_rowid': "),
        ("name: a\nuri: x\nwrite: {columns: {a.b: int64}}", "write.columns: column 'a.b': "),
        ("name: a\nuri: x\nindices: [{column: ''}]", "indices.0.column: "),
        ("name: a\nuri: x\nkinds: ['two words']", "group_name, owners, tags or kinds: "),
        ("name: a\nname: b\nuri: x", "line 2: key name is given twice"),
        ("name: [", "line 1: "),
        ("- a", "must be a mapping"),
    ],
)
def test_a_mistake_names_the_file_and_the_key(tmp_path: Path, text: str, key: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_dataset(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert key in str(caught.value)


def test_all_mistakes_are_reported_at_once_without_values(tmp_path: Path) -> None:
    path = write(tmp_path, "name: a\nuri: 5\nstorage_options: {secret: [hunter2]}\n")
    with pytest.raises(ConfigError) as caught:
        load_dataset(path)
    assert len(str(caught.value).splitlines()) == 2
    assert "hunter2" not in str(caught.value)


def test_the_defs_yaml_of_a_component_is_read_and_a_template_is_refused(tmp_path: Path) -> None:
    component = "type: lance_ops.dagster.LanceDatasetComponent\nattributes:\n  name: flights\n"
    config = load_dataset(write(tmp_path, component + "  uri: ${LAKE}/flights.lance\n  runner: spark\n", "defs.yaml"))
    assert (config.name, config.uri, config.raw) == ("flights", "${LAKE}/flights.lance", None)
    with pytest.raises(ConfigError, match=r"defs\.yaml: attributes\.uri: only Dagster renders templates; write \$"):
        load_dataset(write(tmp_path, component + "  uri: '{{ env.LAKE }}/flights.lance'\n", "defs.yaml"))
    with pytest.raises(ConfigError, match=r"defs\.yaml: attributes\.uri: Field required"):
        load_dataset(write(tmp_path, component, "defs.yaml"))
    for attributes in ("attributes: [name]", "attributes:", ""):
        with pytest.raises(ConfigError, match=r"defs\.yaml: attributes: must be a mapping"):
            load_dataset(write(tmp_path, f"type: lance_ops.dagster.LanceDatasetComponent\n{attributes}", "defs.yaml"))
    with pytest.raises(ConfigError, match=r"defs\.yaml: type: must be lance_ops") as caught:
        load_dataset(write(tmp_path, "type: another.Component\nattributes: {name: a, uri: x}", "defs.yaml"))
    assert "attributes" not in str(caught.value)


def test_the_command_batches_reads_a_project_s_defs_yaml_with_the_variables_of_its_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = "{name: trips, uri: '${TRIPS_LAKE}/t.lance', raw: {uri: '${TRIPS_LAKE}/in', glob: '*.csv'}}"
    write(tmp_path, f"type: lance_ops.dagster.LanceDatasetComponent\nattributes: {attributes}\n", "defs.yaml")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "empty.csv").touch()
    (tmp_path / ".env").write_text(f"TRIPS_LAKE='{tmp_path}'\nDAGSTER_HOME=\n")
    monkeypatch.chdir(tmp_path)
    with patch.dict(os.environ):
        os.environ.pop("DAGSTER_HOME", None)
        result = CliRunner().invoke(app, ["batches", "defs.yaml"])
        (tmp_path / "in" / "empty.csv").rename(tmp_path / "empty.csv")
        (tmp_path / "in").rmdir()
        without_folder = CliRunner().invoke(app, ["batches", "defs.yaml"])
    assert result.exit_code == 0, result.output
    assert "1 waiting" in result.output and "TRIPS_LAKE" not in os.environ
    assert without_folder.exit_code == 1 and f"raw.uri: there is no folder {tmp_path}/in" in without_folder.stderr


def test_a_missing_file_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing.yaml"):
        load_dataset(tmp_path / "nothing.yaml")


def test_a_folder_instead_of_a_declaration_is_told_with_the_file_to_give(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is a folder: give the YAML file that declares the dataset"):
        load_dataset(tmp_path)
    write(tmp_path, "type: x\n", "defs.yaml")
    result = CliRunner().invoke(app, ["batches", str(tmp_path)])
    assert result.exit_code == 1 and f"it is a folder: give {tmp_path / 'defs.yaml'}" in result.stderr
    absent = CliRunner().invoke(app, ["batches", str(tmp_path / "absent.yaml")])
    assert "there is no such file: give the YAML" in absent.stderr and "Errno" not in absent.stderr


def test_a_folder_is_read_in_order_and_a_name_or_a_table_is_declared_once(tmp_path: Path) -> None:
    write(tmp_path, "name: b\nuri: s3+ddb://x/b?ddbTableName=t", "1.yaml")
    write(tmp_path, "name: a\nuri: x", "2.yaml")
    assert [config.name for config in load_datasets(tmp_path)] == ["b", "a"]
    write(tmp_path, "name: b\nuri: y", "3.yaml")
    with pytest.raises(ConfigError, match=r"3\.yaml: name: b is already declared in .*1\.yaml"):
        load_datasets(tmp_path)
    write(tmp_path, "name: c\nuri: s3://x/b/", "3.yaml")
    with pytest.raises(ConfigError, match=r"3\.yaml: uri: it is the table of b in .*1\.yaml: declare a table once"):
        load_datasets(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "name: a\nuri: 5\nstorage_options: {secret: [hunter2]}\n",
        "name: a\nstorage_options:\n  secret: hunter2: x\n",
        "name: a\nstorage_options: {secret: hunter2\n",
        "name: a\nstorage_options: {secret: 'hunter2\x01'}\n",
        "name: a\nraw: {uri: [hunter2]}\nuri: x\n",
    ],
)
def test_a_wrong_file_s_error_leads_to_none_that_quotes_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_dataset(write(tmp_path, text))
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "hunter2" not in str(caught.value)


def test_a_declaration_s_text_shows_no_option(tmp_path: Path) -> None:
    raw = "{uri: 'ftp://u:hunter2@host/in', storage_options: {password: hunter2}}"
    config = load_dataset(write(tmp_path, f"name: a\nuri: x\nstorage_options: {{secret: hunter2}}\nraw: {raw}\n"))
    assert "hunter2" not in repr(config) + str(config)


def test_ingesting_without_a_landing_folder_is_refused() -> None:
    with pytest.raises(ConfigError, match="raw is not configured"):
        DatasetConfig(name="a", uri="x").landing()


def test_a_location_s_text_shows_no_secret() -> None:
    place = StoreLocation("s3://user:hunter2@bucket/a?token=hunter2", {"secret": "hunter2"})
    assert place.public_uri == "s3://bucket/a"
    assert "secret" not in repr(place) and "hunter2" not in repr(place) and "s3://bucket/a" in repr(place)
    for uri in ("ftp://u:p@ss:hunter2@host:x/in", "https://hunter2@host/in?hunter2", "s3://[hunter2:x@/in"):
        assert "hunter2" not in StoreLocation(uri).public_uri + repr(StoreLocation(uri))
    assert StoreLocation("abfss://raw@lake.dfs.core.windows.net/in").public_uri.startswith("abfss://raw@lake.")
    assert StoreLocation("/a/b c").public_uri == "/a/b c"


def test_the_limits_of_raw_files_have_the_library_s_defaults_and_reach_it() -> None:
    assert RawFiles(uri="x").reading() == RawReading()
    declared = RawFiles.model_validate({"uri": "x", "limits": {"rows": 7, "seconds": 1.5}, "isolated": False}).reading()
    assert (declared.limits.rows, declared.limits.seconds, declared.isolated) == (7, 1.5, False)
    assert declared.limits.columns == RawReading().limits.columns


def test_the_types_of_declared_indices_are_the_library_s() -> None:
    declared = DatasetConfig.model_json_schema()["$defs"]["IndexSpec"]["properties"]["type"]
    assert declared["anyOf"][0]["enum"] == [each.name for each in ALL_INDEX_TYPES]


def test_the_options_of_ingestion_have_the_library_s_defaults_and_reach_it() -> None:
    assert declared({}).ingest_options() == IngestOptions(bad_batches=BadBatches.SET_ASIDE)
    raw = {"changed": "replace", "missing_columns": "refuse", "extra_columns": "ignore", "text": {"delimiter": "|"}}
    options = declared(raw, batch_column="batch").ingest_options()
    assert options.changed_batches is ChangedBatches.REPLACE and options.batch_column == "batch"
    assert (options.missing_columns.value, options.extra_columns.value) == ("refuse", "ignore")
    assert options.reading.text == TextReading(delimiter="|")


EVERY_POLICY = {
    "missing_columns": "refuse",
    "case_sensitive": True,
    "bad": "refuse",
    "isolated": False,
    "limits": {**dict.fromkeys((each.name for each in fields(RawLimits)), 7), "memory_bytes": 64 * 1024**2},
    "text": {
        "delimiter": ";",
        "quote": "'",
        "escape": "\\",
        "header": False,
        "encoding": "latin-1",
        "null_values": ["-"],
        "empty_as_null": True,
        "date_formats": ["%d.%m.%Y"],
        "timestamp_formats": ["%d.%m.%Y %H:%M"],
        "decimal_point": ",",
        "thousands": ".",
        "skip_lines": 2,
        "distinct_names": True,
    },
}
REPLACING = EVERY_POLICY | {"changed": "replace", "extra_columns": "ignore"}
WIDENING = EVERY_POLICY | {"schema_mode": "add"}
EVERY_WRITE = {
    "columns": {"n": "int32"},
    "data_storage_version": "2.0",
    "enable_stable_row_ids": True,
    "max_rows_per_file": 7,
    "valid_from": "since",
    "valid_to": "until",
    "current": "holds",
    "batch_column": "batch",
}


@pytest.mark.parametrize(
    ("raw", "write"),
    [
        ({}, {}),
        (REPLACING, EVERY_WRITE),
        (WIDENING, EVERY_WRITE | {"mode": "scd2", "keys": ["a"]}),
        ({"changed": "append"}, {"mode": "upsert", "keys": ["a", "b"]}),
    ],
    ids=["defaults", "replacing batches", "a history", "merging"],
)
def test_a_launch_of_the_verb_has_the_options_of_the_sensor_s_runs(
    raw: dict[str, object], write: dict[str, object]
) -> None:
    config = declared(raw, **write)
    verb = make_verb("ingest_files", {"files": (), **declared_ingestion(config)})
    assert isinstance(verb, IngestFiles)
    assert verb.options() == config.ingest_options()


def test_the_declarations_above_set_every_option() -> None:
    def set_by(given: object, usual: object) -> set[str]:
        return {each.name for each in fields(usual) if getattr(given, each.name) != getattr(usual, each.name)}  # type: ignore[arg-type]  # both are dataclasses

    usual = declared({}).ingest_options()
    replacing = declared(REPLACING, **EVERY_WRITE).ingest_options()
    history = declared(WIDENING, **EVERY_WRITE | {"mode": "scd2", "keys": ["a"]}).ingest_options()
    found = set[str]().union(*(set_by(each, IngestOptions()) for each in (usual, replacing, history)))
    assert found == {each.name for each in fields(IngestOptions)} - {
        "schema",
        "max_bytes_per_task",
        "max_files_per_task",
    }
    assert set_by(replacing.reading, RawReading()) == {each.name for each in fields(RawReading)}
    assert set_by(replacing.reading.text, TextReading()) == {each.name for each in fields(TextReading)}
    assert set_by(replacing.reading.limits, RawLimits()) == {each.name for each in fields(RawLimits)}
    assert set_by(history.history, HistoryColumns()) == {each.name for each in fields(HistoryColumns)}


def declared(raw: Mapping[str, object], **write: object) -> DatasetConfig:
    return DatasetConfig.model_validate({"name": "a", "uri": "x", "raw": {"uri": "y", **raw}, "write": write})


def test_allowed_bases_reach_the_table_s_options_beside_those_that_it_has(tmp_path: Path) -> None:
    text = (
        "name: a\nuri: s3://x/t\nallowed_bases: ['s3://y', '${LAKE}/z']\nstorage_options: {allowed_bases: 's3://w'}\n"
    )
    location = load_dataset(write(tmp_path, text)).table({"LAKE": "s3://lake"})
    assert location.storage_options == {"allowed_bases": "s3://w,s3://y,s3://lake/z"}
    assert load_dataset(write(tmp_path, "name: a\nuri: s3://x/t\n")).table({}).storage_options == {}
