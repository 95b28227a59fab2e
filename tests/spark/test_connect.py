"""What needs no `sparkContext` works where there is none: doors of each kind, on a session that hides its own.

`over_connect.py` runs some doors through a server, with the packages of a client. This needs none of them.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock, Mock, call

import pyarrow as pa
import pytest

import lance_ops
from lance_ops.errors import InvalidInput
from lance_ops.spark import (
    OnSpark,
    create_view,
    get_or_create,
    map_fragments,
    sql,
    use_namespace,
)
from lance_ops.spark import session as session_module
from lance_ops.spark.session_kind import lacks_context

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


class Client:
    """A session without what a session of Spark Connect lacks, known as one by its module."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def registerProgressHandler(self, handler: object) -> None:  # noqa: N802 - Spark's name
        """Tell nothing: the session itself has no such handlers."""

    removeProgressHandler = registerProgressHandler  # noqa: N815 - Spark's name

    def __getattr__(self, name: str) -> Any:
        if name in ("sparkContext", "_sc", "_jvm", "_jsparkSession"):
            raise AssertionError(f"a session of Spark Connect has no {name}")
        return getattr(self._session, name)


@pytest.fixture
def client(spark: SparkSession) -> Iterator[Any]:
    client = Client(spark)
    assert lacks_context(client)  # type: ignore[arg-type]  # it stands in for a session
    yield client
    use_namespace(client, None)  # type: ignore[arg-type]  # as above


def num_rows(batches: pa.RecordBatchReader) -> int:
    return sum(batch.num_rows for batch in batches)


def test_doors_work_without_a_context(client: Any, tmp_path: Path) -> None:
    dataset = lance_ops.write_dataset(pa.table({"id": range(12)}), tmp_path / "t.lance", max_rows_per_file=4)
    use_namespace(client, tmp_path)
    assert sql(client, "DELETE FROM t WHERE id = 2").collect()[0][0] == 1
    create_view(client, "of_client", dataset.uri)
    assert client.sql("SELECT count(*) FROM of_client").collect()[0][0] == 11
    assert map_fragments(lance_ops.dataset(dataset.uri), num_rows, runner=OnSpark(client)) == {0: 3, 1: 4, 2: 4}


def test_a_master_is_refused_where_a_server_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://cluster")
    with pytest.raises(InvalidInput, match=r"'local\[2\]': this process uses Spark Connect.*unset SPARK_REMOTE"):
        get_or_create(master="local[2]")


@pytest.mark.parametrize("master", ["sc://first", "sc://second:15003", "sc://[::1]:15003/;token=secret"])
def test_another_server_than_the_session_s_is_refused(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    there = SimpleNamespace(client=SimpleNamespace(_builder=SimpleNamespace(endpoint="first:15003")))
    monkeypatch.setattr(session_module, "is_remote", lambda: True)
    monkeypatch.setattr(session_module, "SparkSession", Mock(active=lambda: there))
    with pytest.raises(InvalidInput, match=r"master sc://.*a session of the server sc://first:15003") as refused:
        get_or_create(master=master)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("master", ["sc://", "sc://first:port;token=secret", "sc:///;token=secret"])
def test_a_server_without_a_host_or_a_port_is_refused(master: str) -> None:
    with pytest.raises(InvalidInput, match="is named as sc://host:15002") as refused:
        get_or_create(master=master)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("remote", [None, "local[2]"])
def test_a_session_is_found_again_however_its_server_was_named(
    monkeypatch: pytest.MonkeyPatch, remote: str | None
) -> None:
    """PySpark wants a URL that no variable names, and refuses another one beside a server that it has started."""
    builder = MagicMock()
    builder.remote.return_value = builder
    there = SimpleNamespace(client=SimpleNamespace(_builder=SimpleNamespace(endpoint="localhost:15003")))
    monkeypatch.setattr(session_module, "is_remote", lambda: True)
    monkeypatch.setattr(session_module, "SparkSession", Mock(active=lambda: there, builder=builder))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    if remote is not None:
        monkeypatch.setenv("SPARK_REMOTE", remote)
    assert get_or_create() is builder.config.return_value.getOrCreate.return_value
    assert builder.remote.call_args_list == ([call("sc://localhost:15003")] if remote is None else [])
