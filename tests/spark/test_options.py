"""Options of the data source, as text from Spark: no session."""

from __future__ import annotations

from dataclasses import fields

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from lance_ops.api import write_dataset
from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.core.versions import FileVersion
from lance_ops.spark.data_source import LanceSource, SourceOptions


def test_options_are_read_whatever_their_case() -> None:
    options = SourceOptions.parse(
        {
            "PATH": "/data/x.lance",
            "Version": "3",
            "columns": "a, b.c",
            "with_row_id": "TRUE",
            "num_partitions": "4",
            "data_storage_version": "2.1",
            "storage_options.aws_region": "eu-south-1",
            "v.arrow.fixed-size-list.size": "8",
        }
    )
    assert (options.path, options.version, options.columns) == ("/data/x.lance", 3, ("a", "b.c"))
    assert options.with_row_id and options.num_partitions == 4
    assert options.data_storage_version is FileVersion.V2_1
    assert options.storage_options == {"aws_region": "eu-south-1"}
    assert options.type_hints == {"v.arrow.fixed-size-list.size": "8"}


def test_columns_may_be_a_json_list_for_names_with_commas() -> None:
    assert SourceOptions.parse({"path": "x", "columns": '["a,b", "c"]'}).columns == ("a,b", "c")


def test_secrets_of_the_store_are_not_in_the_text_of_options() -> None:
    options = SourceOptions.parse({"path": "x", "storage_options.aws_secret_access_key": "hush"})
    assert "hush" not in repr(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"needs the dataset's path.*create_view"),
        ({"owner": "me", "provider": "lance", "path": "x"}, r"CREATE TABLE … USING lance: .*create_view"),
        ({"path": "x", "verison": "3"}, "no option 'verison': did you mean 'version'. The options are batch"),
        ({"path": "x", "maxFilesPerTrigger": "3"}, "did you mean 'max_fragments_per_trigger'"),
        ({"path": "x", "skipChangeCommits": "true"}, "did you mean 'skip_changes'"),
        ({"path": "x", "zzz": "3"}, "no option 'zzz': the options are batch"),
        ({"path": "x", "version": "3", "tag": "t"}, "'version' and 'tag' both name a version"),
        ({"path": "x", "versionAsOf": "3", "timestampAsOf": "2026-01-01"}, "'versionAsOf' and 'timestampAsOf' both"),
        ({"path": "x", "tag": "t", "timestamp": "2026-01-01"}, "'timestamp' and 'tag' both"),
        ({"path": "x", "tag": "t", "branch": "b"}, "'branch' and 'tag' both"),
        ({"path": "x", "version": "3", "versionasof": "3"}, "'version' and 'versionAsOf' are the same"),
        ({"path": "x", "timestampAsOf": "yesterday"}, "'timestampAsOf' is a moment like"),
        ({"path": "x", "readchangefeed": "1"}, "'readChangeFeed' is 'true' or 'false'"),
        ({"path": "x", "startingVersion": "0"}, "'startingVersion' must be a positive number"),
        ({"path": "x", "given": "x"}, "no option 'given'"),
        ({"path": "x", "version": "newest"}, "'version' must be a positive number"),
        ({"path": "x", "version": "\u0663"}, "'version' must be a positive number"),
        ({"path": "x", "num_partitions": "0"}, "'num_partitions' must be a positive number"),
        ({"path": "x", "with_row_id": "1"}, "'with_row_id' is 'true' or 'false'"),
        ({"path": "x", "columns": "[1]"}, "'columns' is not a JSON list of names"),
        ({"path": "x", "columns": "[a"}, "'columns' is not a JSON list of names"),
        ({"path": "x", "data_storage_version": "9"}, "file version '9' is unknown"),
    ],
)
def test_unknown_or_invalid_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        SourceOptions.parse(options)


def test_every_switch_is_true_or_false() -> None:
    switches = [each.name for each in fields(SourceOptions) if each.default is False]
    for name in (*switches, "merge_schema", "overwrite_schema"):
        with pytest.raises(InvalidInput, match=f"option '{name}' is 'true' or 'false', not 'no'"):
            SourceOptions.parse({"path": "x", name: "no"})


def test_an_unstable_file_version_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="2.3"):
        SourceOptions.parse({"path": "x", "data_storage_version": "2.3"})


def test_a_moment_without_a_zone_is_utc() -> None:
    plain = SourceOptions.parse({"path": "x", "timestampAsOf": "2026-01-31 12:00:00"}).timestamp
    assert plain == SourceOptions.parse({"path": "x", "timestamp": "2026-01-31T14:00:00+02:00"}).timestamp


_FOR_A_READ = {
    **dict.fromkeys(["version", "tag", "branch", "filter", "columns", "num_partitions", "rows_needed"], "1"),
    **dict.fromkeys(["starting_version", "max_rows_per_trigger", "max_fragments_per_trigger"], "1"),
    **dict.fromkeys(["with_row_id", "with_row_address", "with_fragment_id", "with_version_columns"], "true"),
    **dict.fromkeys(["push_filters", "skip_changes", "read_change_feed"], "true"),
    "max_versions_per_trigger": "1",
    "timestamp": "20260101",
    "blob_handling": "all_binary",
}


@pytest.mark.parametrize("name", sorted(_FOR_A_READ))
def test_options_for_reading_are_refused_for_a_write(name: str, dataset_uri: str) -> None:
    options = SourceOptions.parse({"path": dataset_uri, name: _FOR_A_READ[name]})
    with pytest.raises(InvalidInput, match=f"option '{name}' is for reading"):
        options.open_to_write()


def test_an_error_of_a_write_has_the_user_s_spelling_of_an_option(dataset_uri: str) -> None:
    with pytest.raises(InvalidInput, match="option 'startingVersion' is for reading"):
        SourceOptions.parse({"path": dataset_uri, "startingversion": "1"}).open_to_write()


def test_every_option_is_for_reading_or_writing_or_both() -> None:
    writes = {"path", "case_sensitive", "replace_where", "schema_mode", "batch", "data_storage_version", "query"}
    writes |= {"enable_stable_row_ids", "max_rows_per_file", "max_bytes_per_file"}
    writes |= {"storage_options", "type_hints", "config"}
    assert {field.name for field in fields(SourceOptions)} == writes | set(_FOR_A_READ) | {"given", "made_at_ns"}


def test_a_read_that_is_no_stream_is_told_so_before_what_a_stream_needs(dataset_uri: str) -> None:
    write_dataset(pa.table({"x": [1]}), dataset_uri, enable_stable_row_ids=True)
    source = LanceSource({"path": dataset_uri, "readChangeFeed": "true"})
    with pytest.raises(InvalidInput, match="option 'readChangeFeed' is for streams: use readStream"):
        source.reader(from_arrow_schema(pa.schema([("x", pa.int64())])))
