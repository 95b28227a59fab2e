"""URLs of manifest stores: refused without being shown, and a missing driver is named."""

from __future__ import annotations

import pickle
import sqlite3
import traceback
from pathlib import Path

import pytest
import sqlalchemy as sa

import lance_ops
from lance_ops.committers import open_root
from lance_ops.committers.manifest_stores import ManifestRow, open_manifest_store
from lance_ops.committers.manifest_stores.sql import _ROWS as SQL_ROWS
from lance_ops.core.errors import InvalidInput, LanceOpsError, MissingPackage, StoreError

SECRET = "hunter2hunter2"


def everything_shown(error: BaseException) -> str:
    """Return all texts of an error and of every error that it is linked to."""
    texts, waiting, seen = ["".join(traceback.format_exception(error))], [error], set()
    while waiting:
        link = waiting.pop()
        seen.add(id(link))
        texts += [str(link), repr(link), str(link.args)]
        waiting += [each for each in (link.__cause__, link.__context__) if each is not None and id(each) not in seen]
    return "\n".join(texts)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@ss:{}@h:5/db",
        "postgresql+psycopg://u:{}@h:port/db",
        "postgresql+psycopg://u:p@h:{}/db",
        "postgresql+no_such_driver://u:{}@h/db",
        "postgresql:u:{}@h/db",
        "host=db password={}",
        "password={} host=db://x",
        "{}",
        "://u:{}@h",
        "foo://u:{}@h",
        "redis://u:{}@h:port",
        "redis://h:{}",
        "redis://h:6379/0?socket_timeout={}",
        "redis://[{}",
        "rediss://h?ssl_min_version={}",
        "etcd://u:{}@h:1",
        "etcd://h:{}",
        "etcd://[{}",
        "etcds://h:1/{}",
        "etcd://h:1?token={}",
        "dynamodb://",
        "dynamodb://k:{}@table",
        "dynamodb://table?secret={}",
    ],
)
def test_a_url_that_names_no_store_is_refused_and_not_shown(tmp_path: Path, url: str) -> None:
    options = {"manifest_store": url.replace("{}", SECRET)}
    for fail in (
        lambda: open_root(str(tmp_path / "t"), options),
        lambda: lance_ops.dataset(tmp_path / "t", storage_options=options),
    ):
        with pytest.raises(InvalidInput, match="manifest_store") as caught:
            fail()
        assert SECRET not in everything_shown(caught.value)


def test_a_manifest_store_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a list"):
        open_manifest_store([SECRET], str(tmp_path), {})  # type: ignore[arg-type]  # as users may


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://user:{}@127.0.0.1:1/none?connect_timeout=1",
        "postgresql+psycopg://127.0.0.1:1/none?connect_timeout=1&user=u&password={}",
        "postgresql+psycopg://127.0.0.1:1/none?connect_timeout=1&no_such_setting={}",
        "sqlite:////no/such/{}/file.db",
        "redis://user:{}@127.0.0.1:1/0",
        "redis://127.0.0.1:1/0?username=u&password={}",
        "unix://user:{}@/no/such/socket",
    ],
)
def test_a_store_that_cannot_be_reached_does_not_show_its_password(tmp_path: Path, url: str) -> None:
    root = open_root(str(tmp_path / "t"), {"manifest_store": url.replace("{}", SECRET)})
    for committer in (root.committer, pickle.loads(pickle.dumps(root.committer))):
        with pytest.raises(StoreError) as caught:
            committer.latest()
        assert SECRET not in everything_shown(caught.value) + repr(committer) + repr(root)


def test_a_refused_password_is_not_shown_and_its_user_is(tmp_path: Path) -> None:
    url = f"postgresql+psycopg://lake_user:{SECRET}@127.0.0.1:1/none?connect_timeout=1"
    with pytest.raises(StoreError, match="127.0.0.1") as caught:
        open_root(str(tmp_path / "t"), {"manifest_store": url}).committer.latest()
    assert "***" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["mysql+pymysql", "oracle+oracledb", "postgresql+psycopg2"])
def test_a_missing_driver_is_a_missing_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}://user:{SECRET}@127.0.0.1:1/db"
    dialect = sa.make_url(url).get_dialect()

    def missing() -> None:
        raise ModuleNotFoundError("No module named 'the_driver'", name="the_driver")

    monkeypatch.setattr(dialect, "import_dbapi", missing)
    with pytest.raises(MissingPackage, match=f"manifest_store: {scheme.replace('+', '.')}://.*the_driver") as caught:
        open_root(str(tmp_path / "t"), {"manifest_store": url})
    assert caught.value.package == "the_driver"
    assert SECRET not in everything_shown(caught.value)


def test_a_driver_that_only_another_process_has_is_a_missing_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = f"postgresql+psycopg://user:{SECRET}@127.0.0.1:1/db"
    sent = pickle.dumps(open_root(str(tmp_path / "t"), {"manifest_store": url}).committer)

    def missing() -> None:
        raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

    monkeypatch.setattr(sa.make_url(url).get_dialect(), "import_dbapi", missing)
    with pytest.raises(MissingPackage, match="psycopg") as caught:
        pickle.loads(sent).latest()
    assert isinstance(caught.value, LanceOpsError) and SECRET not in everything_shown(caught.value)


@pytest.mark.parametrize(
    ("name", "collation"), [("mysql", "utf8mb4_bin"), ("mariadb", "utf8mb4_bin"), ("mssql", "_BIN2")]
)
def test_a_database_compares_uris_with_case(name: str, collation: str) -> None:
    dialect = sa.make_url(f"{name}://").get_dialect()()
    column = sa.schema.CreateColumn(SQL_ROWS.c.base_uri).compile(dialect=dialect)
    assert collation in str(column)


def test_a_table_that_takes_two_uris_for_one_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rows.sqlite"
    columns = "base_uri VARCHAR(700) COLLATE NOCASE, version BIGINT, path VARCHAR(300), size_bytes BIGINT"
    with sqlite3.connect(tmp_path / "rows.sqlite") as database:
        database.execute(f"CREATE TABLE lance_manifests ({columns}, PRIMARY KEY (base_uri, version))")
    database.close()
    assert open_manifest_store(url, "/lake/t", {}).insert(ManifestRow(1, "theirs", 1))
    with pytest.raises(InvalidInput, match="a binary collation"):
        open_manifest_store(url, "/lake/T", {}).newest()
    with pytest.raises(InvalidInput, match="'/lake/t' and '/lake/T'"):
        open_manifest_store(url, "/lake/T", {}).get(1)
