"""Texts without secrets: every kind of URL and connection string, and every form that an option's value takes."""

from __future__ import annotations

import json
import pickle
import traceback

import pytest

from lance_ops import errors
from lance_ops.core.errors import InvalidInput, LanceOpsError, StoreError, UnsupportedFeature
from lance_ops.core.redaction import public_uri, raise_alone, redact, secret_values, secrets_in, shows_secret

SECRET = "wJalrXUtnFEMI/K7MDENG+x="

REVEALING = [
    "postgresql://user:SECRET@host:5432/db",
    "postgresql://u:p@ss:SECRET@h:5/db",
    "postgresql://u:pa/SECRET@h/db",
    "postgresql+psycopg://u:SECRET@[::1]:5/db?sslmode=require",
    "mysql://u@h/db?password=SECRET",
    "redis://:SECRET@host/0",
    "rediss://host/0?username=u&password=SECRET",
    "unix://u:SECRET@/run/redis.sock",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3D%7Bx%7D%3BUID%3Du%3BPWD%3DSECRET",
    "host=db user=u password=SECRET dbname=x",
    "host=db password='SECRET' dbname=x",
    "Server=db;Uid=u;Pwd=SECRET;",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=SECRET;EndpointSuffix=core.windows.net",
    "BlobEndpoint=https://a.blob.core.windows.net;SharedAccessSignature=SECRET",
    "s3://key:SECRET@bucket/table.lance",
    "az://container/table?sv=2024&sig=SECRET&se=2030",
    "https://a.blob.core.windows.net/c/b?sv=1&sig=SECRET",
    "https://bucket.s3.amazonaws.com/x?X-Amz-Credential=a&X-Amz-Security-Token=b&X-Amz-Signature=SECRET",
    "https://storage.googleapis.com/b/o?X-Goog-Signature=SECRET",
    "https://host/raw.csv?whatever=SECRET",
    "https://SECRET@host/raw.csv",
    "https://SECRET:x-oauth-basic@host/raw.csv",
    "ftp://user:SECRET@host/raw.csv",
    "webhdfs://host:9870/x?delegation_token=SECRET",
]


@pytest.mark.parametrize("text", REVEALING)
@pytest.mark.parametrize("around", ["{}", "cannot open '{}': no such host", 'at "{}"', "{} failed", "<{}>\n{}"])
def test_what_a_text_reveals_is_redacted(text: str, around: str) -> None:
    for secret in ("hunter2hunter2", "hunter2%2Bhunter2%3D"):
        shown = redact(around.format(*[text.replace("SECRET", secret)] * 2))
        # An encoded connection string is opaque until it is decoded; stores of that kind redact its parts by value.
        if "odbc_connect" not in text:
            assert "hunter2" not in shown and "***" in shown
    assert any("hunter2hunter2" in found for found in secrets_in(text.replace("SECRET", "hunter2hunter2")))


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a@b/c.lance",
        "s3://bucket/what?",
        "abfss://container@account.dfs.core.windows.net/table.lance",
        "hdfs://namenode:8020/user@example.org/table",
        "hdfs://user@namenode/table",
        "s3+ddb://bucket/table?ddbTableName=commits",
        "file:///data/a b/c=1/x.lance",
        "/data/password/x.lance",
        "C:\\data\\x",
        "password IS NOT NULL AND token = 3",
        "the field 'signature' is missing, and so is the key of design=new",
        "http://127.0.0.1:9000/bucket",
    ],
)
def test_a_text_without_secrets_stays(text: str) -> None:
    assert redact(text) == public_uri(text) == text


