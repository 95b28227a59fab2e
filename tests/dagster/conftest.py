"""Fixtures: a Dagster instance on a temporary folder, and a deployment of one dataset on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from lance_ops.dagster.declaration import DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.in_process import CodeLocation
from lance_ops.dagster.runners.runner import RUNNER_KEY, ThreadRunner
from tests.dagster.deployment import Deploy, Deployment


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    home = tmp_path / "dagster"
    home.mkdir()
    with dg.DagsterInstance.local_temp(str(home), overrides={"telemetry": {"enabled": False}}) as made:
        yield made


@pytest.fixture
def deploy(tmp_path: Path, instance: dg.DagsterInstance) -> Deploy:
    """Make a deployment; keys of the declaration can be given."""
    landing = tmp_path / "landing"
    landing.mkdir()

    def make(raw: dict[str, Any] | None = None, **declared: Any) -> Deployment:
        config = DatasetConfig.model_validate(
            {
                "name": "trips",
                "uri": str(tmp_path / "lake" / "trips.lance"),
                "raw": {"uri": str(landing), "glob": "*.parquet", **(raw or {})},
                "indices": [{"column": "id"}],
                **declared,
            }
        )
        resources = dg.Definitions(resources={RUNNER_KEY: ThreadRunner()})
        definitions = dg.Definitions.merge(build_definitions(config), resources)
        return Deployment(config, CodeLocation(definitions, instance), landing)

    return make


@pytest.fixture
def deployment(deploy: Deploy) -> Deployment:
    return deploy()
