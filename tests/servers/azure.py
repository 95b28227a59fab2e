"""Azure Blob Storage for tests, on 127.0.0.1: Azurite, which Microsoft develops against."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lance_ops.store import FsspecStore
from tests.processes import free_port, running
from tests.servers.node import node_command

# The emulator's one account, the same on every machine in the world and public.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class AzureServer:
    """A running server that speaks Azure's blob protocol."""

    endpoint: str
    client: str | None = None
    """The client that stores use; None for the default one."""

    @property
    def storage_options(self) -> dict[str, str]:
        """The reference implementation's keys, good for us and, without `client`, for it."""
        return {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": ACCOUNT_KEY,
            "azure_storage_endpoint": self.endpoint,
            "allow_http": "true",
            **({"store_client": self.client} if self.client else {}),
        }

    @property
    def signed_options(self) -> dict[str, str]:
        """Options with a signature of what is allowed, in place of one of each request."""
        from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

        token = generate_account_sas(
            ACCOUNT,
            ACCOUNT_KEY,
            ResourceTypes(service=True, container=True, object=True),
            AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True),
            datetime.now(UTC) + timedelta(hours=1),
        )
        return {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_sas_token": token,
            "azure_storage_endpoint": self.endpoint,
            "allow_http": "true",
            **({"store_client": self.client} if self.client else {}),
        }

    def new_uri(self, path: str = "data") -> str:
        """Return a place in a container of its own."""
        from azure.storage.blob import BlobServiceClient

        name = f"container-{uuid.uuid4().hex}"
        with BlobServiceClient(self.endpoint, credential=ACCOUNT_KEY) as client:
            client.create_container(name)
        return f"az://{name}/{path}"

    def new_store(self, path: str = "data") -> FsspecStore:
        """Return a store in a container of its own."""
        return FsspecStore(self.new_uri(path), self.storage_options)


@contextmanager
def azurite_server() -> Iterator[AzureServer]:
    """Run Azurite in a process of its own, all in its memory."""
    port = free_port()
    command = [
        *node_command("azurite", "dist/src/blob/main.js"),
        *("--blobHost", "127.0.0.1", "--blobPort", str(port)),
        *("--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck", "--silent"),
    ]
    with running(command, port):
        yield AzureServer(f"http://127.0.0.1:{port}/{ACCOUNT}")
