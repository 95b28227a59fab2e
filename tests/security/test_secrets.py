"""Secrets planted in every option and every kind of URL come out of no door: Python and the command line.

Pickles hold secrets, because workers need them; they are the one exception.
"""

from __future__ import annotations

import io
import json
import logging
import pickle
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

import lance_ops
from lance_ops import DatasetBasePath
from lance_ops.cli import app
from lance_ops.core.errors import LanceOpsError, SchemaMismatch, StoreError
from lance_ops.maintenance.health import health
from lance_ops.maintenance.ingest import IngestBatch, RawFile, RawReading, failures_of_store, ingest, unified_raw_schema
from lance_ops.maintenance.verification import verify_uri
from lance_ops.store import open_store
from lance_ops.store.services import azure, gcs, s3
from tests.s3_server import S3Server
from tests.security.planted import found_in, found_in_error, found_in_files, plain, planted

OPTIONS = {
    "s3": ("s3://bucket/t", s3._ALIASES),
    "gs": ("gs://bucket/t", gcs._ALIASES),
    "az": ("az://container/t", azure._ALIASES),
}

# What is shown: where the data is, who asks for it, and how. None of it lets anybody in.
PUBLIC = frozenset(
    {
        *("region", "account_name", "client_id", "tenant_id", "identity_object", "identity_resource", "account_file"),
        *("encryption", "encryption_key", "token_file", "proxy_certificate", "proxy_excludes", "ignored", "endpoint"),
    }
)

KEYS = [
    pytest.param(uri, key, name in PUBLIC, id=f"{scheme}-{key}")
    for scheme, (uri, aliases) in OPTIONS.items()
    for name, keys in aliases.items()
    for key in keys
]

WITH_SECRETS = [
    "s3://key:{}@bucket/t",
    "s3://u:p@ss:{}@bucket/t",
    "s3a://:{}@bucket/t",
    "gs://b/t?X-Goog-Signature={}",
    "az://container/t?sv=1&sig={}&se=2",
    "abfss://container:{}@account.dfs.core.windows.net/t",
    "https://account.blob.core.windows.net/container/t?{}",
    "https://{}@host/t",
    "ftp://user:{}@host/t",
    "sftp://user:{}@host:22/t",
    "hdfs://user:{}@host:8020/t",
    "S3+ddb://key:{}@bucket/t?ddbTableName=x",
    "s3+ddb://bucket/t?password={}",
]


def refused(call: Callable[[], object]) -> LanceOpsError:
    """Return the error of a call, which must be one of this library's and hold no secret."""
    with pytest.raises(LanceOpsError) as caught:
        call()
    assert not found_in_error(caught.value)
    return caught.value


