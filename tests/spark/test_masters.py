"""A master that is none, or that does not answer, is refused in a sentence before Spark is started."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from pyspark.errors import PySparkRuntimeError

from lance_ops.errors import ConfigError
from lance_ops.spark.masters import check_answers, check_master
from lance_ops.spark.session import _start


@pytest.fixture
def open_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@pytest.mark.parametrize("master", ["loca[2]", "local[0]", "local[x]", "spark:/host", "host:7077", ""])
def test_a_text_that_names_no_master_is_refused_with_those_that_there_are(master: str) -> None:
    with pytest.raises(ConfigError, match=r"Spark has no master .*: there are local\[\*\], local\[4\], spark://host"):
        check_master(master)


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[*]",
        "local[2]",
        "local[2,4]",
        "local[*, 1]",
        "local-cluster[2,1,1024]",
        "yarn",
        "k8s://https://x",
    ],
)
def test_a_master_that_spark_starts_or_finds_itself_is_left_to_it(master: str) -> None:
    check_master(master)


def test_a_standalone_master_is_refused_unless_one_of_its_hosts_answers(open_port: int, closed_port: int) -> None:
    check_master(f"spark://127.0.0.1:{closed_port},127.0.0.1:{open_port}")
    with pytest.raises(
        ConfigError, match=rf"spark://127.0.0.1:{closed_port} does not answer \(127.0.0.1:{closed_port}"
    ):
        check_master(f"spark://127.0.0.1:{closed_port}")
    with pytest.raises(ConfigError, match="named as spark://host:7077: there is no host"):
        check_master("spark://")


def test_a_server_of_connect_behind_a_proxy_is_not_tried(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigError, match="does not answer"):
        check_answers("sc://127.0.0.1", [("127.0.0.1", closed_port)])
    monkeypatch.setenv("grpc_proxy", "http://proxy:3128")
    check_answers("sc://127.0.0.1", [("127.0.0.1", closed_port)])


def test_a_session_that_does_not_start_is_told_in_a_sentence() -> None:
    builder = Mock()
    builder.getOrCreate.side_effect = PySparkRuntimeError("the gateway exited\n\tat a frame")
    with pytest.raises(
        ConfigError, match=r"^Spark did not start on master yarn, and says why above: the gateway exited$"
    ):
        _start(builder, "yarn")
