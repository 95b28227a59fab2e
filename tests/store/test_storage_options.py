from __future__ import annotations

import asyncio
import pickle
import traceback

import pytest

from lance_ops.core.errors import InvalidInput, StoreError, UnsupportedFeature
from lance_ops.core.redaction import redact, secret_values
from lance_ops.store import FsspecStore, open_store
from lance_ops.store.services import service_of
from lance_ops.store.storage_options import read_bool, read_count, read_options, read_seconds
from tests.store.conftest import client_of

SECRET = "wJalrXUtnFEMI/K7MDENG"
ALIASES = {"region": ("aws_region", "region"), "secret": ("aws_secret_access_key", "secret_access_key")}


def test_every_alias_sets_the_option_and_the_longer_name_wins() -> None:
    assert read_options({"REGION": "a"}, ALIASES, ()) == {"region": "a"}
    assert read_options({"region": "a", "aws_region": "b"}, ALIASES, ()) == {"region": "b"}


def test_the_environment_fills_in_what_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "from-environment")
    monkeypatch.setenv("REGION", "somebody else's")
    assert read_options({}, ALIASES, ("aws_",)) == {"region": "from-environment"}
    assert read_options({"region": "given"}, ALIASES, ("aws_",)) == {"region": "given"}


def test_an_unknown_key_is_named_without_its_value() -> None:
    with pytest.raises(InvalidInput, match="aws_secret_acess_key") as caught:
        read_options({"aws_secret_acess_key": SECRET}, ALIASES, ())
    assert SECRET not in str(caught.value)


def test_switches_and_durations_are_read_as_the_reference_writes_them() -> None:
    options = {"on": "TRUE", "off": "0", "short": "500ms", "long": "2m", "bare": "30", "wrong": "soon"}
    assert read_bool(options, "on")
    assert not read_bool(options, "off")
    assert not read_bool(options, "absent")
    assert [read_seconds(options, name) for name in ("short", "long", "bare", "absent")] == [0.5, 120, 30, None]
    with pytest.raises(InvalidInput, match="wrong"):
        read_bool(options, "wrong")
    assert [read_count(options, name) for name in ("bare", "absent")] == [30, None]
    for read in (read_seconds, read_count):
        with pytest.raises(InvalidInput, match="wrong"):
            read(options, "wrong")


def test_secrets_are_redacted_plain_and_quoted() -> None:
    secrets = secret_values({"aws_secret_access_key": SECRET, "region": "us-east-1", "sas_token": "sv=1&sig=a+b="})
    assert redact(f"denied: {SECRET} in us-east-1", secrets) == "denied: *** in us-east-1"
    assert redact("GET /c?sv%3D1%26sig%3Da%2Bb%3D", secrets) == "GET /c?***"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"azure_storage_master_key": SECRET}, f"signed with {SECRET}"),
        ({"sas_token": "?sv=1&sig=a%2Bbcde%3D&se=2"}, "GET /c/b?comp=list&sig=a%2Bbcde%3D&sv=1"),
        ({"sas_token": "sv=1&sig=a+bcde="}, "the signature a+bcde= did not match, nor a%2Bbcde%3D"),
        ({"service_account_key": '{"private_key": "-----BEGIN-----\\nabc", "type": "t"}'}, "key -----BEGIN-----\nabc"),
    ],
)
def test_what_is_secret_within_an_option_is_redacted_by_itself(options: dict[str, str], text: str) -> None:
    shown = redact(text, secret_values(options))
    assert "***" in shown
    assert not [part for part in (SECRET, "a+b", "a%2Bb", "BEGIN") if part in shown]


