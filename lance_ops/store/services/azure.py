"""Azure Blob Storage, through adlfs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_ops.core.errors import InvalidInput, UnsupportedFeature
from lance_ops.store.services.contract import GENERAL_ALIASES, Service
from lance_ops.store.storage_options import Aliases, read_bool, read_options, read_seconds

__all__ = ["Azure"]

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
    "tenant_id": ("azure_storage_tenant_id", "azure_tenant_id", "tenant_id"),
    "sas_token": ("azure_storage_sas_key", "azure_storage_sas_token", "sas_key", "sas_token"),
    "bearer_token": ("azure_storage_token", "bearer_token", "token"),
    "endpoint": ("azure_storage_endpoint", "azure_endpoint", "endpoint"),
    "use_emulator": ("azure_storage_use_emulator", "object_store_use_emulator", "use_emulator"),
}
# The emulator's one account, the same on every machine in the world and public.
_EMULATOR_ACCOUNT = "devstoreaccount1"
_EMULATOR_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_EMULATOR_ENDPOINT = f"http://127.0.0.1:10000/{_EMULATOR_ACCOUNT}"
_REFUSALS = frozenset({400, 401, 403, 404, 405, 411, 413, 501})


class Azure(Service):
    """Conditional creates are uploads with `If-None-Match: *`; adlfs sends it for `mode="create"`.

    URIs name the container, and the account where they have a place for it: `az://container/path`,
    `abfss://container@account.dfs.core.windows.net/path`.
    """

    schemes = ("az", "abfs", "abfss")
    package = "adlfs"

    def protocol(self, scheme: str) -> str:
        return "abfs"

    def bucket(self, authority: str) -> str:
        return authority.partition("@")[0]

    def arguments(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        found = read_options(options, _ALIASES, environment_prefixes=("azure_",))
        if "bearer_token" in found:
            raise UnsupportedFeature("a bearer token for Azure; use an account key, a SAS token or a client secret")
        account_of_uri = authority.partition("@")[2].partition(".")[0]
        if account_of_uri:
            found["account_name"] = account_of_uri
        if read_bool(found, "use_emulator"):
            found = {
                "account_name": _EMULATOR_ACCOUNT,
                "account_key": _EMULATOR_KEY,
                "endpoint": _EMULATOR_ENDPOINT,
                "allow_http": "true",
                **found,
            }
        credentials = ("account_name", "account_key", "client_id", "client_secret", "tenant_id", "sas_token")
        arguments: dict[str, Any] = {name: found[name] for name in credentials if name in found}
        if "endpoint" in found:
            arguments = {"connection_string": _connection_string(found)}
        for ours, theirs in (("connect_timeout", "connection_timeout"), ("request_timeout", "read_timeout")):
            seconds = read_seconds(found, ours)
            if seconds is not None:
                arguments[theirs] = seconds
        return arguments

    def create(self, fs: Any, key: str, data: bytes) -> None:
        fs.pipe_file(key, data, mode="create")

    def lists_in_order(self, authority: str, options: Mapping[str, object]) -> bool:
        return True

    def is_refusal(self, error: Exception) -> bool:
        return getattr(error, "status_code", None) in _REFUSALS


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