@pytest.fixture
def hostile_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every package behind fsspec fail with errors that quote all that it was given, in several ways."""

    def fail(*args: object, **kwargs: object) -> None:
        try:
            raise KeyError(repr(kwargs))
        except KeyError as error:
            error.add_note(json.dumps(kwargs, default=str))
            values = " ".join(str(value) for value in kwargs.values())
            raise ValueError(f"cannot connect with {values}") from error

    monkeypatch.setattr(fsspec, "get_filesystem_class", lambda protocol: fail)
    monkeypatch.setenv("LANCE_OPS_STORE_CLIENT", "fsspec")


@pytest.mark.usefixtures("hostile_package")
@pytest.mark.parametrize(("uri", "key", "is_public"), KEYS)
def test_no_option_of_a_store_is_shown(uri: str, key: str, is_public: bool) -> None:
    secret = "https://user:" + plain(key) + "@host" if is_public else planted(key)
    needed = {"account_name": "a", "tenant_id": "t", "client_id": "c"} if uri.startswith("az") else {}
    options = {**{name: value for name, value in needed.items() if name != key}, key: secret}
    for spelled in (options, {name.upper(): value for name, value in options.items()}):
        error = refused(lambda spelled=spelled: lance_ops.dataset(uri, storage_options=spelled))  # type: ignore[misc]
        assert "storage_options" in str(error) or "cannot" in str(error) or "not supported" in str(error)
    refused(lambda: lance_ops.write_dataset(pa.table({"x": [1]}), uri, storage_options=options))
    refused(lambda: lance_ops.dataset("x.lance", storage_options={"manifest_store": planted(key)}))


@pytest.mark.usefixtures("hostile_package")
@pytest.mark.parametrize("variable", ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"])
def test_no_credential_of_the_environment_is_shown(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, planted(variable))
    assert "***" in str(refused(lambda: lance_ops.dataset("s3://bucket/t")))


@pytest.mark.usefixtures("hostile_package")
@pytest.mark.parametrize("key", [planted("key"), plain("key") + "=", "aws_secret_access_key " + plain("key")])
def test_a_secret_in_the_place_of_a_key_is_not_shown(key: str) -> None:
    for uri, _ in OPTIONS.values():
        assert "characters" in str(refused(lambda uri=uri: lance_ops.dataset(uri, storage_options={key: "x"})))  # type: ignore[misc]


def test_options_of_a_wrong_type_are_not_shown() -> None:
    for options in (planted("text"), [planted("list")], {"token": [planted("nested")]}, {"token": {planted("k"): 1}}):
        with pytest.raises((LanceOpsError, TypeError)) as caught:
            lance_ops.dataset("s3://bucket/t", storage_options=options)  # type: ignore[arg-type]  # as users may
        assert not found_in_error(caught.value)


@pytest.mark.parametrize("uri", WITH_SECRETS)
def test_no_verb_shows_a_uri_with_a_secret(uri: str, dataset_uri: str, tmp_path: Path) -> None:
    made = lance_ops.write_dataset(pa.table({"x": [1]}), dataset_uri)
    rows, other = pa.table({"x": [1]}), str(tmp_path / "other")
    for secret in (plain("uri"), planted("uri").replace("/", "").replace("'", "").replace('"', "")):
        there = uri.replace("{}", secret)
        for call in (
            lambda there=there: lance_ops.dataset(there),
            lambda there=there: lance_ops.write_dataset(rows, there),
            lambda there=there: lance_ops.write_dataset(rows, other, initial_bases=[DatasetBasePath(there)]),
            lambda there=there: lance_ops.LanceDataset.drop(there),
            lambda there=there: made.shallow_clone(there, 1),
            lambda there=there: made.deep_clone(there, 1),
            lambda there=there: made.add_bases([DatasetBasePath(there)]),
            lambda there=there: verify_uri(there),
            lambda there=there: ingest(there, [IngestBatch("k", (RawFile("a.csv", 1, "t"),))]),
            lambda there=there: open_store(there).get("x"),
        ):
            refused(call)
        shown = CliRunner().invoke(app, ["inspect", there, "--json"])
        assert shown.exit_code == 1 and not found_in(shown.output + repr(shown.exception))
    assert not found_in_files(tmp_path)


@pytest.mark.parametrize("uri", [*WITH_SECRETS, "https://127.0.0.1:1/in/a.csv?sig={}", "memory://in/a.csv?sig={}"])
def test_no_raw_file_shows_its_uri_s_secret(uri: str) -> None:
    there = uri.replace("{}", plain("raw"))
    file = RawFile(there, 1, "t")
    assert not found_in(repr(file) + repr(IngestBatch("k", (file,))))
    options = {"password": planted("option"), "headers": planted("headers")}

    def fail() -> None:
        with failures_of_store(there, options):
            raise ValueError(f"GET {there} with {options} failed")

    assert isinstance(refused(fail), StoreError)


def test_a_raw_file_that_cannot_be_fetched_shows_no_secret() -> None:
    uri = f"http://user:{plain('user')}@127.0.0.1:1/in?sig={plain('sig')}&name=a.csv"
    reading = RawReading(isolated=False)
    error = refused(lambda: unified_raw_schema([RawFile(uri, 1, "t")], {}, reading))
    assert "127.0.0.1" in str(error) and "***" in str(error)


def test_a_raw_file_that_does_not_fit_the_table_shows_no_secret(tmp_path: Path) -> None:
    uri = f"memory://landing/in?sig={plain('sig')}/a.csv"
    with fsspec.open(uri, "wb") as file:
        file.write(b"other\n1\n")
    table = str(tmp_path / "t.lance")
    lance_ops.write_dataset(pa.table({"column": [1]}), table)
    error = refused(lambda: ingest(table, [IngestBatch("k", (RawFile(uri, 8, "t"),))]))
    assert isinstance(error, SchemaMismatch) and "landing/in?sig=***" in str(error)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """All messages of the library's loggers, with tracebacks."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("lance_ops")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.server
