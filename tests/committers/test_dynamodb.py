"""A DynamoDB table whose key has no bucket: datasets that would share versions are refused, and so is plain http."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.committers.manifest_stores import ManifestRow, open_manifest_store
from lance_ops.core.errors import InvalidInput
from tests.manifest_servers import dynamodb_table
from tests.s3_server import S3Server

ROWS = pa.table({"id": [1, 2]})


@pytest.mark.server
def test_a_dataset_of_the_same_path_in_another_bucket_is_refused(s3_server: S3Server) -> None:
    server = dynamodb_table(s3_server)
    options = {**server.storage_options, "manifest_store": server.url}
    first, second = s3_server.new_uri("lake/t"), s3_server.new_uri("lake/t")
    made = lance_ops.write_dataset(ROWS, first, storage_options=options)
    with pytest.raises(InvalidInput, match="its key has no bucket"):
        lance_ops.write_dataset(ROWS, second, storage_options=options)
    made.insert(ROWS)
    assert lance_ops.dataset(first, storage_options=options).count_rows() == 4
    other_path = lance_ops.write_dataset(ROWS, f"{second}2", storage_options=options)
    assert other_path.count_rows() == 2


@pytest.mark.server
def test_an_item_without_a_bucket_is_read_as_the_reference_wrote_it(s3_server: S3Server) -> None:
    server = dynamodb_table(s3_server)
    rows: Any = open_manifest_store(server.url, "s3://a/t", server.storage_options)
    assert rows.insert(ManifestRow(1, "_versions/1.manifest", 5))
    with rows._client() as client:
        client.update_item(TableName=rows.table, Key=rows._key(1), UpdateExpression="REMOVE lance_ops_bucket")
    assert rows.get(1) == replace(rows, bucket="b").get(1) == ManifestRow(1, "_versions/1.manifest", 5)


def test_an_endpoint_of_plain_http_needs_the_caller_s_word() -> None:
    options = {"aws_region": "us-east-1", "dynamodb_endpoint": "http://127.0.0.1:1"}
    with pytest.raises(InvalidInput, match="allow_http"):
        open_manifest_store("dynamodb://table", "s3://a/t", options).newest()
