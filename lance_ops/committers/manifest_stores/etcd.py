"""A manifest store in etcd, by transactions over its JSON gateway: a padded key for each version.

`etcd://host:port` is plain HTTP, `etcds://host:port` TLS. Source: the public API of etcd 3, `/v3/kv/range` and
`/v3/kv/txn`.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Self

import urllib3

from lance_ops.committers.manifest_stores.contract import ManifestRow, ManifestStore, padded
from lance_ops.core.errors import InvalidInput, StoreError, WriteRefused
from lance_ops.core.records import dataclass
from lance_ops.store import PROCESS_RESOURCES

__all__ = ["EtcdManifestStore"]

_URL = re.compile(r"etcd(?P<tls>s)?://(?P<place>(?:[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?)/*", re.IGNORECASE)
_TIMEOUT_SECONDS = 10.0
_OK = 200
_REFUSALS = frozenset({400, 401, 403, 404})


@dataclass(frozen=True, slots=True)
class EtcdManifestStore(ManifestStore):
    """`endpoint` is a server's address, as in `http://127.0.0.1:2379`."""

    endpoint: str
    dataset_uri: str

    @classmethod
    def open(cls, url: str, dataset_uri: str, storage_options: Mapping[str, object]) -> Self:
        """See `ManifestStore.open`."""
        match = _URL.fullmatch(url)
        if match is None:
            raise InvalidInput("manifest_store: write etcd://host:port or etcds://host:port, without a user or a path")
        scheme = "https" if match["tls"] else "http"
        return cls(f"{scheme}://{match['place']}", dataset_uri)

    def newest(self) -> ManifestRow | None:
        """See `ManifestStore.newest`."""
        end = "1"  # a padded version begins with 0
        while True:
            key, value = self._range(
                {
                    "key": self._key(""),
                    "range_end": self._key(end),
                    "sort_order": "DESCEND",
                    "sort_target": "KEY",
                    "limit": 1,
                }
            )
            folder, slash, _ = key.removeprefix(self._prefix).partition("/")
            if not slash:
                return value
            end = f"{folder}/"  # the key is of a dataset beneath this one: go on before that folder

    def get(self, version: int) -> ManifestRow | None:
        """See `ManifestStore.get`."""
        return self._range({"key": self._key(padded(version))})[1]

    def insert(self, row: ManifestRow) -> bool:
        """See `ManifestStore.insert`."""
        return self._put(row, "EQUAL")

    def replace(self, row: ManifestRow) -> None:
        """See `ManifestStore.replace`."""
        if not self._put(row, "GREATER"):
            raise StoreError(f"etcd at {self.endpoint}: {self.dataset_uri} has no row of version {row.version}")

    def remove(self, version: int) -> None:
        """See `ManifestStore.remove`."""
        self._post("/v3/kv/deleterange", {"key": self._key(padded(version))})

    def _put(self, row: ManifestRow, created: str) -> bool:
        """Put a row if the revision that created its key, 0 for no key, compares with 0 as `created` says."""
        key = self._key(padded(row.version))
        value = json.dumps({"version": row.version, "path": row.path, "size_bytes": row.size_bytes})
        answer = self._post(
            "/v3/kv/txn",
            {
                "compare": [{"key": key, "target": "CREATE", "result": created, "create_revision": 0}],
                "success": [{"request_put": {"key": key, "value": _base64(value)}}],
            },
        )
        return bool(answer.get("succeeded", False))

    def _range(self, request: Mapping[str, object]) -> tuple[str, ManifestRow | None]:
        """Return the key and the row of the first answer, "" and None if there is none."""
        found = self._post("/v3/kv/range", request).get("kvs", [])
        if not found:
            return "", None
        return b64decode(found[0]["key"]).decode(), ManifestRow(**json.loads(b64decode(found[0]["value"])))

    def _post(self, path: str, request: Mapping[str, object]) -> dict[str, Any]:
        client: urllib3.PoolManager = PROCESS_RESOURCES.client(("etcd", self.endpoint), _connect)
        try:
            answer = client.request("POST", self.endpoint + path, json=request)
        except urllib3.exceptions.HTTPError as error:
            raise StoreError(f"etcd at {self.endpoint}: {error}") from None
        if answer.status != _OK:
            kind = WriteRefused if answer.status in _REFUSALS else StoreError
            raise kind(f"etcd at {self.endpoint} answered {answer.status}: {answer.data[:200]!r}")
        try:
            found: dict[str, Any] = answer.json()
        except ValueError:
            raise StoreError(f"etcd at {self.endpoint} answered no JSON: {answer.data[:200]!r}") from None
        return found

    @property
    def _prefix(self) -> str:
        return f"lance/{self.dataset_uri}/"

    def _key(self, name: str) -> str:
        return _base64(self._prefix + name)


def _connect() -> urllib3.PoolManager:
    return urllib3.PoolManager(timeout=_TIMEOUT_SECONDS, retries=False)


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
