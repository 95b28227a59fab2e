"""A landing folder that grows is told before its listing takes more time than Dagster gives a tick."""

from __future__ import annotations

import dagster as dg
import pytest

from lance_ops.dagster.declaration import DatasetNames
from lance_ops.dagster.landing import OutsideGlob, landing_check
from lance_ops.dagster.landing.landing_check import advice_on_slow_listing, landing_evaluation, said_of_landing
from tests.dagster.deployment import Deployment

pytestmark = pytest.mark.dagster

LIMIT = "DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS"


def evaluated(seconds: float, *set_aside: str) -> dg.AssetCheckEvaluation:
    return landing_evaluation(DatasetNames("trips"), set_aside, OutsideGlob(), seconds)


def test_a_listing_of_a_third_of_a_tick_warns_with_the_limit_and_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT, raising=False)
    assert evaluated(19.9).passed
    slow = evaluated(20)
    assert not slow.passed and slow.severity is dg.AssetCheckSeverity.WARN
    assert "took 20 s to list, and Dagster ends a tick after 60 s: move handled files away" in str(slow.description)
    assert evaluated(20, "a.csv: set aside: a link").severity is dg.AssetCheckSeverity.ERROR
    assert said_of_landing(slow) == said_of_landing(evaluated(25)) != said_of_landing(evaluated(1))


def test_a_listing_near_the_limit_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT, raising=False)
    last, told = evaluated(19), []
    for seconds in (21, 19, 21, 15, 14.9, 19, 20):
        found = landing_evaluation(DatasetNames("trips"), (), OutsideGlob(), seconds, last)
        if said_of_landing(found) != said_of_landing(last):
            told.append(seconds)
            last = found
    assert told == [21, 14.9, 20]


@pytest.mark.parametrize(("limit", "is_slow"), [("300", False), ("100", False), ("50", True), ("", True), ("x", True)])
def test_the_limit_is_that_of_the_instance(monkeypatch: pytest.MonkeyPatch, limit: str, is_slow: bool) -> None:
    monkeypatch.setenv(LIMIT, limit)
    assert (advice_on_slow_listing(30) is not None) is is_slow


def test_the_sensors_and_the_check_measure_the_listing(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment.fill(1)
    check = deployment.check()["landing_readable"]
    seconds = check.metadata["lance/listing_seconds"].value
    assert check.passed and isinstance(seconds, float) and seconds > 0
    monkeypatch.setenv(LIMIT, "1e-6")
    events = deployment.tick("settled").events
    (told,) = [
        event
        for event in events
        if isinstance(event, dg.AssetCheckEvaluation) and event.check_name == "landing_readable"
    ]
    assert not told.passed and "Dagster ends a tick after 1e-06 s" in str(told.description)
    monkeypatch.setenv(LIMIT, "300")
    monkeypatch.setattr(landing_check, "_AGAIN_FAST_PART", 1e-9)
    assert not deployment.check()["landing_readable"].passed, "it takes a listing that is faster"
    assert [event for event in deployment.tick("settled").events if isinstance(event, dg.AssetCheckEvaluation)] == []
