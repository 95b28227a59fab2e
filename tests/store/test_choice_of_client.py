"""Which client a store uses: obstore or fsspec."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import InvalidInput
from lance_ops.store import FsspecStore
from lance_ops.store.services import choice
from lance_ops.store.services.obstore import runtime
from tests.forked import run_in_child
from tests.s3_server import S3Server
from tests.servers.azure import AzureServer
from tests.servers.obstore import through_fsspec, through_obstore

pytest.importorskip("obstore", reason="obstore is not installed")
pytestmark = [pytest.mark.server, pytest.mark.usefixtures("no_old_clients")]


def package_of(uri: str, **options: str) -> str:
    return FsspecStore(uri, options)._service.package


def test_the_client_is_obstore_where_it_is_installed_and_an_option_comes_before_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert package_of("s3://bucket/table") == "obstore"
    assert package_of("az://container/table", account_name="a", account_key="a2V5") == "obstore"
    assert package_of("s3a://bucket/table", STORE_CLIENT="fsspec") == "s3fs"
    monkeypatch.setenv("LANCE_OPS_STORE_CLIENT", "fsspec")
    assert package_of("s3://bucket/table") == "s3fs"
    assert package_of("s3://bucket/table", store_client="obstore") == "obstore"
    monkeypatch.setenv("LANCE_OPS_STORE_CLIENT", "rust")
    with pytest.raises(InvalidInput, match="store_client .* or LANCE_OPS_STORE_CLIENT, is none of fsspec and obstore"):
        package_of("s3://bucket/table")
    monkeypatch.delenv("LANCE_OPS_STORE_CLIENT")
    monkeypatch.setattr(choice, "is_installed", lambda: False)
    assert package_of("s3://bucket/table") == "s3fs"
    assert package_of("s3://bucket/table", store_client="obstore") == "obstore"  # and says what is missing


def test_another_release_than_the_tested_one_is_not_chosen_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert declared["project"]["optional-dependencies"]["obstore"] == [f"obstore>={runtime.TESTED_RELEASE},<0.13"]
    for release, is_chosen in ((f"{runtime.TESTED_RELEASE}.7", True), ("0.13.0", False), ("0.1.2", False)):
        monkeypatch.setattr(runtime, "version", lambda _, release=release: release)
        assert runtime.is_installed.__wrapped__() is is_chosen


def test_other_stores_use_fsspec_whatever_is_chosen() -> None:
    assert package_of("gs://bucket/table", store_client="obstore") == "gcsfs"
    store = FsspecStore("hdfs://host/table", {"STORE_CLIENT": "obstore", "user": "u"})
    assert store._service.arguments("host", dict(store.storage_options)) == {"host": "host", "user": "u"}
    other = FsspecStore("ftp://host/table", {"store_client": "obstore", "port": 21})
    assert other._service.arguments("host", dict(other.storage_options)) == {"port": 21}


@pytest.mark.parametrize(
    ("options", "package"),
    [
        ({}, "adlfs"),
        ({"account_key": "a2V5"}, "obstore"),
        ({"client_id": "c", "client_secret": "s", "tenant_id": "t"}, "obstore"),
        ({"bearer_token": "t"}, "obstore"),
        ({"use_azure_cli": "true"}, "obstore"),
        ({"use_azure_cli": "true", "account_key": "a2V5"}, "adlfs"),
        ({"sas_token": "sv=1&sig=a"}, "adlfs"),
    ],
)
def test_credentials_of_azure_that_both_clients_would_understand_differently_are_for_fsspec(
    options: dict[str, str], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    assert package_of("az://container/table", store_client="obstore", account_name="a", **options) == package


def test_what_only_botocore_reads_is_not_passed_over(
    nothing_configured: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    profiles, address = nothing_configured, {"aws_endpoint": "https://here"}
    for variable in ("AWS_ENDPOINT_URL_S3", "AWS_USE_FIPS_ENDPOINT"):
        monkeypatch.setenv(variable, "https://elsewhere")
        assert package_of("s3://bucket/table", store_client="obstore") == "s3fs"
        assert package_of("s3://bucket/table", store_client="obstore", **address) == "obstore"
        monkeypatch.delenv(variable)
    for setting in ("endpoint_url = https://elsewhere", "services = own", "s3 =\n  addressing_style = virtual"):
        profiles.write_text(f"[profile other]\n{setting}\n")
        assert package_of("s3://bucket/table") == "s3fs"
        assert package_of("s3://bucket/table", **address) == "obstore"
    profiles.write_text("[default]\nregion = us-east-1\n")
    assert package_of("s3://bucket/table") == "obstore"
    monkeypatch.setenv("SSL_CERT_FILE", "/common.pem")
    monkeypatch.setenv("AWS_CA_BUNDLE", "/common.pem")
    assert package_of("s3://bucket/table") == "obstore"
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "own.pem"))
    assert package_of("s3://bucket/table", **address) == "s3fs"
    assert package_of("s3://bucket/table", aws_endpoint="http://here", allow_http="true") == "obstore"


def test_a_shared_access_signature_is_used_by_fsspec(azure_server: AzureServer) -> None:
    signed = through_obstore(azure_server).signed_options
    store = FsspecStore(azure_server.new_uri(), signed)
    assert store._service.package == "adlfs"
    store.put("a", b"x")
    store.delete("a")
    assert not store.exists("a")


def _read(store: FsspecStore) -> tuple[str, bytes]:
    return store._service.package, store.get("a").to_pybytes()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # forking beside threads is what is tested
def test_a_child_of_a_process_that_has_used_obstore_uses_fsspec(s3: FsspecStore) -> None:
    s3.put("a", b"x")
    assert _read(s3) == ("obstore", b"x")
    assert run_in_child(lambda: _read(s3)) == ("s3fs", b"x")
    assert run_in_child(lambda: run_in_child(lambda: _read(s3))) == ("s3fs", b"x")
    assert run_in_child(lambda: _read(pickle.loads(pickle.dumps(s3)))) == ("s3fs", b"x")
    assert _read(s3) == ("obstore", b"x")


def test_a_child_of_a_process_that_has_not_used_obstore_uses_it(s3: FsspecStore) -> None:
    s3.put("a", b"x")
    program = """
        import os, pickle, sys
        store = pickle.load(sys.stdin.buffer)
        assert "obstore" not in sys.modules
        child = os.fork()
        assert store._service.package == "obstore"
        assert store.get("a").to_pybytes() == b"x"
        assert "s3fs" not in sys.modules
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    subprocess.run(command, input=pickle.dumps(s3), check=True, timeout=240)


def test_two_tables_of_one_process_may_use_different_clients(s3_server: S3Server) -> None:
    uri, table = s3_server.new_uri("table.lance"), pa.table({"a": [1, 2]})
    lance_ops.write_dataset(table, uri, storage_options=through_obstore(s3_server).storage_options)
    assert lance_ops.dataset(uri, storage_options=through_fsspec(s3_server).storage_options).to_table() == table
