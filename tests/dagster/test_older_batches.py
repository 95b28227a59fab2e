"""A dataset whose newest batch is the whole table never goes back to an older batch because the newest one waits."""

from __future__ import annotations

import pytest

from tests.dagster.deployment import Deploy
from tests.dagster.test_lacking_files import BY_DAY

pytestmark = pytest.mark.dagster


@pytest.mark.parametrize("why", ["it lacks a file", "it is being written"])
def test_no_older_batch_becomes_the_table_while_the_newest_one_waits(deploy: Deploy, why: str) -> None:
    deployed = deploy(raw={"key": BY_DAY, "glob": "**/*.parquet", "schema_mode": "overwrite", "settle_seconds": 60})
    for day in "12":
        (deployed.landing / f"day={day}").mkdir()
    deployed.land("day=1/a", range(3))
    deployed.land("day=2/a", range(5))
    deployed.tick()
    assert deployed.data.count_rows() == 5

    path = deployed.land("day=2/a", range(6))
    if why == "it lacks a file":
        (deployed.landing / "day=2" / "b.parquet").symlink_to("nowhere")
    else:
        path.touch()
    deployed.tick()
    assert deployed.data.count_rows() == 5