@pytest.mark.parametrize(
    "key",
    [
        *("aws_secret_access_key", "secret", "aws_session_token", "token", "aws_access_key_id", "key", "access_key"),
        *("account_key", "azure_storage_sas_token", "sas_key", "client_secret", "bearer_token", "connection_string"),
        *("google_service_account_key", "google_storage_token", "proxy_url", "manifest_store", "password"),
        *("base_3.account_key", "base_1.manifest_store", "credential", "passphrase", "headers", "an_unknown_option"),
    ],
)
def test_the_value_of_a_secret_option_is_redacted_in_every_form(key: str) -> None:
    secrets = secret_values({key: SECRET, "region": "us-east-1", "allow_http": "true", "max": 3})
    for shown in (SECRET, "wJalrXUtnFEMI%2FK7MDENG%2Bx%3D", "wJalrXUtnFEMI/K7MDENG%2Bx%3D"):
        assert redact(f"signed {shown} in us-east-1 (true, 3)", secrets) == "signed *** in us-east-1 (true, 3)"
    text = 'line\n"quoted" \\back'
    secrets = secret_values({key: text})
    for shown in (text, repr(text), json.dumps(text)):
        assert "quoted" not in redact(shown, secrets)


@pytest.mark.parametrize("key", ["password", "aws_secret_access_key", "base_3.account_key", "sas_token"])
def test_a_secret_of_digits_alone_is_redacted(key: str) -> None:
    secrets = secret_values({key: "8675309", "connect_timeout": "864000", "an_unknown_option": "131072"})
    assert redact("login with 8675309 after 864000 s of 131072", secrets) == "login with *** after 864000 s of 131072"


@pytest.mark.parametrize("switch", ["true", "False", "none", " on "])
def test_a_switch_under_the_name_of_a_secret_stays(switch: str) -> None:
    assert secret_values({"use_token": switch}) == frozenset()


def test_a_public_option_stays_and_a_secret_inside_it_does_not() -> None:
    options = {
        "endpoint": "https://user:hunter2hunter2@minio:9000",
        "region": "us-east-1",
        "account_name": "lake",
        "google_service_account": "/etc/keys/lake.json",
        "user_agent": "lance",
        "client_kwargs": {"password": "nested-secret", "region_name": "eu-west-1"},
    }
    secrets = secret_values(options)
    text = "us-east-1 lake /etc/keys/lake.json lance eu-west-1"
    assert redact(f"{text} hunter2hunter2 nested-secret", secrets) == f"{text} *** ***"


@pytest.mark.parametrize("name", errors.__all__)
def test_no_error_of_this_library_shows_the_password_of_a_url(name: str) -> None:
    kind = getattr(errors, name)
    url = "postgresql://user:hunter2@host/db"
    arguments = {
        "CommitStateUnknown": ("u", 1, url),
        "CorruptFile": (url, "page", url),
        "ChecksumMismatch": (url, 0, 1),
        "AlertNotSent": (url, url),
        "MissingPackage": (url, url, None, url),
        "RawFileNotAsListed": (url, url),
        "RawFileRefused": (url, url),
        "RawFileTooLarge": (url, url, "rows", 1),
    }
    error: LanceOpsError = kind(*arguments.get(name, (url,)))
    again = pickle.loads(pickle.dumps(error))
    for shown in (str(error), repr(error), str(error.args), str(again)):
        assert "hunter2" not in shown
    assert "***@host/db" in str(error) and str(again) == str(error)


def test_an_unsupported_feature_survives_a_pickle() -> None:
    error = UnsupportedFeature("time travel", "s3://bucket/t")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_error_raised_alone_leads_to_no_error_with_a_secret() -> None:
    def fail(text: str) -> None:
        try:
            try:
                raise KeyError(text)
            except KeyError as error:
                raise ValueError("request failed") from error
        except ValueError as error:
            raise_alone(StoreError("cannot read"), error, ["hunter2"])

    with pytest.raises(StoreError) as caught:
        fail(f"signed with {'2retnuh'[::-1]}")  # so that no line of this file in the traceback holds it
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert "with hunter2" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(StoreError) as caught:
        fail("out of paper")
    assert isinstance(caught.value.__cause__, ValueError) and caught.value.__context__ is None


def test_a_secret_in_a_note_or_a_group_counts() -> None:
    noted = ValueError("x")
    noted.add_note("password=hunter2")
    assert shows_secret(noted) and shows_secret(ExceptionGroup("many", [noted]))
    assert not shows_secret(InvalidInput("x"))
