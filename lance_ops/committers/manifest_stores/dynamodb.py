"""A manifest store in DynamoDB, in the reference implementation's own layout, so that both can share a table.

    base_uri   S  partition key: the dataset's path in its bucket
    version    N  sort key
    path       S  where the manifest is, from the bucket's root
    size       N  of the manifest, in bytes
    committer  S  who wrote the item
    lance_ops_bucket  S  the dataset's bucket, in items of this library only; the reference ignores it

The partition key leaves out the bucket. Two datasets with the same path in two buckets would share their versions, so
an item of another bucket is refused. The table must exist.

`dynamodb://table`, or `s3+ddb://bucket/path?ddbTableName=table` as the dataset's own URI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Self

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lance_ops.committers.manifest_stores.contract import ManifestRow, ManifestStore
from lance_ops.core.errors import InvalidInput, StoreError, WriteRefused
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import environment_secrets, raise_alone, redact, secret_values
from lance_ops.store import PROCESS_RESOURCES, bucket_and_path
from lance_ops.store.services import S3

__all__ = ["DynamoDbManifestStore"]

_URL = re.compile(r"dynamodb://(?P<table>[A-Za-z0-9_.-]+)/*", re.IGNORECASE)
ENDPOINT_OPTION = "dynamodb_endpoint"
_COMMITTER = "lance_ops"
_BUCKET = "lance_ops_bucket"
_SHARED_CONFIG = frozenset({"connect_timeout", "read_timeout", "retries", "proxies", "max_pool_connections"})
"""The settings of the bucket's connection that apply to any botocore client."""
_EXISTS = "ConditionalCheckFailedException"
_REFUSALS = frozenset(
    {"AccessDeniedException", "ResourceNotFoundException", "UnrecognizedClientException", "ValidationException"}
)


@dataclass(frozen=True, slots=True)
class DynamoDbManifestStore(ManifestStore):
    """The items of one dataset; `options` are those of its bucket and may hold secrets."""

    table: str
    base_uri: str
    options: tuple[tuple[str, object], ...] = field(default=(), repr=False)
    bucket: str = ""

    @classmethod
    def open(cls, url: str, dataset_uri: str, storage_options: Mapping[str, object]) -> Self:
        """See `ManifestStore.open`."""
        match = _URL.fullmatch(url)
        if match is None:
            raise InvalidInput("manifest_store: the URL names no table; write dynamodb://table, and nothing else")
        bucket, path = bucket_and_path(dataset_uri)
        return cls(match["table"], path, tuple(sorted(storage_options.items())), bucket)

    def newest(self) -> ManifestRow | None:
        """See `ManifestStore.newest`."""
        with self._client() as client:
            found = client.query(
                TableName=self.table,
                ConsistentRead=True,
                KeyConditionExpression="base_uri = :base_uri",
                ExpressionAttributeValues={":base_uri": {"S": self.base_uri}},
                ScanIndexForward=False,
                Limit=1,
            )
        return next(map(self._row, found["Items"]), None)

    def get(self, version: int) -> ManifestRow | None:
        """See `ManifestStore.get`."""
        with self._client() as client:
            found = client.get_item(TableName=self.table, Key=self._key(version), ConsistentRead=True)
        return self._row(found["Item"]) if "Item" in found else None

    def insert(self, row: ManifestRow) -> bool:
        """See `ManifestStore.insert`."""
        try:
            self._put(row, "attribute_not_exists(base_uri) AND attribute_not_exists(version)")
        except _ConditionFailed:
            return False
        return True

    def replace(self, row: ManifestRow) -> None:
        """See `ManifestStore.replace`."""
        self._put(row, "attribute_exists(base_uri) AND attribute_exists(version)")

    def remove(self, version: int) -> None:
        """See `ManifestStore.remove`."""
        with self._client() as client:
            client.delete_item(TableName=self.table, Key=self._key(version))

    def _key(self, version: int) -> dict[str, dict[str, str]]:
        return {"base_uri": {"S": self.base_uri}, "version": {"N": str(version)}}

    def _put(self, row: ManifestRow, condition: str) -> None:
        item = {
            **self._key(row.version),
            "path": {"S": f"{self.base_uri}/{row.path}"},
            "size": {"N": str(row.size_bytes)},
            "committer": {"S": _COMMITTER},
            _BUCKET: {"S": self.bucket},
        }
        with self._client() as client:
            client.put_item(TableName=self.table, Item=item, ConditionExpression=condition)

    def _row(self, item: Mapping[str, Any]) -> ManifestRow:
        """Return the row of an item. Raises `InvalidInput` if the item belongs to a dataset in another bucket."""
        bucket = str(item.get(_BUCKET, {"S": self.bucket})["S"])
        if bucket != self.bucket:
            raise InvalidInput(
                f"DynamoDB table {self.table!r} has versions of {self.base_uri!r} in bucket {bucket!r}, and its "
                f"key has no bucket: use another table, or another path, for the dataset in bucket {self.bucket!r}"
            )
        path = str(item["path"]["S"]).removeprefix(f"{self.base_uri}/")
        return ManifestRow(int(item["version"]["N"]), path, int(item.get("size", {"N": "0"})["N"]))

    @contextmanager
    def _client(self) -> Iterator[Any]:
        key = ("dynamodb", self.options, S3().identity(dict(self.options)))
        try:
            yield PROCESS_RESOURCES.client(key, self._connect)
        except (ClientError, BotoCoreError) as error:
            code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
            kind = _ConditionFailed if code == _EXISTS else WriteRefused if code in _REFUSALS else StoreError
            secrets = secret_values(dict(self.options)) | environment_secrets(S3.credential_variables)
            raise_alone(kind(redact(f"DynamoDB table {self.table!r}: {error}", secrets)))

    def _connect(self) -> Any:
        options = dict(self.options)
        endpoint = options.pop(ENDPOINT_OPTION, None)
        of_s3 = S3().arguments("", options)
        config = {name: value for name, value in of_s3["config_kwargs"].items() if name in _SHARED_CONFIG}
        client = botocore.session.get_session().create_client(
            "dynamodb",
            region_name=of_s3["client_kwargs"].get("region_name"),
            verify=of_s3["client_kwargs"].get("verify"),
            config=Config(**config),
            endpoint_url=endpoint,
            aws_access_key_id=of_s3["key"],
            aws_secret_access_key=of_s3["secret"],
            aws_session_token=of_s3["token"],
        )
        if client.meta.endpoint_url.lower().startswith("http://") and not S3().allows_http(options):
            client.close()
            raise InvalidInput(
                "storage_options: DynamoDB's endpoint is plain http; say allow_http=true if that is meant"
            )
        return client


class _ConditionFailed(StoreError):
    """The condition of a request failed: an item exists that must not, or is missing."""