def test_no_verb_writes_a_secret_anywhere(s3_server: S3Server, tmp_path: Path, logged: io.StringIO) -> None:
    options = {
        **s3_server.storage_options,
        "aws_access_key_id": plain("id"),
        "aws_secret_access_key": plain("secret"),
        "aws_session_token": plain("session"),
        "manifest_store": f"sqlite:///{tmp_path}/{plain('store')}.db",
    }
    bucket = s3_server.new_bucket()
    uri = f"s3://{bucket}/t.lance"
    raw = tmp_path / "raw.csv"
    pyarrow.csv.write_csv(pa.table({"x": [100], "s": ["raw"]}), raw)
    shown: list[Any] = []
    made = lance_ops.write_dataset(pa.table({"x": range(10), "s": ["a"] * 10}), uri, storage_options=options)
    made = lance_ops.write_dataset(pa.table({"x": range(10), "s": ["b"] * 10}), made, mode="append")
    made.create_scalar_index("x", "BTREE")
    shown += [
        made.update({"s": "'c'"}, "x = 1"),
        made.delete("x = 2"),
        made.merge_insert("x").when_not_matched_insert_all(),
    ]
    made.add_columns({"y": "x + 1"})
    made.alter_columns({"path": "y", "name": "z"})
    made.drop_columns(["z"])
    made.update_config({"who": "me"})
    made.tags.create("first", 1)
    branch = made.create_branch("dev")
    shown += [ingest(uri, [IngestBatch("k", (RawFile(str(raw), raw.stat().st_size, "t"),))], storage_options=options)]
    made = lance_ops.dataset(uri, storage_options=options)
    shown += [made.optimize.compact_files(), made.plan_repair(), branch]
    shown += [made.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)]
    shown += [verify_uri(uri, None, options), health(made.snapshot), made.versions(), made.config(), made.scanner()]
    shown += [
        made.snapshot,
        made.snapshot.manifest,
        made.snapshot.store,
        made.get_fragments(),
        made.stats,
        made.lance_schema,
    ]
    made.restore()
    made.shallow_clone(
        f"s3://{bucket}/clone.lance", made.version, {**options, "manifest_store": f"sqlite:///{tmp_path}/x.db"}
    )
    shown += [refused(lambda: made.delete("no_such = 1")), refused(lambda: made.checkout_version(99))]
    unreachable = {**options, "aws_endpoint": f"http://user:{plain('endpoint')}@127.0.0.1:1", "client_max_retries": "0"}
    shown += [refused(lambda: lance_ops.dataset(uri, storage_options=unreachable))]

    assert not found_in("\n".join(f"{value!r}{value}" for value in shown))
    assert not found_in(logged.getvalue())
    store = open_store(f"s3://{bucket}", s3_server.storage_options)
    written = {each.path: store.get(each.path).to_pybytes() for each in store.list()}
    assert {path.split("/")[1] for path in written if path.startswith("t.lance/")} >= {
        "_versions",
        "_transactions",
        "data",
    }
    assert not [path for path, data in written.items() if found_in(data) or found_in(path)]
    databases = [tmp_path / f"{plain('store')}.db", tmp_path / "x.db"]
    assert not [path for path in databases if found_in(path.read_bytes())]
    # The exception: a pickle opens the same table elsewhere.
    assert found_in(pickle.dumps(made.snapshot))

    file = tmp_path / "options.json"
    file.write_text(json.dumps(options))
    for command in (
        ["inspect", uri, "--json"],
        ["inspect", uri],
        ["versions", uri, "--json"],
        ["health", uri, "--json"],
        ["verify", uri, "--json"],
        ["repair", uri, "--dry-run", "--json"],
        ["compact", uri, "--json"],
        ["cleanup", uri, "--older-than", "1d", "--json"],
        ["reindex", uri, "--json"],
        ["delete", uri, "x = 5", "--json"],
        ["delete", uri, "no_such = 5"],
        ["tags", "list", uri, "--json"],
        ["branches", "list", uri, "--json"],
    ):
        result = CliRunner().invoke(app, [*command, "--storage-options-file", str(file)])
        assert result.exit_code == (1 if "no_such = 5" in command else 0), (command, result.output)
        assert result.output and not found_in(result.output), command
