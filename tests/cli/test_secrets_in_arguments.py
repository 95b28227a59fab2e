"""No part of a storage option comes out of a command line that is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from lance_ops.api import dataset, write_dataset
from lance_ops.cli import app, arguments
from lance_ops.cli.arguments import storage_options
from tests.cli.calls import run


class TestSecretsOnTheCommandLine:
    SECRET = "hunter2hunter2"

    @pytest.mark.parametrize(
        "given",
        [
            ["--storage-option", "{}"],
            ["--storage-option", "={}"],
            ["--storage-option", "{}="],
            ["--storage-option", "aws_secret_access_key", "{}"],
            ["--storage-option", "allow_http={} x"],
            ["--storage-option", "aws_secret_acces_key={}"],
            ["--storage-option", "{}==x"],
            ["--storage-option", "allow_http={}"],
            ["--storage-option", "connect_timeout={}"],
            ["--storage-option", "client_max_retries={}"],
            ["--storage-option", "manifest_store={}"],
            ["--storage-option", "manifest_store=postgresql://u:p@ss:{}@h:5/db"],
            ["--storage-option", "manifest_store=host=db password={}"],
            ["--storage-option", "endpoint=http://u:{}@127.0.0.1:1"],
            ["--storage-option", "aws_secret_access_key=@env:{}"],
            ["--target-storage-option", "{}"],
        ],
    )
    @pytest.mark.parametrize("command", [("inspect",), ("tags", "list"), ("health", "--json"), ("clone", "copy.lance")])
    def test_a_wrong_option_is_reported_without_its_value(self, command: tuple[str, ...], given: list[str]) -> None:
        name, *rest = command
        result = run(
            name,
            *(rest if name == "tags" else ()),
            "s3://bucket/x",
            *(rest if name != "tags" else ()),
            *(each.replace("{}", self.SECRET) for each in given),
        )
        assert result.exit_code in (1, 2), result.output
        assert self.SECRET not in result.output + repr(result.exception)

    @pytest.mark.parametrize(
        "uri", ["s3://key:{}@bucket/x", "az://c/x?sv=1&sig={}", "https://{}@host/x", "gs://b/x?token={}"]
    )
    def test_a_uri_with_a_secret_is_refused_without_it(self, uri: str) -> None:
        result = run("inspect", uri.replace("{}", self.SECRET))
        assert result.exit_code == 1 and "storage_options" in result.output
        assert self.SECRET not in result.output

    def test_options_come_from_the_environment_and_from_files(
        self, dataset_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = f"sqlite:///{tmp_path}/{self.SECRET}.db"
        write_dataset(pa.table({"x": [1]}), dataset_uri, storage_options={"manifest_store": rows})
        (tmp_path / "url").write_text(rows + "\n")
        (tmp_path / "options.json").write_text(json.dumps({"manifest_store": rows, "allow_http": True, "n": 3}))
        monkeypatch.setenv("ROWS", rows)
        opened: list[dict[str, str]] = []

        def recording(uri: str, version: Any, storage_options: dict[str, str]) -> Any:
            opened.append(storage_options)
            return dataset(uri, version, storage_options=storage_options)

        monkeypatch.setattr(arguments, "dataset", recording)
        for given in (
            ["--storage-option", "manifest_store=@env:ROWS"],
            ["--storage-option", f"manifest_store=@file:{tmp_path}/url"],
            ["--storage-options-file", f"{tmp_path}/options.json"],
        ):
            shown = run("inspect", dataset_uri, "--json", *given)
            assert shown.exit_code == 0, shown.output
            assert opened.pop()["manifest_store"] == rows
            assert self.SECRET not in shown.output
        monkeypatch.setenv("LANCE_OPS_STORAGE_OPTIONS_FILE", str(tmp_path / "options.json"))
        assert storage_options(["allow_http=false"], tmp_path / "options.json") == {
            "manifest_store": rows,
            "allow_http": "false",
            "n": "3",
        }

    def test_options_come_from_stdin(self, flights: str) -> None:
        given = json.dumps({"some_key": self.SECRET})
        result = CliRunner().invoke(app, ["inspect", flights, "--storage-options-file", "-", "--json"], input=given)
        assert result.exit_code == 0 and self.SECRET not in result.output

    @pytest.mark.parametrize(
        "content",
        [b'{"a": "hunter2hunter2"', b'["hunter2hunter2"]', b'{"a": ["hunter2hunter2"]}', b"hunter2hunter2\xff"],
    )
    def test_a_file_without_options_is_reported_without_its_content(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "options").write_bytes(content)
        result = run("inspect", "x", "--storage-options-file", str(tmp_path / "options"))
        assert result.exit_code == 2 and "--storage-options-file" in result.output
        assert self.SECRET not in result.output
        with pytest.raises(typer.BadParameter) as caught:
            storage_options(None, tmp_path / "options")
        assert caught.value.__cause__ is None and caught.value.__context__ is None

    @pytest.mark.parametrize("value", ["k=@env:NO_SUCH_VARIABLE", "k=@file:/no/such/file"])
    def test_a_missing_variable_or_file_is_a_usage_error(self, value: str) -> None:
        assert run("inspect", "x", "--storage-option", value).exit_code == 2
