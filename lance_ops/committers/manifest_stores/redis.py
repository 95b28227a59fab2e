"""A manifest store in Redis: for each dataset a hash from version to row, and a sorted set of the versions.

One script adds a version to both, and Redis runs a script atomically. A server that may lose answered writes is
refused: it must keep an append-only file and always sync it (`appendonly yes`, `appendfsync always`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Self

import redis

from lance_ops.committers.manifest_stores.contract import ManifestRow, ManifestStore, padded
from lance_ops.core.errors import InvalidInput, StoreError, UnsafeStore
from lance_ops.core.records import dataclass
from lance_ops.core.redaction import raise_alone, redact, secret_values
from lance_ops.store import PROCESS_RESOURCES

__all__ = ["RedisManifestStore"]

_INSERT = """
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('ZADD', KEYS[2], 0, ARGV[1])
return 1
"""
_REPLACE = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
"""
_REMOVE = """
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('HDEL', KEYS[1], ARGV[1])
"""
_parse_url: Any = redis.connection.parse_url  # untyped
_TIMEOUT_SECONDS = 10.0  # unless the URL sets one; without a timeout, a hanging server blocks a commit for ever
_DURABLE = {"appendonly": "yes", "appendfsync": "always"}


@dataclass(frozen=True, slots=True)
class RedisManifestStore(ManifestStore):
    """`url` is redis-py's (`redis://user:password@host:port/database`, `rediss://`, `unix://`)."""

    url: str = field(repr=False)
    dataset_uri: str

    @classmethod
    def open(cls, url: str, dataset_uri: str, storage_options: Mapping[str, object]) -> Self:
        """See `ManifestStore.open`."""
        try:
            _parse_url(url)
        except Exception:  # noqa: BLE001 - it raises whatever a part of the URL fails with, and quotes the part
            raise_alone(
                InvalidInput(
                    "manifest_store: redis-py cannot read the URL; write redis://user:password@host:port/database, "
                    "and in a password %40 for @, %3A for : and %2F for /"
                )
            )
        return cls(url, dataset_uri)

    def newest(self) -> ManifestRow | None:
        """See `ManifestStore.newest`."""
        with self._client() as client:
            newest = client.zrevrange(self._versions, 0, 0)  # members of equal score are in the order of their bytes
        return self.get(int(newest[0])) if newest else None

    def get(self, version: int) -> ManifestRow | None:
        """See `ManifestStore.get`."""
        with self._client() as client:
            found = client.hget(self._rows, padded(version))
        return None if found is None else ManifestRow(version, **json.loads(found))

    def insert(self, row: ManifestRow) -> bool:
        """See `ManifestStore.insert`."""
        with self._client() as client:
            return bool(client.eval(_INSERT, 2, self._rows, self._versions, padded(row.version), _encode(row)))

    def replace(self, row: ManifestRow) -> None:
        """See `ManifestStore.replace`."""
        with self._client() as client:
            is_replaced = client.eval(_REPLACE, 1, self._rows, padded(row.version), _encode(row))
        if not is_replaced:
            raise StoreError(f"Redis as manifest store: {self.dataset_uri} has no row of version {row.version}")

    def remove(self, version: int) -> None:
        """See `ManifestStore.remove`."""
        with self._client() as client:
            client.eval(_REMOVE, 2, self._rows, self._versions, padded(version))

    @property
    def _rows(self) -> str:
        return f"lance:{{{self.dataset_uri}}}:rows"  # the braces keep both keys on one node of a cluster

    @property
    def _versions(self) -> str:
        return f"lance:{{{self.dataset_uri}}}:versions"

    @contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            yield PROCESS_RESOURCES.client(("redis", self.url), self._connect)
        except redis.RedisError as error:
            secrets = secret_values({"manifest_store": self.url})
            raise_alone(StoreError(redact(f"Redis as manifest store of {self.dataset_uri}: {error}", secrets)))

    def _connect(self) -> Any:
        client: Any = redis.Redis.from_url(
            self.url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS
        )
        try:
            said = {**client.config_get("appendonly"), **client.config_get("appendfsync")}
        except redis.ResponseError:  # hosted servers do not show their settings
            return client
        settings = {_text(key): _text(value) for key, value in said.items()}
        if settings != _DURABLE:
            raise UnsafeStore(f"Redis may lose commits after a crash: it has {settings}, set {_DURABLE}")
        return client


def _encode(row: ManifestRow) -> str:
    return json.dumps({"path": row.path, "size_bytes": row.size_bytes})


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
