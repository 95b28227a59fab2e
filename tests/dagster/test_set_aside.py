from __future__ import annotations

import os

import dagster as dg
import pytest

from tests.dagster.deployment import Deploy, Deployment

pytestmark = pytest.mark.dagster


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
    assert not check.passed and check.severity is dg.AssetCheckSeverity.WARN
    assert check.metadata["lance/set_aside"].value == 2
    named = check.metadata["lance/set_aside_files"].value
    assert isinstance(named, list)
    assert named[0].startswith("evil.parquet: set aside: a symbolic link")
    assert named[1] == "\\xff\\u{a}.parquet: set aside: its name is not UTF-8; rename it"


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


def test_a_folder_that_cannot_be_listed_is_a_warning(deploy: Deploy) -> None:
    deployment = deploy(raw={"uri": "${NOT_SET_ANYWHERE}/in"})
    check = deployment.check()["landing_readable"]
    assert not check.passed and check.severity is dg.AssetCheckSeverity.WARN
    assert "NOT_SET_ANYWHERE is not set" in (check.description or "")
