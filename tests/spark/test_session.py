"""The shared Spark session has the settings that the library requires."""

from __future__ import annotations

import signal
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from pyspark import java_gateway

from lance_ops.spark import session
from lance_ops.spark.session import SETTINGS, get_or_create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_the_session_has_the_settings(spark: SparkSession) -> None:
    assert {key: spark.conf.get(key) for key in SETTINGS} == dict(SETTINGS)
    assert spark.conf.get("spark.ui.enabled") == "false"


def test_a_second_request_returns_the_same_session_with_settings_restored(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert get_or_create(config={"spark.sql.shuffle.partitions": "2"}).sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_an_interrupt_while_spark_starts_ends_the_process_that_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def begin(_: list[str], **options: Any) -> subprocess.Popen[bytes]:
        begun.append(subprocess.Popen(["sleep", "600"], **options))
        return begun[-1]

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(java_gateway, "Popen", begin)
    monkeypatch.setattr(java_gateway, "time", SimpleNamespace(sleep=interrupt))
    with pytest.raises(KeyboardInterrupt):
        session._start(Mock(getOrCreate=java_gateway.launch_gateway), None)
    assert [process.returncode for process in begun] == [-signal.SIGTERM]
