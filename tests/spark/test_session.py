"""The shared Spark session has the settings that the library requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