def test_the_references_s3_options_become_those_of_s3fs() -> None:
    arguments = service_of("s3").arguments(
        "bucket",
        {
            "aws_access_key_id": "id",
            "aws_secret_access_key": SECRET,
            "aws_session_token": "session",
            "aws_region": "eu-central-1",
            "aws_endpoint": "http://127.0.0.1:9000",
            "allow_http": True,
            "aws_virtual_hosted_style_request": "true",
            "aws_server_side_encryption": "aws:kms",
            "aws_sse_kms_key_id": "key",
            "aws_sse_bucket_key_enabled": "true",
            "request_timeout": "5s",
            "connect_timeout": "2s",
            "client_max_retries": "3",
            "allow_invalid_certificates": "true",
            "user_agent": "somebody",
        },
    )
    assert arguments["key"] == "id"
    assert arguments["secret"] == SECRET
    assert arguments["token"] == "session"
    assert arguments["endpoint_url"] == "http://127.0.0.1:9000"
    assert arguments["client_kwargs"] == {"region_name": "eu-central-1", "verify": False}
    config = arguments["config_kwargs"]
    assert config["s3"] == {"addressing_style": "virtual"}
    assert (config["connect_timeout"], config["read_timeout"]) == (2.0, 5.0)
    assert config["retries"] == {"total_max_attempts": 4, "mode": "standard"}
    assert arguments["s3_additional_kwargs"] == {
        "ServerSideEncryption": "aws:kms",
        "SSEKMSKeyId": "key",
        "BucketKeyEnabled": True,
    }
    assert service_of("s3a").arguments("bucket", {"skip_signature": "true"})["anon"] is True


def test_the_references_download_retries_are_those_of_s3fs() -> None:
    class FileSystem:
        def __init__(self, **_: object) -> None:
            self.retries = 5

    s3 = service_of("s3")
    assert s3.connect(FileSystem, "bucket", {"download_retry_count": "7"}).retries == 8
    assert s3.connect(FileSystem, "bucket", {}).retries == 5


def test_plain_http_has_to_be_allowed() -> None:
    with pytest.raises(InvalidInput, match="allow_http"):
        open_store("s3://bucket/a", {"endpoint": "http://127.0.0.1:9000"})
    with pytest.raises(InvalidInput, match="allow_http"):
        open_store("az://container/a", {"endpoint": "http://127.0.0.1:10000/x", "account_name": "x"})
    with pytest.raises(InvalidInput, match="allow_http"):
        open_store("gs://bucket/a", {"google_base_url": "http://127.0.0.1:10000"})


def test_s3_express_lists_in_no_order() -> None:
    assert open_store("s3://bucket/a").lists_in_order
    assert not open_store("s3://bucket--use1-az4--x-s3/a").lists_in_order
    assert not open_store("s3://access-point/a", {"s3_express": "true"}).lists_in_order


def test_the_references_google_options_become_those_of_gcsfs() -> None:
    gcs = service_of("gs")
    assert gcs.arguments("b", {"service_account": "/key.json"})["token"] == "/key.json"
    assert gcs.arguments("b", {"google_service_account_key": '{"type": "service_account"}'})["token"] == {
        "type": "service_account"
    }
    assert gcs.arguments("b", {"google_storage_token": SECRET})["token"] == SECRET
    own = gcs.arguments("b", {"google_base_url": "https://gcs.example", "google_skip_signature": "true"})
    assert (own["token"], own["endpoint_url"]) == ("anon", "https://gcs.example")
    for wrong in (f"{{{SECRET}", f'"{SECRET}"'):
        with pytest.raises(InvalidInput) as caught:
            gcs.arguments("b", {"google_service_account_key": wrong})
        assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_every_service_uses_the_proxy() -> None:
    proxy = {"proxy_url": "http://proxy:3128"}
    by_scheme = {"http": "http://proxy:3128", "https": "http://proxy:3128"}
    assert service_of("s3").arguments("b", proxy)["config_kwargs"]["proxies"] == by_scheme
    assert service_of("gs").arguments("b", proxy)["session_kwargs"] == {"proxy": "http://proxy:3128"}
    azure = open_store(
        "az://c/a", {**proxy, "account_name": "a", "azure_storage_account_key": "k" * 8, "store_client": "fsspec"}
    )
    assert isinstance(azure, FsspecStore)
    assert client_of(azure).service_client._config.proxy_policy.proxies == by_scheme
    for scheme in ("s3", "gs", "az"):
        with pytest.raises(UnsupportedFeature, match="proxy_excludes"):
            open_store(f"{scheme}://b/a", {**proxy, "proxy_excludes": "localhost"})


