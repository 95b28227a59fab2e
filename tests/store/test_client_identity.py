"""Whose credentials a client uses: those of the environment, profiles and files of now, renewed where they expire."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lance_ops.committers.manifest_stores import open_manifest_store
from lance_ops.core.errors import StoreError
from lance_ops.store import PROCESS_RESOURCES, FsspecStore, open_store
from lance_ops.store.services import digest_of_sources, service_of
from tests.servers.credentials import CredentialServer, credential_server
from tests.store.conftest import client_of

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def running_server() -> Iterator[CredentialServer]:
    with credential_server() as server:
        yield server


@pytest.fixture
def server(
    running_server: CredentialServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[CredentialServer]:
    """The server, in an environment without any credentials, and with clients that begin with the test."""
    prefixes = ("AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "IDENTITY_", "MSI_", "BOTO_", "NO_PROXY", "NO_GCE")
    for name in list(os.environ):
        if name.startswith(prefixes):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    PROCESS_RESOURCES.reset()
    running_server.signers.clear()
    running_server.handed_out = 0
    yield running_server
    PROCESS_RESOURCES.reset()


@pytest.fixture(params=["fsspec", "obstore"])
def each_client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The client of stores on S3 and Azure."""
    client: str = request.param
    if client == "obstore":
        pytest.importorskip("obstore", reason="obstore is not installed")
    monkeypatch.setenv("LANCE_OPS_STORE_CLIENT", client)
    return client


def s3(server: CredentialServer) -> FsspecStore:
    options = {"aws_endpoint": server.endpoint, "allow_http": "true", "region": "us-east-1", "client_max_retries": "0"}
    store = open_store("s3://bucket/table", options)
    assert isinstance(store, FsspecStore)
    return store


def azure(server: CredentialServer) -> FsspecStore:
    options = {"azure_endpoint": server.endpoint, "allow_http": "true", "client_max_retries": "0"}
    store = open_store("az://container/table", options)
    assert isinstance(store, FsspecStore)
    return store


def gcs(server: CredentialServer) -> FsspecStore:
    store = open_store("gs://bucket/table", {"google_base_url": server.endpoint, "allow_http": "true"})
    assert isinstance(store, FsspecStore)
    return store


def signer(store: FsspecStore, server: CredentialServer) -> str:
    """Make a request and return who signed it."""
    before = len(server.signers)
    assert not store.exists("x")
    assert len(server.signers) > before
    return server.signers[-1]


