"""Azure Blob Storage, through adlfs."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import Any

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.store.services.contract import GENERAL_ALIASES, ListedObject, Service, proxies_of
from lance_ops.store.services.credential_sources import environment_path
from lance_ops.store.storage_options import Aliases, read_bool, read_count, read_options, read_seconds

__all__ = ["Azure", "names_identity"]

_ALIASES: Aliases = {
    **GENERAL_ALIASES,
    "account_name": ("azure_storage_account_name", "account_name"),
    "account_key": (
        "azure_storage_account_key",
        "azure_storage_access_key",
        "azure_storage_master_key",
        "account_key",
        "access_key",
    ),
    "client_id": ("azure_storage_client_id", "azure_client_id", "client_id"),
    "client_secret": ("azure_storage_client_secret", "azure_client_secret", "client_secret"),
    "tenant_id": (
        "azure_storage_tenant_id",
        "azure_tenant_id",
        "azure_storage_authority_id",
        "azure_authority_id",
        "tenant_id",
        "authority_id",
    ),
    "sas_token": ("azure_storage_sas_key", "azure_storage_sas_token", "sas_key", "sas_token"),
    "bearer_token": ("azure_storage_token", "bearer_token", "token"),
    "endpoint": ("azure_storage_endpoint", "azure_endpoint", "endpoint"),
    "use_emulator": ("azure_storage_use_emulator", "object_store_use_emulator", "use_emulator"),
    "skip_signature": ("azure_skip_signature", "skip_signature"),
    "use_fabric": ("azure_use_fabric_endpoint", "use_fabric_endpoint"),
    "use_cli": ("azure_use_azure_cli", "use_azure_cli"),
    "token_file": ("azure_federated_token_file", "federated_token_file"),
    "identity_object": ("azure_object_id", "object_id"),
    "identity_resource": ("azure_msi_resource_id", "msi_resource_id"),
    "identity_endpoint": ("azure_msi_endpoint", "azure_identity_endpoint", "identity_endpoint", "msi_endpoint"),
    # Accepted without effect: we set no tags.
    "disable_tagging": ("azure_disable_tagging", "disable_tagging"),
}
_FABRIC_HOST = "blob.fabric.microsoft.com"
# The emulator's only account; its key is public and the same on every machine.
_EMULATOR_ACCOUNT = "devstoreaccount1"
_EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_EMULATOR_ENDPOINT = f"http://127.0.0.1:10000/{_EMULATOR_ACCOUNT}"
_RETRIES = 5
_TOKEN_SECONDS = 3600
_PAGE_NAMES = 5000  # the most that Azure returns in one request
# Markers of directories in accounts with a hierarchical namespace, and adlfs's own.
_DIRECTORY_MARKS = ("hdi_isfolder", "is_directory")
_NOT_FOUND = 404
_REFUSALS = frozenset({400, 401, 403, 404, 405, 411, 413, 501})


class Azure(Service):
    """Conditional creates are uploads with `If-None-Match: *`; adlfs sends it for `mode="create"`.

    URIs name the container, and the account where they have a place for it: `az://container/path`,
    `abfss://container@account.dfs.core.windows.net/path`.
    """

    schemes = ("az", "abfs", "abfss")
    package = "adlfs"
    extra = "azure"
    takes_time_limits = True
    credential_variables = ("azure_", "identity_", "imds_", "msi_")

    def protocol(self, scheme: str) -> str:
        return "abfs"

    def account(self, authority: str) -> str:
        return authority.partition("@")[2]

    def bucket(self, authority: str) -> str:
        return authority.partition("@")[0]

    def credential_files(self, options: Mapping[str, object]) -> Iterable[str]:
        found = _read("", options)
        folder = os.environ.get("AZURE_CONFIG_DIR") or os.path.expanduser("~/.azure")
        return (
            *((found["token_file"],) if "token_file" in found else ()),
            *environment_path("AZURE_CLIENT_CERTIFICATE_PATH"),
            os.path.join(folder, "azureProfile.json"),  # who is logged in with Azure's command line
        )

    def arguments(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        found = _read(authority, options)
        if "identity_endpoint" in found:
            raise UnsupportedFeature(
                "azure_msi_endpoint among storage_options; the environment's IDENTITY_ENDPOINT is used"
            )
        proxies_of(found)
        credentials = ("account_name", "account_key", "client_id", "client_secret", "tenant_id", "sas_token")
        taken = ("account_name",) if names_identity(found) else credentials
        arguments: dict[str, Any] = {name: found[name] for name in taken if name in found}
        if read_bool(found, "use_fabric") and "account_name" in found:
            arguments["account_host"] = f"{found['account_name']}.{_FABRIC_HOST}"
        if "endpoint" in found:
            arguments = {"connection_string": _connection_string(found)}
        if read_bool(found, "skip_signature") or names_identity(found):
            arguments["anon"] = True
        for ours, theirs in (("connect_timeout", "connection_timeout"), ("request_timeout", "read_timeout")):
            seconds = read_seconds(found, ours)
            if seconds is not None:
                arguments[theirs] = seconds
        return arguments

    def by_name(self, authority: str, options: Mapping[str, object]) -> dict[str, str]:
        """Return the options by our names, completed from the URI and the environment, and for the emulator."""
        return _read(authority, options)

    def connect(self, kind: Callable[..., Any], authority: str, options: Mapping[str, object]) -> Any:
        fs = super().connect(kind, authority, options)
        found = _read(authority, options)
        if names_identity(found):
            fs.credential = _identity(found)
        # adlfs does not pass these on, and by default its client waits 15 seconds before a retry.
        retries = read_count(found, "max_retries")
        network: dict[str, Any] = {
            "retry_total": _RETRIES if retries is None else retries,
            "initial_backoff": 1,
            "increment_base": 2,
            "random_jitter_range": 1,
            "connection_verify": not read_bool(found, "allow_invalid_certificates"),
        }
        proxies = proxies_of(found)
        if proxies:
            network["proxies"] = proxies
        made = fs.service_client
        credential = fs.credential if names_identity(found) else made.credential
        fs.service_client = type(made)(made.url, credential=credential, **network)
        return fs

    def create(self, fs: Any, key: str, data: bytes) -> None:
        fs.pipe_file(key, data, mode="create")

    def lists_in_order(self, authority: str, options: Mapping[str, object]) -> bool:
        return True

    def is_refusal(self, error: Exception) -> bool:
        return getattr(error, "status_code", None) in _REFUSALS

    def size(self, fs: Any, key: str) -> int:
        container, _, name = key.partition("/")
        found = _ask(fs, fs.service_client.get_blob_client(container, name).get_blob_properties)
        if _stands_for_directory(found):
            raise FileNotFoundError(key)
        return int(found.size)

    def walk(self, fs: Any, directory: str) -> Iterator[ListedObject]:
        container, _, prefix = directory.partition("/")
        client = fs.service_client.get_container_client(container)
        pages = client.list_blobs(f"{prefix}/" if prefix else None, include=["metadata"], results_per_page=_PAGE_NAMES)
        for found in _objects(fs, pages):
            yield ListedObject(f"{container}/{found.name}", int(found.size), found.last_modified.astimezone(UTC))

    def names(self, fs: Any, directory: str, limit: int | None) -> Mapping[str, str | None]:
        container, _, prefix = directory.partition("/")
        start = f"{prefix}/" if prefix else ""
        page = min(limit or _PAGE_NAMES, _PAGE_NAMES)
        client = fs.service_client.get_container_client(container)
        names: dict[str, str | None] = {}
        for found in _objects(fs, client.walk_blobs(start or None, include=["metadata"], results_per_page=page)):
            names[found.name[len(start) :]] = found.etag
            if len(names) == limit:
                break
        return names

    def now(self, fs: Any, directory: str) -> datetime:
        dates: list[str] = []
        client = fs.service_client.get_container_client(directory.partition("/")[0])
        pages = client.list_blobs(
            results_per_page=1, raw_response_hook=lambda answer: dates.append(answer.http_response.headers["Date"])
        ).by_page()
        _next_page(fs, pages)
        return parsedate_to_datetime(dates[0])


def _objects(fs: Any, listing: Any) -> Iterator[Any]:
    """Yield the objects of a listing page by page, without those that represent directories."""
    pages = listing.by_page()
    while (page := _next_page(fs, pages)) is not None:
        yield from (found for found in page if not (found.name.endswith("/") or _stands_for_directory(found)))


def _stands_for_directory(found: Any) -> bool:
    marks = getattr(found, "metadata", None) or {}
    return any(marks.get(mark) == "true" for mark in _DIRECTORY_MARKS)


def _next_page(fs: Any, pages: AsyncIterator[AsyncIterator[Any]]) -> list[Any] | None:
    """Return a page's entries, None after the last page."""

    async def read() -> list[Any] | None:
        page = await anext(pages, None)
        return None if page is None else [found async for found in page]

    found: list[Any] | None = _ask(fs, read)
    return found


