"""Faults of S3 as a platform team meets them: each is told in one sentence, and everything goes on when S3 is back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import boto3
import dagster as dg
import pytest
import yaml
from typer.testing import CliRunner

from lance_ops.cli import app
from lance_ops.dagster import failures
from lance_ops.errors import StoreError
from tests.dagster.deployment import Deploy, Deployment
from tests.lossy_proxy import LossyProxy, lossy_proxy
from tests.s3_server import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = [pytest.mark.dagster, pytest.mark.server]

_SENSORS = ("raw_files", "debt", "freshness", "settled", "versions")


def refusing(status: int, code: str) -> Callable[[LossyProxy], None]:
    def begin(proxy: LossyProxy) -> None:
        proxy.refusal = status, f"<Error><Code>{code}</Code><Message>says the store</Message></Error>"

    return begin


def falling_silent(proxy: LossyProxy) -> None:
    proxy.lose = lambda method, path: "request"


FAULTS = {
    "wrong key": (refusing(403, "InvalidAccessKeyId"), "set the right ones in storage_options"),
    "wrong secret": (refusing(403, "SignatureDoesNotMatch"), "set the right ones in storage_options"),
    "expired token": (refusing(400, "ExpiredToken"), "set new credentials in storage_options"),
    "no bucket": (refusing(404, "NoSuchBucket"), "create it, or mend its name in the URI"),
    "no answer": (falling_silent, "see whether its endpoint is right, runs, and is reached from this machine"),
}


def of_faults(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("begin", "remedy"), [pytest.param(*FAULTS[name], id=name) for name in names])


@dataclass
class Lake:
    """A deployment whose table and landing folder are in S3, behind a proxy that shows faults."""

    deployment: Deployment
    proxy: LossyProxy
    land: Callable[[str], None]

    def end_fault(self) -> None:
        self.proxy.refusal = None
        self.proxy.lose = lambda method, path: None


@pytest.fixture
def lake(s3_server: S3Server, deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    """A lake that holds the batch `a`; nothing waits before it tries again."""
    monkeypatch.setattr(failures, "_SECONDS_TO_WAIT", 0)
    bucket = s3_server.new_bucket()
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
    client = boto3.client("s3", endpoint_url=s3_server.endpoint, region_name="us-east-1", **keys)
    with lossy_proxy(s3_server.endpoint) as proxy:
        options = {**s3_server.storage_options, "aws_endpoint": proxy.endpoint, "client_max_retries": "0"}
        landing = {"key": ACCESS_KEY, "secret": SECRET_KEY, "endpoint_url": proxy.endpoint}
        deployment = deploy(
            raw={"uri": f"s3://{bucket}/in", "storage_options": landing, "glob": "*.csv", "settle_seconds": 0},
            uri=f"s3://{bucket}/trips.lance",
            storage_options=options,
            health={"hours_without_version": 24},
            maintenance={"upkeep": {"interval_seconds": 1}},
        )

        def land(key: str) -> None:
            client.put_object(Bucket=bucket, Key=f"in/{key}.csv", Body=b"id,city\n1,Bern\n")

        found = Lake(deployment, proxy, land)
        land("a")
        assert deployment.tick().new_partitions == ("a",)
        deployment.location.cursors.clear()
        yield found
    client.close()


@of_faults(*FAULTS)
def test_ticks_name_the_fault_and_the_remedy_without_the_client_s_errors_and_go_on_by_themselves(
    lake: Lake, begin: Callable[[LossyProxy], None], remedy: str
) -> None:
    lake.land("b")
    begin(lake.proxy)
    for sensor in _SENSORS:
        told = ticked(lake.deployment, sensor)
        assert remedy in told and "s3://" in told and "\n" not in told, (sensor, told)
    lake.end_fault()
    assert lake.deployment.tick().new_partitions == ("b",)
    for sensor in _SENSORS:
        assert remedy not in ticked(lake.deployment, sensor)
    rows = lake.deployment.location.instance.get_materialized_partitions(lake.deployment.names.batches)
    assert rows == {"a", "b"}


def ticked(deployment: Deployment, sensor: str) -> str:
    """Tick a sensor; return what its tick says, and see that no error of a client stands behind it."""
    try:
        return deployment.tick(sensor, raise_on_error=False).skip_message or ""
    except (StoreError, dg.DagsterError) as error:
        link: BaseException | None = error
        while link is not None and not isinstance(link, StoreError):
            link = link.__cause__
        assert isinstance(link, StoreError) and link.__cause__ is None and link.__context__ is None
        return str(link)


# A run waits for minutes for a store that is silent.
@pytest.mark.usefixtures("without_pauses")
@of_faults("expired token", "no bucket")
def test_a_run_names_the_fault_and_the_batch_is_asked_for_again(
    lake: Lake, begin: Callable[[LossyProxy], None], remedy: str
) -> None:
    deployment = lake.deployment
    lake.land("b")
    deployment.instance.add_dynamic_partitions(deployment.names.of("batches"), ["b"])
    begin(lake.proxy)
    run = deployment.location.run(deployment.names.of("ingest"), tags={"dagster/partition": "b"}, raise_on_error=False)
    assert not run.success
    assert remedy in reasons(run)
    lake.end_fault()
    assert deployment.tick().run_requests
    assert deployment.instance.get_materialized_partitions(deployment.names.batches) == {"a", "b"}


def reasons(run: dg.ExecuteInProcessResult) -> str:
    """Return the error of a run's step, with those that caused it."""
    (failed,) = (event.step_failure_data for event in run.all_events if event.is_step_failure)
    assert failed.error is not None
    told = failed.error.to_string()
    assert "botocore" not in told and "obstore" not in told
    return told


@of_faults("wrong key", "no answer")
def test_commands_name_the_fault_and_the_remedy(
    lake: Lake, begin: Callable[[LossyProxy], None], remedy: str, tmp_path: Path
) -> None:
    config = lake.deployment.config
    declaration = tmp_path / "trips.yaml"
    kept = config.model_dump(include={"name", "uri"}, mode="json")
    raw = {name: getattr(config.landing(), name) for name in ("uri", "storage_options", "glob")}
    declaration.write_text(yaml.safe_dump({**kept, "storage_options": dict(config.storage_options), "raw": raw}))
    options = [part for item in config.storage_options.items() for part in ("--storage-option", "=".join(item))]
    begin(lake.proxy)
    for command in (["batches", str(declaration)], ["doctor", config.uri, *options]):
        result = CliRunner().invoke(app, command, env={"DAGSTER_HOME": None})
        assert result.exit_code == 1
        said = " ".join(result.output.split())
        assert remedy in said and "Traceback" not in said, said
    lake.end_fault()
    assert CliRunner().invoke(app, ["batches", str(declaration)], env={"DAGSTER_HOME": None}).exit_code == 0
