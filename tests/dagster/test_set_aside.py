from __future__ import annotations

import os
from datetime import datetime
from itertools import count

import dagster as dg
import pytest

from lance_ops.dagster.declaration import DatasetConfig, RawFiles
from lance_ops.dagster.landing import batch_report, landing_check
from lance_ops.dagster.landing.landing import list_landing
from lance_ops.dagster.landing.landing_entries import Landing
from lance_ops.errors import StoreError
from tests.dagster.deployment import Deploy, Deployment

pytestmark = pytest.mark.dagster

_KEY = r"(?P<key>\d{4}-\d{2}-\d{2})"


def reported(deployment: Deployment) -> list[dg.AssetCheckEvaluation]:
    """Tick the sensor of checks; return what it reports of the landing folder."""
    events = deployment.tick("settled").events
    found = [event for event in events if isinstance(event, dg.AssetCheckEvaluation)]
    return [each for each in found if each.check_name == "landing_readable"]


def land_hostile_names(deployment: Deployment) -> None:
    (deployment.landing.parent / "shadow").write_text("secret")
    (deployment.landing / "evil.parquet").symlink_to("../shadow")
    with open(os.path.join(os.fsencode(deployment.landing), b"\xff\n.parquet"), "wb") as file:
        file.write(b"?")


def test_files_that_are_set_aside_are_named_and_the_others_are_ingested(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    land_hostile_names(deployment)
    assert deployment.tick().new_partitions == ("a",)
    assert deployment.data.count_rows() == 3
    skipped = deployment.tick()
    assert "2 files are set aside" in (skipped.skip_message or "")
    check = deployment.check()["landing_readable"]
    assert not check.passed and check.severity is dg.AssetCheckSeverity.ERROR
    assert check.metadata["lance/set_aside"].value == 2
    named = check.metadata["lance/set_aside_files"].value
    assert isinstance(named, list)
    assert named[0].startswith("evil.parquet: set aside: a symbolic link")
    assert named[1] == "\\xff\\u{a}.parquet: set aside: its name is not UTF-8; rename it"


def test_a_tick_logs_a_file_that_is_set_aside_until_the_check_tells_of_it(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    land_hostile_names(deployment)

    def logged() -> int:
        deployment.tick()
        return sum("set aside: " in line for line in "".join(capsys.readouterr()).splitlines())

    assert [logged(), logged()] == [2, 2]
    reported(deployment)
    assert logged() == 0
    (deployment.landing / "other.parquet").symlink_to("../shadow")
    assert logged() == 1


def test_a_folder_without_such_files_passes(deployment: Deployment) -> None:
    deployment.land("a", range(3))
    deployment.tick()
    check = deployment.check()["landing_readable"]
    assert check.passed and check.metadata["lance/set_aside"].value == 0


def test_only_the_first_files_are_named(deployment: Deployment) -> None:
    deployment.fill(1)
    for number in range(25):
        (deployment.landing / f"link{number:02}.parquet").symlink_to("nowhere")
    check = deployment.check()["landing_readable"]
    named = check.metadata["lance/set_aside_files"].value
    assert isinstance(named, list) and len(named) == 21
    assert named[-1] == "5 more files are set aside"


def test_a_folder_that_cannot_be_listed_fails_the_check(deploy: Deploy) -> None:
    deployment = deploy(raw={"uri": "${NOT_SET_ANYWHERE}/in"})
    check = deployment.check()["landing_readable"]
    assert not check.passed and check.severity is dg.AssetCheckSeverity.ERROR
    assert "NOT_SET_ANYWHERE is not set" in (check.description or "")


class TestWithoutARun:
    """The sensor reports the check, because files that no batch has lead to no run."""

    def test_a_file_without_a_key_is_named_until_it_is_renamed(self, deploy: Deploy) -> None:
        deployment = deploy(raw={"key": _KEY})
        stray = deployment.land("trips_20240102", range(3))
        deployment.land("trips_2024-01-01", range(3))
        assert deployment.tick().new_partitions == ("2024-01-01",)
        assert not deployment.check()["landing_readable"].passed
        assert reported(deployment) == [], "the run said so"
        stray.rename(stray.with_name("trips_2024-01-02.parquet"))
        (told,) = reported(deployment)
        assert told.passed and told.description == "no file is set aside"

    @pytest.mark.parametrize("unmatched", ["set_aside", "ignore"])
    def test_a_file_without_a_key_is_told_unless_it_is_ignored(self, deploy: Deploy, unmatched: str) -> None:
        deployment = deploy(raw={"key": _KEY, "unmatched": unmatched})
        deployment.land("trips_20240102", range(3))
        (told,) = reported(deployment)
        assert told.passed is (unmatched == "ignore")
        assert told.severity is dg.AssetCheckSeverity.ERROR
        assert reported(deployment) == []

    def test_a_folder_that_cannot_be_listed_twice_in_a_row_is_told(
        self, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deployment = deploy(raw={"uri": "${LANDING_OF_THIS_TEST}"})
        monkeypatch.setenv("LANDING_OF_THIS_TEST", str(deployment.landing))
        assert [each.passed for each in reported(deployment)] == [True]
        monkeypatch.delenv("LANDING_OF_THIS_TEST")
        assert reported(deployment) == []
        (told,) = reported(deployment)
        assert not told.passed and "LANDING_OF_THIS_TEST is not set" in (told.description or "")
        assert reported(deployment) == []
        monkeypatch.setenv("LANDING_OF_THIS_TEST", str(deployment.landing))
        assert [each.passed for each in reported(deployment)] == [True]
        monkeypatch.delenv("LANDING_OF_THIS_TEST")
        assert reported(deployment) == [], "the folder was listed since"
        assert [each.passed for each in reported(deployment)] == [False]

    def test_an_outage_is_told_once_although_each_error_has_an_id_of_its_own(
        self, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        request = count()

        def failed(*arguments: object) -> None:
            raise StoreError(f"no answer, RequestId:{next(request)}")

        monkeypatch.setattr(batch_report, "list_landing", failed)
        monkeypatch.setattr(landing_check, "list_landing", failed)
        assert [len(reported(deployment)) for _ in range(4)] == [0, 1, 0, 0]

    def test_a_tick_that_can_list_the_folder_when_it_tries_again_reports(
        self, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outages = [StoreError("no answer")]

        def listed(raw: RawFiles, now: datetime) -> Landing:
            if outages:
                raise outages.pop()
            return list_landing(raw, now)

        monkeypatch.setattr(batch_report, "list_landing", listed)
        assert [each.passed for each in reported(deployment)] == [True]

    def test_a_tick_that_lists_the_folder_and_cannot_open_the_table_fails(
        self, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failed(config: DatasetConfig) -> None:
            raise StoreError("no answer")

        monkeypatch.setattr(batch_report, "open_to_look", failed)
        with pytest.raises(StoreError, match="no answer"):
            reported(deployment)
