"""The servers whose stores can use obstore, with it and without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import pytest

from tests.s3_server import S3Server
from tests.servers.azure import AzureServer
from tests.servers.gcs import GcsServer

Server = TypeVar("Server", S3Server, AzureServer)
ObjectServer = S3Server | AzureServer | GcsServer

OBJECT_SERVERS = ("s3", "azure", "gcs", "s3-obstore", "azure-obstore")
"""The names that `object_server_of` takes."""


def object_server_of(request: pytest.FixtureRequest, name: str) -> ObjectServer:
    """Return the server of a service. A name that ends with `-obstore` skips the test if that is not installed."""
    service, _, client = name.partition("-")
    server: Any = request.getfixturevalue(f"{service}_server")
    if isinstance(server, GcsServer):
        return server
    found: ObjectServer = through_obstore(server) if client else through_fsspec(server)
    return found


def through_obstore(server: Server) -> Server:
    """Return the same server for stores that use obstore."""
    pytest.importorskip("obstore", reason="obstore is not installed")
    return replace(server, client="obstore")


def through_fsspec(server: Server) -> Server:
    """Return the same server for stores that use fsspec."""
    return replace(server, client="fsspec")
