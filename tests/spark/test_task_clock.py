"""The time zone that a task takes for that of its session."""

from __future__ import annotations

import os

import pytest
from pyspark import TaskContext

from lance_ops.spark.translation import session_time_zone


class Task:
    """A task whose session has these properties."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.getLocalProperty = properties.get


@pytest.mark.parametrize(
    ("properties", "zone"),
    [
        ({"spark.sql.session.timeZone": "Asia/Tokyo"}, "Asia/Tokyo"),
        ({"spark.sql.session.timeZone": "GMT+2"}, "+02:00"),
        ({"spark.sql.session.timeZone": "-05:30"}, "-05:30"),
        ({"spark.sql.session.timeZone": "Z"}, "UTC"),
        ({"spark.driver.extraJavaOptions": "-Xmx1g -Duser.timezone=Europe/Rome -ea"}, "Europe/Rome"),
        ({"spark.driver.extraJavaOptions": "-Xmx1g"}, "America/New_York"),
        ({}, "America/New_York"),
    ],
    ids=str,
)
def test_a_task_takes_the_zone_that_its_session_or_else_java_on_this_machine_has(
    properties: dict[str, str], zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", ":America/New_York")
    monkeypatch.setattr(TaskContext, "get", lambda: Task(properties))
    assert session_time_zone() == zone


def test_a_machine_without_a_named_zone_and_a_process_without_a_task_are_in_utc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert session_time_zone() == "UTC"
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(TaskContext, "get", lambda: Task({}))
    for path, zone in (("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"), ("/etc/localtime", "UTC")):
        monkeypatch.setattr(os.path, "realpath", lambda link, path=path: path)
        assert session_time_zone() == zone
