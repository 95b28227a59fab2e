"""Azure Blob Storage, through obstore."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lance_ops.store.services.azure import Azure, names_identity
from lance_ops.store.services.obstore.errors import RequestFailed
from lance_ops.store.services.obstore.service import ObstoreService
from lance_ops.store.storage_options import read_bool

__all__ = ["ObstoreAzure"]

_CONDITION_FAILED = 412
_CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"
_EXISTS = "<Code>BlobAlreadyExists</Code>"
_TAKEN_OVER = {
    "account_name": "account_name",
    "account_key": "account_key",
    "client_id": "client_id",
    "client_secret": "client_secret",
    "tenant_id": "tenant_id",
    "bearer_token": "token",
    "endpoint": "endpoint",
    "token_file": "federated_token_file",
    "identity_object": "object_id",
    "identity_resource": "msi_resource_id",
}
_SWITCHES = {"skip_signature": "skip_signature", "use_fabric": "use_fabric_endpoint", "use_cli": "use_azure_cli"}


class ObstoreAzure(ObstoreService):
    """Azure Blob Storage through obstore.

    Azure answers 409 to a condition that failed, and to other conflicts with another code in the body.
    """

    store_class = "AzureStore"
    deleted_at_once = 256

    def __init__(self) -> None:
        super().__init__(Azure())

    def given(self, authority: str, options: Mapping[str, object]) -> dict[str, str]:
        return Azure().by_name(authority, options)

    def serves(self, options: Mapping[str, object]) -> bool:
        found = self.given("", options)
        if _CONNECTION_STRING in os.environ:
            return False  # adlfs alone reads it
        if "sas_token" in found:  # obstore deletes by batches, and no test shows that one is accepted with a signature
            return False
        # With both, obstore uses the key and adlfs the identity. With neither, obstore asks the machine for an identity
        # that it may not have, and adlfs asks for nothing.
        has_key = not {"account_key", "client_secret"}.isdisjoint(found)
        return has_key != names_identity(found)

    def config(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        found = self.given(authority, options)
        config: dict[str, Any] = {theirs: found[ours] for ours, theirs in _TAKEN_OVER.items() if ours in found}
        config |= {theirs: True for ours, theirs in _SWITCHES.items() if read_bool(found, ours)}
        return {"config": config}

    def address(self, config: Mapping[str, str]) -> str:
        server = config.get("endpoint") or f"https://{config.get('account_name')}.blob.core.windows.net"
        return f"{server}/{config['container_name']}"

    def is_taken(self, error: RequestFailed) -> bool:
        return error.status == _CONDITION_FAILED or _EXISTS in str(error)