def aws_credentials(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


@pytest.mark.usefixtures("each_client")
def test_a_handle_on_s3_follows_the_environment(server: CredentialServer, monkeypatch: pytest.MonkeyPatch) -> None:
    store = s3(server)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a" * 40)
    clients = []
    for tenant in ("AKIAFIRST", "AKIASECOND", "AKIAFIRST"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", tenant)
        assert signer(store, server) == signer(s3(server), server) == tenant
        clients.append(client_of(store))
    assert clients[0] is clients[2] is not clients[1]


@pytest.mark.usefixtures("each_client")
def test_a_handle_on_s3_follows_profiles_and_their_files(
    server: CredentialServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = "aws_secret_access_key = " + "a" * 40
    file = tmp_path / ".aws" / "credentials"
    aws_credentials(
        file, f"[default]\naws_access_key_id = AKIADEFAULT\n{key}\n[other]\naws_access_key_id=AKIAOTHER\n{key}\n"
    )
    store = s3(server)
    assert signer(store, server) == "AKIADEFAULT"
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert signer(store, server) == "AKIAOTHER"
    status = file.stat()
    aws_credentials(file, file.read_text().replace("AKIAOTHER", "AKIACHANG"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # neither size nor time says that the file changed
    assert signer(store, server) == "AKIACHANG"
    elsewhere = tmp_path / "elsewhere"
    aws_credentials(elsewhere, f"[other]\naws_access_key_id = AKIAELSEWHERE\n{key}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(elsewhere))
    assert signer(store, server) == "AKIAELSEWHERE"
    monkeypatch.delenv("AWS_SHARED_CREDENTIALS_FILE")
    config = tmp_path / ".aws" / "config"
    file.unlink()
    aws_credentials(config, f"[profile other]\naws_access_key_id = AKIACONFIG\n{key}\n")
    assert signer(store, server) == "AKIACONFIG"


@pytest.mark.usefixtures("each_client")
def test_given_keys_win_over_the_environment(server: CredentialServer, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {**dict(s3(server).storage_options), "access_key_id": "AKIAGIVEN", "secret_access_key": "a" * 40}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAENVIRONMENT")
    assert signer(FsspecStore("s3://bucket/table", given), server) == "AKIAGIVEN"


@pytest.mark.usefixtures("each_client")
@pytest.mark.parametrize("source", ["container", "role"])
def test_credentials_that_expire_are_renewed_by_the_same_client(
    server: CredentialServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str
) -> None:
    if source == "container":
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.endpoint}/container")
    else:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", server.endpoint)
        monkeypatch.setenv("AWS_PROFILE", "assuming")
        source_keys = f"[source]\naws_access_key_id = AKIASOURCE\naws_secret_access_key = {'a' * 40}\n"
        aws_credentials(tmp_path / ".aws" / "credentials", source_keys)
        role = "role_arn = arn:aws:iam::123456789012:role/lake\nsource_profile = source\nregion = us-east-1\n"
        aws_credentials(tmp_path / ".aws" / "config", f"[profile assuming]\n{role}")
    store = s3(server)
    first, client = signer(store, server), client_of(store)
    second = signer(store, server)
    assert client_of(store) is client
    assert first.startswith("TENANT") and second.startswith("TENANT") and first < second


@pytest.mark.usefixtures("each_client")
def test_the_role_of_an_instance_signs(server: CredentialServer, monkeypatch: pytest.MonkeyPatch) -> None:
    # No renewal here: botocore takes metadata that is about to expire for an outage, and keeps it for minutes.
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.endpoint)
    assert signer(s3(server), server) == "TENANT01"


def test_a_handle_on_dynamodb_follows_the_environment(
    server: CredentialServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**dict(s3(server).storage_options), "dynamodb_endpoint": server.endpoint}
    del options["aws_endpoint"]
    rows = open_manifest_store("dynamodb://rows", "s3://bucket/table", options)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a" * 40)
    for tenant in ("AKIAFIRST", "AKIASECOND"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", tenant)
        with pytest.raises(StoreError):
            rows.get(1)
        assert server.signers[-1] == tenant


@pytest.mark.usefixtures("each_client")
def test_a_handle_on_azure_follows_the_environment(server: CredentialServer, monkeypatch: pytest.MonkeyPatch) -> None:
    store = azure(server)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    for tenant in ("tenanta", "tenantb", "tenanta"):
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", tenant)
        assert signer(store, server) == tenant
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    for signature in ("signaturea", "signatureb"):
        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", f"sv=2024-01-01&sig={signature}")
        assert signer(store, server) == signature


def test_an_azure_identity_renews_its_token_and_follows_the_login(
    server: CredentialServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{server.endpoint}/azure-identity")
    monkeypatch.setenv("IDENTITY_HEADER", "header-one")
    monkeypatch.setenv("AZURE_CONFIG_DIR", str(tmp_path))
    options = {"account_name": "a", "azure_msi_resource_id": "/lake", "store_client": "fsspec"}
    store = FsspecStore("az://container/table", options)
    client = client_of(store)

    async def tokens(num: int) -> list[str]:
        scope = "https://storage.azure.com/.default"
        found = [(await client.credential.get_token(scope)).token for _ in range(num)]
        await client.credential.close()
        return found

    assert asyncio.run(tokens(2)) == ["TENANT01", "TENANT02"]
    assert client_of(store) is client
    (tmp_path / "azureProfile.json").write_text('{"user": "another"}')
    assert client_of(store) is not client
    client = client_of(store)
    monkeypatch.setenv("IDENTITY_HEADER", "header-two")
    assert client_of(store) is not client


def test_an_identity_of_azure_signs_with_obstore(server: CredentialServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed")
    monkeypatch.setenv("LANCE_OPS_STORE_CLIENT", "obstore")
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{server.endpoint}/azure-identity")
    monkeypatch.setenv("IDENTITY_HEADER", "header-one")
    given = {**dict(azure(server).storage_options), "account_name": "a"}
    identity = FsspecStore("az://container/table", {**given, "azure_msi_resource_id": "/lake"})
    assert signer(identity, server).startswith("TENANT")
    client = client_of(identity)
    monkeypatch.setenv("IDENTITY_HEADER", "header-two")
    assert client_of(identity) is not client
    assert signer(FsspecStore("az://container/table", {**given, "bearer_token": "given"}), server) == "given"


def test_a_handle_on_google_follows_the_environment_and_its_key_files(
    server: CredentialServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    digests = set()
    for token in ("ya29.first", "ya29.second", ""):  # the client asks Google about a bare token when it is made
        monkeypatch.setenv("GOOGLE_STORAGE_TOKEN", token)
        digests.add(service_of("gs").identity({}))
    assert len(digests) == 3
    store = gcs(server)
    keys = [_google_key(server, name) for name in ("first", "other")]
    monkeypatch.delenv("GOOGLE_STORAGE_TOKEN")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    (tmp_path / "key.json").write_text(keys[0])
    assert signer(store, server) == "first-TENANT01"
    client = client_of(store)
    assert signer(store, server) == "first-TENANT02"  # the token lasts seconds, so each request needs another
    assert client_of(store) is client
    (tmp_path / "key.json").write_text(keys[1])
    assert signer(store, server) == "other-TENANT03"


def _google_key(server: CredentialServer, name: str) -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "p",
            "private_key_id": "k",
            "private_key": private.decode(),
            "client_email": f"{name}@p.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"{server.endpoint}/google-token",
        }
    )


def test_a_key_holds_no_secret_and_reads_no_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2hunter2")
    assert b"hunter2" not in service_of("s3").identity({})
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert digest_of_sources((), [str(pipe), str(tmp_path), "a\0b", str(tmp_path / "absent")])
    (tmp_path / "file").write_text("one")
    before = digest_of_sources((), [str(tmp_path / "file")])
    (tmp_path / "file").write_text("two")
    assert digest_of_sources((), [str(tmp_path / "file")]) != before
