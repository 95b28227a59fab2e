"""Datasets by name: folders, patterns, YAML files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_ops.api import dataset, write_dataset
from lance_ops.api.namespaces import open_namespace
from lance_ops.core.errors import ConfigError, DatasetNotFound, InvalidInput


def make(uri: str | Path) -> str:
    write_dataset(pa.table({"x": [1]}), str(uri))
    return str(uri)


def test_a_folder_names_the_datasets_in_it(tmp_path: Path) -> None:
    flights = make(tmp_path / "flights.lance")
    make(tmp_path / "weather.lance")
    (tmp_path / "other.lance").mkdir()
    (tmp_path / "notes").mkdir()
    namespace = open_namespace(tmp_path)
    assert namespace.list_tables() == ["flights", "weather"]
    assert namespace.describe_table("flights").location == flights
    assert not namespace.table_exists("other")
    with pytest.raises(DatasetNotFound, match=r"no table 'other'.*flights, weather"):
        namespace.describe_table("other")
    assert namespace.declare_table("planes").location == str(tmp_path / "planes.lance")
    for name in ("", "..", "a/b", "../flights"):
        assert not namespace.table_exists(name)
        with pytest.raises(InvalidInput, match="no name of a table"):
            namespace.declare_table(name)


def test_a_folder_without_a_manifest_is_no_table(tmp_path: Path) -> None:
    make(tmp_path / "flights.lance")
    (tmp_path / "empty.lance" / "_versions").mkdir(parents=True)
    (tmp_path / "file.lance").mkdir()
    (tmp_path / "file.lance" / "_versions").touch()
    (tmp_path / "begun.lance" / "_versions").mkdir(parents=True)
    (tmp_path / "begun.lance" / "_versions" / ".lance_ops_tmp.1").touch()
    for namespace in (open_namespace(tmp_path), open_namespace(str(tmp_path / "*.lance"))):
        assert namespace.list_tables() == ["flights"]
        assert [namespace.table_exists(name) for name in ("flights", "empty", "file", "begun")] == [True, *[False] * 3]


@pytest.mark.parametrize("scheme", ["", "file://", "file:"])
def test_a_percent_sign_in_a_name_means_itself(tmp_path: Path, scheme: str) -> None:
    make(tmp_path / "a%20b.lance")
    namespace = open_namespace(f"{scheme}{tmp_path}")
    assert namespace.list_tables() == ["a%20b"]
    assert namespace.table_exists("a%20b") and not namespace.table_exists("a b")
    assert dataset(namespace.describe_table("a%20b").location).count_rows() == 1


def test_a_prefix_of_another_store_names_the_datasets_beneath_it() -> None:
    for name in ("flights", "weather"):
        make(f"memory://lake-of-names/{name}.lance")
    namespace = open_namespace("memory://lake-of-names")
    assert namespace.list_tables() == ["flights", "weather"]
    assert namespace.table_exists("weather")
    assert not namespace.table_exists("planes")


def test_names_that_differ_in_case_alone_are_found(tmp_path: Path) -> None:
    for name in ("Flights", "FLIGHTS", "weather"):
        make(tmp_path / f"{name}.lance")
        make(f"memory://lake-of-cases/{name}.lance")
    in_folder = open_namespace(tmp_path)
    for namespace in (in_folder, open_namespace(str(tmp_path / "*.lance"))):
        assert [*namespace.tables_like("flights")] == ["FLIGHTS", "Flights"]
        assert [*namespace.tables_like("Weather")] == ["weather"]
        assert [*namespace.tables_like("planes")] == []
    assert [*open_namespace({"Flights": "memory://f"}).tables_like("flights")] == ["Flights"]
    beneath_a_prefix = open_namespace("memory://lake-of-cases")
    assert [*beneath_a_prefix.tables_like("WEATHER")] == ["weather"]
    assert [*beneath_a_prefix.tables_like("Flights")] == ["Flights"]


def test_a_pattern_names_the_datasets_that_match(tmp_path: Path) -> None:
    flights = make(tmp_path / "a" / "flights.lance")
    make(tmp_path / "b" / "weather.lance")
    namespace = open_namespace(str(tmp_path / "*" / "*.lance"))
    assert namespace.list_tables() == ["flights", "weather"]
    assert namespace.describe_table("flights").location == flights
    with pytest.raises(InvalidInput, match="no place for a new table"):
        namespace.declare_table("planes")
    make(tmp_path / "b" / "flights.lance")
    with pytest.raises(InvalidInput, match="both named 'flights'"):
        namespace.list_tables()


def test_a_pattern_is_relative_or_a_file_uri_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flights = make(tmp_path / "a b" / "flights.lance")
    monkeypatch.chdir(tmp_path)
    for pattern in ("*/*.lance", f"file://{tmp_path}/*%20b/*.lance"):
        assert open_namespace(pattern).describe_table("flights").location == flights


def test_a_file_names_tables_with_their_storage_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_SECRET", "hunter2")
    file = tmp_path / "tables.yaml"
    file.write_text(
        """
        tables:
          flights: flights.lance
          weather:
            uri: s3://lake/weather.lance
            storage_options: {aws_secret_access_key: "${LAKE_SECRET}", allow_http: true}
        """
    )
    namespace = open_namespace(file, {"aws_region": "here"})
    assert namespace.list_tables() == ["flights", "weather"]
    assert namespace.describe_table("flights").location == str(tmp_path / "flights.lance")
    found = namespace.describe_table("weather")
    assert found.storage_options == {"aws_region": "here", "aws_secret_access_key": "hunter2", "allow_http": "true"}
    assert "hunter2" not in repr(namespace)
    with pytest.raises(InvalidInput, match="lists no table 'planes'"):
        namespace.declare_table("planes")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flights: x", "one key 'tables'"),
        ("tables: [x]", "'tables' holds names"),
        ("tables: {flights: {url: x}}", r"tables\.flights is a URI"),
        ("tables: {flights: {uri: [x]}}", r"tables\.flights\.uri must be a text"),
        ("tables: {flights: {uri: 's3://key:hunter2@b/x'}}", "holds a secret"),
        ("tables: {flights: {uri: x, storage_options: {a: '${NO_SUCH_VARIABLE}'}}}", "NO_SUCH_VARIABLE is not set"),
        ("tables: {a: &x {uri: hunter2}, b: *x}", "aliases"),
        ("tables: {a: [[[[[[hunter2]]]]]]}", "levels"),
        ("tables: {hunter2", "line 1"),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_key_without_its_values(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "tables.yml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        open_namespace(file)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="nothere.yaml"):
        open_namespace(tmp_path / "nothere.yaml")


def test_uris_by_name_are_a_namespace() -> None:
    namespace = open_namespace({"flights": "memory://f"}, {"key": "value"})
    assert namespace.describe_table("flights").location == "memory://f"
    assert namespace.describe_table("flights").storage_options == {"key": "value"}
    with pytest.raises(InvalidInput, match="secret|storage_options"):
        open_namespace("s3://key:hunter2@bucket/x")
