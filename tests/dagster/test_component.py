from __future__ import annotations

import re
import traceback

import dagster as dg
import pytest
import yaml
from dagster.components.testing import create_defs_folder_sandbox

from lance_ops.dagster.component import LanceDatasetComponent
from lance_ops.dagster.runners.runner import RUNNER_KEY, ThreadRunner

pytestmark = [
    pytest.mark.dagster,
    # Dagster reads defs.yaml by a name that pydantic deprecates, and by a class of its own that is marked beta.
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
]

ATTRIBUTES = """
name: bronze/trips
uri: ${LAKE}/trips.lance
description: of the {{ env.TEAM }} team
raw:
  uri: ${LANDING}/trips
  key: (?P<key>\\d+)
indices:
  - column: id
health:
  hours_without_version: 6
"""


def test_a_defs_yaml_declares_a_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM", "summer")
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=LanceDatasetComponent,
            defs_yaml_contents={
                "type": "lance_ops.dagster.component.LanceDatasetComponent",
                "attributes": yaml.safe_load(ATTRIBUTES),
            },
        )
        with sandbox.load_component_and_build_defs(defs_path=path) as (component, definitions):
            assert isinstance(component, LanceDatasetComponent)
            assert component.config.landing().key == "(?P<key>\\d+)"
            assert component.config.description == "of the summer team"
            with_runner = dg.Definitions.merge(definitions, dg.Definitions(resources={RUNNER_KEY: ThreadRunner()}))
            graph = with_runner.resolve_asset_graph()
            assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
                "bronze/trips",
                "bronze/trips/batches",
            }
            assert "bronze_trips_maintenance" in with_runner.get_repository_def().job_names


def test_a_mistake_in_a_defs_yaml_names_the_key() -> None:
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(
            component_cls=LanceDatasetComponent,
            defs_yaml_contents={
                "type": "lance_ops.dagster.component.LanceDatasetComponent",
                "attributes": {"name": "trips", "uri": "x", "raw": {"uri": "y", "settle_seconds": -1}},
            },
        )
        loading = sandbox.load_component_and_build_defs(defs_path=path)
        with pytest.raises(Exception, match="Error while loading") as caught, loading:
            pass
        told = "".join(traceback.format_exception(caught.value))
        assert re.search(r"raw\.settle_seconds at .*defs\.yaml:\d+", told)