def test_the_references_azure_options_become_those_of_adlfs() -> None:
    azure = service_of("az")
    assert azure.arguments("c", {"account_name": "a", "azure_storage_account_key": SECRET}) == {
        "account_name": "a",
        "account_key": SECRET,
    }
    assert azure.arguments("c@named.dfs.core.windows.net", {"sas_token": "sv=1"}) == {
        "account_name": "named",
        "sas_token": "sv=1",
    }
    assert azure.bucket("c@named.dfs.core.windows.net") == "c"
    emulator = azure.arguments("c", {"use_emulator": "true"})["connection_string"]
    assert "BlobEndpoint=http://127.0.0.1:10000/devstoreaccount1" in emulator
    own = azure.arguments("c", {"endpoint": "https://blob.example", "account_name": "a", "account_key": "k" * 8})
    assert own == {
        "connection_string": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=kkkkkkkk;"
        "BlobEndpoint=https://blob.example"
    }
    assert azure.arguments("c", {"account_name": "a", "azure_storage_token": SECRET}) == {
        "account_name": "a",
        "anon": True,
    }
    assert azure.arguments("c", {"account_name": "a", "azure_skip_signature": "true"})["anon"] is True
    fabric = azure.arguments("c", {"account_name": "a", "azure_use_fabric_endpoint": "true", "disable_tagging": "true"})
    assert fabric == {"account_name": "a", "account_host": "a.blob.fabric.microsoft.com"}
    with pytest.raises(UnsupportedFeature, match="azure_msi_endpoint"):
        azure.arguments("c", {"msi_endpoint": "http://127.0.0.1"})


@pytest.mark.parametrize(
    ("options", "credential"),
    [
        ({"azure_use_azure_cli": "true"}, "AzureCliCredential"),
        ({"azure_msi_resource_id": "/a/b"}, "ManagedIdentityCredential"),
        (
            {"azure_federated_token_file": "/token", "azure_tenant_id": "t" * 8, "azure_client_id": "c"},
            "WorkloadIdentityCredential",
        ),
    ],
)
def test_an_azure_identity_signs_requests(options: dict[str, str], credential: str) -> None:
    store = FsspecStore("az://c/a", {"account_name": "a", "store_client": "fsspec", **options})
    assert type(client_of(store).service_client.credential).__name__ == credential


def test_an_azure_token_and_the_retries_reach_the_client() -> None:
    options = {"account_name": "a", "azure_storage_token": SECRET, "client_max_retries": "2"}
    store = FsspecStore("az://c/a", {**options, "store_client": "fsspec"})
    client = client_of(store).service_client
    assert asyncio.run(client.credential.get_token("https://storage.azure.com/.default")).token == SECRET
    assert client._config.retry_policy.total_retries == 2
    assert SECRET not in repr(client.credential)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_wrong_options_are_reported_when_the_store_is_opened(scheme: str) -> None:
    with pytest.raises(InvalidInput, match="no_such_option"):
        open_store(f"{scheme}://bucket/a", {"no_such_option": "x"})
    with pytest.raises(InvalidInput, match="region"):
        open_store(f"{scheme}://bucket/a", {"region": {"nested": SECRET}})


def test_secrets_show_in_no_repr_and_no_error() -> None:
    options = {
        "aws_access_key_id": "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key": SECRET,
        "endpoint": "http://127.0.0.1:1",
        "allow_http": "true",
        "region": "us-east-1",
        "client_max_retries": "0",
        "connect_timeout": "1s",
    }
    store = FsspecStore("s3://bucket/a", options)
    with pytest.raises(StoreError, match="s3://bucket/a/x") as caught:
        store.get("x")

    shown = repr(store) + str(store) + store.uri + repr(store.child("b")) + repr(caught.value)
    assert SECRET not in shown + "".join(traceback.format_exception(caught.value))
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert SECRET not in repr(again)


def test_an_error_whose_text_holds_a_secret_is_redacted_with_its_causes() -> None:
    store = FsspecStore("s3://bucket/a", {"secret_access_key": SECRET})

    def fail() -> None:
        with store._translating("read", "x"):
            try:
                raise ValueError(f"signed with {SECRET}")
            except ValueError as error:
                raise OSError("request failed") from error

    with pytest.raises(StoreError, match="request failed") as caught:
        fail()
    assert SECRET not in "".join(traceback.format_exception(caught.value))
