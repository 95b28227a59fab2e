"""Google Cloud Storage, through gcsfs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from lance_ops.core.errors import InvalidInput
from lance_ops.store.services.contract import GENERAL_ALIASES, ListedObject, Service, proxies_of, when_written
from lance_ops.store.storage_options import Aliases, read_bool, read_options, read_seconds

__all__ = ["Gcs"]

_ALIASES: Aliases = {
    **GENERAL_ALIASES,
    "account_file": (
        "google_service_account",
        "service_account",
        "google_service_account_path",
        "service_account_path",
        "google_application_credentials",
        "application_credentials",
    ),
    "account_key": ("google_service_account_key", "service_account_key"),
    "token": ("google_storage_token",),
    "skip_signature": ("google_skip_signature", "skip_signature"),
    "endpoint": ("google_base_url", "base_url"),
}
_ANONYMOUS = "anon"
_OBJECTS = "b/{}/o"
_OBJECT = "b/{}/o/{}"
_PAGE_NAMES = 1000  # the most that Google returns in one request
_REFUSALS = frozenset({400, 401, 403, 404, 405, 411, 413, 501})
_REFUSED = ("Forbidden", "Bad Request")  # gcsfs's messages for 403 and 400 begin so; it has no types for them


class Gcs(Service):
    """Conditional creates are uploads with `ifGenerationMatch=0`; gcsfs sends it for `mode="create"`."""

    schemes = ("gs", "gcs")
    package = "gcsfs"
    extra = "gcs"
    takes_time_limits = True
    credential_variables = ("google_", "cloudsdk_", "gce_metadata_", "storage_emulator_host")

    def protocol(self, scheme: str) -> str:
        return "gcs"

    def account(self, authority: str) -> str:
        return ""

    def credential_files(self, options: Mapping[str, object]) -> Iterable[str]:
        found = _read(options)
        folder = os.environ.get("CLOUDSDK_CONFIG") or os.path.expanduser("~/.config/gcloud")
        named = (found[name] for name in ("account_file", "token") if name in found)
        return (*named, os.path.join(folder, "application_default_credentials.json"))

    def arguments(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        found = _read(options)
        token: object = found.get("token", found.get("account_file"))
        endpoint = found.get("endpoint")
        if "account_key" in found:
            key = _account_key(found["account_key"])
            # Google does not write these two entries; the reference reads them for other servers.
            endpoint = key.get("gcs_base_url", endpoint)
            token = _ANONYMOUS if key.get("disable_oauth") else key
        if read_bool(found, "skip_signature"):
            token = _ANONYMOUS
        if endpoint and endpoint.startswith("http://") and not read_bool(found, "allow_http"):
            raise InvalidInput("storage_options: the endpoint is plain http; say allow_http=true if that is meant")
        proxies = proxies_of(found)
        return {
            "token": token,
            "endpoint_url": endpoint,
            "requests_timeout": read_seconds(found, "request_timeout"),
            "session_kwargs": {"proxy": proxies["https"]} if proxies else {},
        }

    def connect(self, kind: Callable[..., Any], authority: str, options: Mapping[str, object]) -> Any:
        # Newer releases wrap the plain class in one that asks the bucket's kind by gRPC: one more request to another
        # host, by a client that does not survive a fork.
        plain = next((base for base in getattr(kind, "__mro__", ()) if base.__module__ == "gcsfs.core"), kind)
        return super().connect(plain, authority, options)

    def create(self, fs: Any, key: str, data: bytes) -> None:
        fs.pipe_file(key, data, mode="create", chunksize=len(data) + 1)  # one request, whatever the size

    def lists_in_order(self, authority: str, options: Mapping[str, object]) -> bool:
        return True

    def is_refusal(self, error: Exception) -> bool:
        status = getattr(error, "code", None)
        return status in _REFUSALS or isinstance(error, FileNotFoundError) or str(error).startswith(_REFUSED)

    def size(self, fs: Any, key: str) -> int:
        bucket, _, name = key.partition("/")
        return int(fs.call("GET", _OBJECT, bucket, name, json_out=True)["size"])

    def walk(self, fs: Any, directory: str) -> Iterator[ListedObject]:
        bucket, _, prefix = directory.partition("/")
        for found in _pages(fs, bucket, prefix=f"{prefix}/" if prefix else ""):
            yield ListedObject(f"{bucket}/{found['name']}", int(found["size"]), when_written(found))

    def names(self, fs: Any, directory: str, limit: int | None) -> Mapping[str, str | None]:
        bucket, _, prefix = directory.partition("/")
        start = f"{prefix}/" if prefix else ""
        names: dict[str, str | None] = {}
        page = min(limit or _PAGE_NAMES, _PAGE_NAMES)
        for found in _pages(fs, bucket, prefix=start, delimiter="/", maxResults=page):
            names[found["name"][len(start) :]] = found.get("etag")
            if len(names) == limit:
                break
        return names

    def now(self, fs: Any, directory: str) -> datetime:
        headers, _ = fs.call("GET", _OBJECTS, directory.partition("/")[0], maxResults=1)
        return parsedate_to_datetime(headers["Date"])


def _read(options: Mapping[str, object]) -> dict[str, str]:
    return read_options(options, _ALIASES, environment_prefixes=("google_",))


def _pages(fs: Any, bucket: str, **request: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a listing page by page, without those that represent directories."""
    more: dict[str, Any] = {}
    while True:
        answer = fs.call("GET", _OBJECTS, bucket, **request, **more, json_out=True)
        yield from (found for found in answer.get("items", ()) if not found["name"].endswith("/"))
        if "nextPageToken" not in answer:
            return
        more = {"pageToken": answer["nextPageToken"]}


def _account_key(text: str) -> dict[str, Any]:
    try:
        key = json.loads(text)
    except json.JSONDecodeError:
        key = None
    if not isinstance(key, dict):
        # The decoder's error would quote the key.
        raise InvalidInput("storage_options: google_service_account_key is not the JSON of a key")
    return key
