"""Every service there is a server of."""

from __future__ import annotations

import pytest

from tests.s3_server import S3Server
from tests.servers.azure import AzureServer
from tests.servers.gcs import GcsServer

ObjectServer = S3Server | AzureServer | GcsServer


@pytest.fixture(params=[pytest.param(service, marks=pytest.mark.server) for service in ("s3", "azure", "gcs")])
def object_server(request: pytest.FixtureRequest) -> ObjectServer:
    """A server of each service."""
    server: ObjectServer = request.getfixturevalue(f"{request.param}_server")
    return server