def _ask(fs: Any, request: Callable[[], Awaitable[Any]]) -> Any:
    """Make a request with the Azure client and return the answer. Raises `FileNotFoundError` for a missing object."""

    async def ask() -> Any:
        try:
            return await request()
        except Exception as error:  # the client's error class may not be installed
            if getattr(error, "status_code", None) == _NOT_FOUND:
                raise FileNotFoundError(str(error)) from error
            raise

    return import_module("fsspec.asyn").sync(fs.loop, ask)


def _read(authority: str, options: Mapping[str, object]) -> dict[str, str]:
    """Return the options by our names, completed from the URI and for the emulator."""
    found = read_options(options, _ALIASES, environment_prefixes=("azure_",))
    account_of_uri = authority.partition("@")[2].partition(".")[0]
    if account_of_uri:
        found["account_name"] = account_of_uri
    if read_bool(found, "use_emulator"):
        return {
            "account_name": _EMULATOR_ACCOUNT,
            "account_key": _EMULATOR_KEY,
            "endpoint": _EMULATOR_ENDPOINT,
            "allow_http": "true",
            **found,
        }
    return found


def names_identity(found: Mapping[str, str]) -> bool:
    """Return whether the options name an identity, or hold its token. It is then used in place of a key."""
    identities = ("bearer_token", "token_file", "identity_object", "identity_resource")
    return any(name in found for name in identities) or read_bool(found, "use_cli")


