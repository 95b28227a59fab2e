"""Junk, drift, late, rewritten, vanished and empty files in one landing folder: none is lost from sight."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from lance_ops.cli import app
from lance_ops.dagster import batch_states
from lance_ops.maintenance.ingest import raw_files
from lance_ops.maintenance.ingest.raw_locations import ListedFile, open_local
from tests.dagster.deployment import LANDED, Deploy, Deployment, values

pytestmark = pytest.mark.dagster


def land_bytes(deployment: Deployment, key: str, data: bytes) -> None:
    deployment.minute += 1
    deployment.wait_past_second_of_failure()
    path = deployment.landing / f"{key}.parquet"
    path.write_bytes(data)
    os.utime(path, (LANDED + 60 * deployment.minute,) * 2)


def land_drift(deployment: Deployment, key: str) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1], "fare": [2.5]}), sink)
    land_bytes(deployment, key, sink.getvalue().to_pybytes())


def states(deployment: Deployment) -> dict[str, str]:
    report = batch_states(deployment.config, deployment.instance)
    return {batch.key: batch.state.value + (" late" if batch.is_late else "") for batch in report.batches}


def shown(declaration: Path, home: str | None, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["batches", str(declaration), *arguments], env={"DAGSTER_HOME": home})
    return result.exit_code, result.output


def test_every_good_row_is_there_once_and_every_bad_file_is_named(
    deploy: Deploy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deploy(raw={"max_wait_hours": 1e-9})
    for day in (1, 2, 3):
        deployment.land(f"d{day}", range(10 * day, 10 * day + 2))
    land_bytes(deployment, "d4", b"this is no Parquet")
    land_bytes(deployment, "d6", b"")
    assert states(deployment) == dict.fromkeys(("d1", "d2", "d3", "d4"), "landed") | {"d6": "waiting"}
    deployment.tick(raise_on_error=False)
    told = dict.fromkeys(("d1", "d2", "d3"), "ingested") | {"d4": "quarantined", "d6": "waiting"}
    assert states(deployment) == told

    land_drift(deployment, "d5")
    deployment.land("d0", range(2))
    deployment.land("d2", range(90, 99))
    (deployment.landing / "d1.parquet").unlink()
    deployment.tick(raise_on_error=False)
    told |= {"d0": "ingested late", "d1": "vanished", "d2": "changed", "d5": "quarantined"}
    assert states(deployment) == told
    assert sorted(deployment.data.to_table()["id"].to_pylist()) == [0, 1, 10, 11, 20, 21, 30, 31]

    check = deployment.check()["batches_settled"]
    assert not check.passed
    metadata = values(check.metadata)
    counts = {"quarantined": 2, "changed": 1, "vanished": 1, "waiting": 1, "ingested": 2, "late": 1}
    assert metadata["lance/batch_states"] == counts
    reasons = metadata["lance/unsettled_batches"]
    assert list(reasons) == ["d4", "d5", "d2", "d6"], "the worst first"
    assert "d4.parquet" in reasons["d4"] and "column 'fare'" in reasons["d5"] and "left alone" in reasons["d2"]
    assert "| d1 | vanished |" in metadata["lance/batches"] and "| d0 | ingested | late |" in metadata["lance/batches"]

    declaration = tmp_path / "trips.yaml"
    declaration.write_text(deployment.config.model_dump_json(exclude={"write", "maintenance", "health"}))
    home = str(tmp_path / "dagster")
    code, text = shown(declaration, home, "--json")
    found = json.loads(text)
    assert (code, found["counts"], found["unsettled"]) == (1, counts, 4)
    assert {batch["key"]: batch["reason"] for batch in found["batches"][:4]} == reasons
    code, text = shown(declaration, home, "--state", "quarantined")
    assert "d4.parquet" in text and "d3" not in text
    code, text = shown(declaration, None)
    assert "2 landed" in text, "without Dagster's records, what is not in the table has only landed"
    assert shown(declaration, home, "--state", "lost")[0] == 2

    land_bytes(deployment, "d4", b"still no Parquet")
    deployment.land("d5", range(50, 52))
    deployment.land("d6", range(60, 62))
    deployment.tick(raise_on_error=False)
    assert states(deployment) == told | {"d5": "ingested", "d6": "ingested"}, "a mended batch is asked for again"


@pytest.mark.usefixtures("without_pauses")
@pytest.mark.parametrize("num_reads", [0, 1], ids=["for its columns", "for its rows"])
def test_a_file_that_is_gone_for_a_moment_is_asked_for_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, num_reads: int
) -> None:
    opened: list[str] = []

    def gone_once(path: str, listed: ListedFile | None) -> int:
        opened.append(os.path.basename(path))
        if path.endswith("b.parquet") and opened.count("b.parquet") == num_reads + 1:
            raise FileNotFoundError(errno.ENOENT, "No such file")
        return open_local(path, listed)

    monkeypatch.setattr(raw_files, "open_local", gone_once)
    deployment.land("a", range(3))
    deployment.land("b", range(3, 5))
    deployment.tick(raise_on_error=False)
    assert states(deployment) == {"a": "ingested", "b": "failed"}
    deployment.tick()
    assert states(deployment) == {"a": "ingested", "b": "ingested"}
    assert deployment.data.count_rows() == 5


@pytest.mark.parametrize(("num_landed", "said"), [(2, "1 more batch: --limit"), (3, "2 more batches: --limit")])
def test_the_command_says_how_many_batches_it_does_not_name(
    deploy: Deploy, tmp_path: Path, num_landed: int, said: str
) -> None:
    deployment = deploy()
    for day in range(num_landed):
        deployment.land(f"d{day}", range(2))
    declaration = tmp_path / "trips.yaml"
    declaration.write_text(deployment.config.model_dump_json(exclude={"write", "maintenance", "health"}))
    assert said in shown(declaration, None, "--limit", "1")[1]
