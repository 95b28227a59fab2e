"""The command `ingest`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from lance_ops.api import dataset, schema_to_json
from lance_ops.cli import app


def run(*arguments: object, fails: int = 0) -> str:
    result = CliRunner().invoke(app, ["ingest", *map(str, arguments)])
    assert result.exit_code == fails, result.output
    return result.output


def answer(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--json"))


@pytest.fixture
def landed(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text("ID;Day;Note\n007;31.12.2026;-\n", encoding="latin-1")
    (tmp_path / "columns.json").write_text('{"id": "string", "day": "date32:day"}')
    return tmp_path


GERMAN = ("--delimiter", ";", "--date-format", "%d.%m.%Y", "--encoding", "latin-1", "--null-value", "-")


def test_files_are_ingested_as_a_declared_schema_says(landed: Path, dataset_uri: str) -> None:
    file, columns = landed / "a.csv", landed / "columns.json"
    options = (*GERMAN, "--schema", columns)
    refused = run(dataset_uri, file, *options, fails=1)
    assert "column 'Note'" in refused and "is not in the table" in refused
    would = run(dataset_uri, file, *options, "--extra-columns", "ignore", "--dry-run")
    assert would.startswith("ingest 1 files of 1 batches\n") and "ignores Note" in would
    assert not Path(dataset_uri).exists()
    assert run(dataset_uri, file, *options, "--extra-columns", "ignore").startswith("ingested 1 row: version 1\n")
    rows = dataset(dataset_uri).to_table()
    assert (rows.schema.field("day").type, rows.column("id").to_pylist()) == (pa.date32(), ["007"])
    assert run(dataset_uri, file, *options, "--extra-columns", "ignore") == "the table holds every batch already\n"


def test_a_schema_grows_and_a_changed_batch_is_replaced(landed: Path, dataset_uri: str) -> None:
    file = landed / "a.csv"
    schema = landed / "schema.json"
    schema.write_text(json.dumps(schema_to_json(pa.schema([("id", pa.string()), ("day", pa.date32())]))))
    keyed = (*GERMAN, "--batch-column", "batch", "--batch", "monday")
    run(dataset_uri, file, *keyed, "--schema", schema, "--extra-columns", "ignore")
    file.write_text("id;day;note\n008;01.01.2027;-\n009;01.01.2027;x\n")
    assert "error: batch 'monday' was ingested in version 1" in run(dataset_uri, file, *keyed, fails=1)
    done = answer(dataset_uri, file, *keyed, "--changed", "replace", "--schema-mode", "add")
    assert (done["version"], done["num_rows"], done["replaced"]) == (3, 2, ["monday"])
    rows = dataset(dataset_uri).to_table(["id", "note", "batch"]).to_pylist()
    assert rows == [
        {"id": "008", "note": None, "batch": "monday"},
        {"id": "009", "note": "x", "batch": "monday"},
    ]


def test_a_bad_command_line_is_refused(landed: Path, dataset_uri: str) -> None:
    assert "No such file" in run(dataset_uri, landed / "none.csv", fails=1)
    (landed / "list.json").write_text("[]")
    for declared in ("absent.json", "a.csv", "list.json"):
        run(dataset_uri, landed / "a.csv", "--schema", landed / declared, fails=2)
    assert "delimiter must be one" in run(dataset_uri, landed / "a.csv", "--delimiter", "||", fails=1)
    run(dataset_uri, landed / "a.csv", "--schema-mode", "merge", fails=2)


def test_files_of_one_name_need_a_batch_and_one_file_is_not_given_twice(tmp_path: Path, dataset_uri: str) -> None:
    files = [tmp_path / "01" / "data.csv", tmp_path / "02" / "data.csv"]
    for file in files:
        file.parent.mkdir()
        file.write_text("id\n1\n")
    assert "have one name: give batch" in run(dataset_uri, *files, fails=1)
    assert "data.csv twice" in run(dataset_uri, files[0], files[0], "--dry-run", fails=1)
    assert not Path(dataset_uri).exists()
    assert answer(dataset_uri, *files, "--batch", "both", "--schema-mode", "add")["num_rows"] == 2


def test_rows_are_merged_by_key(tmp_path: Path, dataset_uri: str) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("id,v\n1,x\n2,y\n")
    second.write_text("id,v\n2,Y\n3,z\n")
    by_key = ("--mode", "upsert", "--on", "id")
    run(dataset_uri, first, "--mode", "upsert", "--key", "id")
    merged = run(dataset_uri, second, *by_key)
    assert merged.startswith("ingested 2 rows, 1 inserted, 1 updated: version 3\n") and "\nrows 2 to 3; " in merged
    assert sorted(dataset(dataset_uri).to_table().column("v").to_pylist()) == ["Y", "x", "z"]
    assert "mode 'scd2' needs keys" in run(dataset_uri, second, "--mode", "scd2", fails=1)
