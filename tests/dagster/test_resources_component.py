from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import lance_ops
from lance_ops.core.errors import ConfigError, LanceOpsError
from lance_ops.dagster import LanceDatasetResource, LanceIOManager
from lance_ops.dagster.io.declared_resources import DatasetResourceConfig, IOManagerConfig
from tests.dagster.dg_project import Project

pytestmark = [
    pytest.mark.dagster,
    # Dagster reads defs.yaml by a name that pydantic deprecates, and by a class of its own that is marked beta.
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
]

RESOURCES = """
type: lance_ops.dagster.LanceResourcesComponent
attributes:
  io_manager:
    base_uri: ${LAKE}/silver
    storage_options: {token: "${LAKE_TOKEN}"}
  datasets:
    newest: {uri: "${LAKE}/trips.lance"}
    third: {uri: "${LAKE}/trips.lance", version: 3}
    released: {uri: "${LAKE}/trips.lance", tag: released}
    trial: {uri: "${LAKE}/trips.lance", branch: trial}
    pinned: {uri: "${LAKE}/trips.lance", branch: trial, version: 5}
"""

ASSETS = """
import dagster as dg
import pyarrow as pa

from lance_ops.dagster import LanceDatasetResource


@dg.asset(key_prefix="counts")
def rows(
    newest: LanceDatasetResource,
    third: LanceDatasetResource,
    released: LanceDatasetResource,
    trial: LanceDatasetResource,
    pinned: LanceDatasetResource,
) -> pa.Table:
    trial.write(pa.table({"id": [7]}), mode="append")
    trial.write(pa.table({"id": [8]}), mode="append")
    opened = {"newest": newest, "third": third, "released": released, "trial": trial, "pinned": pinned}
    return pa.table({"name": list(opened), "rows": [each.open().count_rows() for each in opened.values()]})


@dg.asset(ins={"rows": dg.AssetIn(key_prefix="counts")})
def most(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("rows", "descending")]).slice(0, 1)
"""


def test_an_asset_uses_the_declared_resources_of_a_project(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "lake" / "trips.lance")
    for count in range(1, 5):
        made = lance_ops.write_dataset(pa.table({"id": list(range(count))}), uri, mode="overwrite")
    made.tags.create("released", 2)
    project.declare("lake/defs.yaml", RESOURCES)
    project.declare("assets.py", ASSETS)
    monkeypatch.delenv("LAKE", raising=False)
    definitions = project.load()  # no variable is needed to load
    dg.Definitions.validate_loadable(definitions)
    monkeypatch.setenv("LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("LAKE_TOKEN", "hunter2")

    ended = definitions.resolve_implicit_global_asset_job_def().execute_in_process()

    assert ended.success
    counted = lance_ops.dataset(tmp_path / "lake/silver/counts/rows.lance").to_table()
    assert dict(zip(*counted.to_pydict().values(), strict=True)) == {
        "newest": 4,
        "third": 3,
        "released": 2,
        "trial": 6,
        "pinned": 5,
    }
    most = lance_ops.dataset(tmp_path / "lake/silver/most.lance").to_table()
    assert most.to_pylist() == [{"name": "trial", "rows": 6}]
    assert "hunter2" not in repr([*ended.all_events, definitions.resources])


@pytest.mark.parametrize(
    ("declared", "resource", "own"),
    [(IOManagerConfig, LanceIOManager, {"key"}), (DatasetResourceConfig, LanceDatasetResource, set())],
)
def test_declared_resources_have_the_names_and_defaults_of_the_python_classes(
    declared: Any, resource: Any, own: set[str]
) -> None:
    def defaults(model: Any) -> Mapping[str, Any]:
        return {name: field.get_default(call_default_factory=True) for name, field in model.model_fields.items()}

    assert {name: each for name, each in defaults(declared).items() if name not in own} == defaults(resource)


def test_an_io_manager_may_have_another_key_beside_one_of_another_file(project: Project) -> None:
    manager = "type: lance_ops.dagster.LanceResourcesComponent\nattributes:\n  io_manager: {{base_uri: {0}{1}}}\n"
    project.declare("silver/defs.yaml", manager.format("/silver", ""))
    project.declare("gold/defs.yaml", manager.format("/gold", ", key: gold, mode: append"))
    resources = project.load().resources or {}
    assert {key: (each.base_uri, each.mode) for key, each in resources.items()} == {
        "io_manager": ("/silver", "overwrite"),
        "gold": ("/gold", "append"),
    }


@pytest.mark.parametrize(
    ("attributes", "place", "problem"),
    [
        ("datasets: {trips: {uri: /a, tags: b}}", "datasets.trips.tags", "Extra inputs are not permitted"),
        ("io_manager: {base_uri: /a, version: 3}", "io_manager.version", "Extra inputs are not permitted"),
        ("datasets: {trips: {uri: /a, version: 3, tag: b}}", "datasets.trips", "tag and version are given"),
        ("datasets: {trips: {uri: /a, branch: b, tag: c}}", "datasets.trips", "tag and branch are given"),
        (
            "datasets: {trips: {uri: /a, branch: b, version: 1, tag: c}}",
            "datasets.trips",
            "tag, version and branch are",
        ),
        ("datasets: {trips: {uri: /a, version: 0}}", "datasets.trips.version", "greater than or equal to 1"),
        ("datasets: {io_manager: {uri: /a}}", "datasets", "io_manager: Dagster stores outputs by the resource"),
        ("datasets: {my-trips: {uri: /a}}", "datasets", "my-trips: the key of a resource has only letters"),
        ("io_manager: {base_uri: /a, key: 1st}", "io_manager.key", "the key of a resource has only letters"),
        ("{io_manager: {base_uri: /a, key: a}, datasets: {a: {uri: /a}}}", "", "io_manager.key and datasets.a have"),
        ("{datasets: {}}", "", "no resource is declared"),
    ],
)
def test_a_mistake_in_declared_resources_is_told_with_its_file_and_key(
    project: Project, attributes: str, place: str, problem: str
) -> None:
    written = textwrap.indent(attributes, "  ")
    path = project.declare("a/defs.yaml", f"type: lance_ops.dagster.LanceResourcesComponent\nattributes:\n{written}\n")
    told = project.refusal()
    assert problem in told
    assert re.search(rf"attributes\.?{re.escape(place)} at .*{re.escape(str(path))}:\d+", told)


def test_a_name_that_two_files_declare_is_refused_with_both(project: Project) -> None:
    first, second = (
        project.declare(f"{folder}/defs.yaml", RESOURCES.replace("third", f"third_{folder}")) for folder in "ab"
    )
    told = project.refusal()
    assert f"{second}: attributes.io_manager: the resource io_manager is already declared in {first}" in told
    assert ConfigError.__name__ in told


def test_a_name_that_two_documents_of_a_file_declare_is_refused(project: Project) -> None:
    document = "type: lance_ops.dagster.LanceResourcesComponent\nattributes:\n  datasets: {trips: {uri: /a}}\n"
    path = project.declare("a/defs.yaml", f"{document}---\n{document}")
    assert f"{path}: attributes.datasets.trips: the resource trips is already declared in {path}" in project.refusal()


def test_a_name_that_one_mapping_has_twice_is_refused_with_its_line(project: Project) -> None:
    twice = RESOURCES.replace("third:", "newest:")
    path = project.declare("a/defs.yaml", twice)
    told = project.refusal()
    assert f"{path}: line 9: key attributes.datasets.newest is given twice" in told
    assert issubclass(ConfigError, LanceOpsError)