def _identity(found: Mapping[str, str]) -> Any:
    """Return a credential for options without a key, a signature or a client secret."""
    if "bearer_token" in found:
        return _BearerToken(found["bearer_token"])
    identity = import_module("azure.identity.aio")
    if read_bool(found, "use_cli"):
        return identity.AzureCliCredential()
    if "token_file" in found:
        return identity.WorkloadIdentityCredential(
            tenant_id=found.get("tenant_id"), client_id=found.get("client_id"), token_file_path=found["token_file"]
        )
    names = {"object_id": found.get("identity_object"), "resource_id": found.get("identity_resource")}
    return identity.ManagedIdentityCredential(identity_config={name: value for name, value in names.items() if value})


class _BearerToken:
    """A token that the caller obtained and that cannot be renewed here."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *_: str, **__: object) -> Any:
        return import_module("azure.core.credentials").AccessToken(self._token, int(time.time()) + _TOKEN_SECONDS)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def _connection_string(found: Mapping[str, str]) -> str:
    endpoint = found["endpoint"]
    if endpoint.startswith("http://") and not read_bool(found, "allow_http"):
        raise InvalidInput("storage_options: the endpoint is plain http; say allow_http=true if that is meant")
    parts = {
        "DefaultEndpointsProtocol": endpoint.partition(":")[0],
        "AccountName": found.get("account_name"),
        "AccountKey": found.get("account_key"),
        "SharedAccessSignature": found.get("sas_token"),
        "BlobEndpoint": endpoint,
    }
    return ";".join(f"{name}={value}" for name, value in parts.items() if value)
