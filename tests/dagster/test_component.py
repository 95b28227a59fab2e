from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import jsonschema
import pytest
import yaml
from dagster.components.core.package_entry import discover_package_objects
from dagster.components.testing import create_defs_folder_sandbox
from typer.testing import CliRunner

from lance_ops.cli import app
from lance_ops.dagster import LanceDatasetComponent, LanceFleetComponent, LanceResourcesComponent
from lance_ops.dagster.declaration import COMPONENT_TYPE, ComponentAttributes, DatasetConfig
from lance_ops.dagster.definitions import build_definitions
from lance_ops.dagster.fleet import FLEET_COMPONENT_TYPE
from lance_ops.dagster.io import RESOURCES_COMPONENT_TYPE
from lance_ops.dagster.project import DatasetScaffolder, FleetScaffolder, ResourcesScaffolder, defs_schema
from lance_ops.dagster.runners import RUNNER_KEY, LanceRunner, SparkRunner, ThreadRunner, runner_key, runner_resources
from tests.dagster.dg_project import Project

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
            dg.Definitions.validate_loadable(definitions)  # it brings its own runner
            graph = definitions.resolve_asset_graph()
            assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
                "bronze/trips",
                "bronze/trips/batches",
                "bronze/trips/indices/id_idx",
            }
            assert "bronze_trips_maintenance" in definitions.get_repository_def().job_names


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


def declared(runner: object) -> ComponentAttributes:
    return ComponentAttributes.model_validate({"name": "a/trips", "uri": "x", "runner": runner})


def test_datasets_of_one_code_location_choose_their_own_runners() -> None:
    mine = build_definitions(declared({"threads": {"max_workers": 3}}))
    theirs = build_definitions(ComponentAttributes(name="b", uri="y"))
    given = ThreadRunner(max_workers=1)
    provided = build_definitions(DatasetConfig(name="c", uri="z"))
    merged = dg.Definitions.merge(mine, theirs, provided, dg.Definitions(resources={RUNNER_KEY: given}))
    dg.Definitions.validate_loadable(merged)
    repository = merged.get_repository_def()
    of_job = {
        name: repository.get_job(f"{name}_compact").get_required_resource_defs() for name in ("a_trips", "b", "c")
    }
    assert {name: set(needed) & {"a_trips_runner", "b_runner", RUNNER_KEY} for name, needed in of_job.items()} == {
        "a_trips": {"a_trips_runner"},
        "b": {"b_runner"},
        "c": {RUNNER_KEY},
    }


@pytest.mark.parametrize(
    ("runner", "resource"),
    [
        ("threads", ThreadRunner()),
        ("spark", SparkRunner()),
        ({"threads": {"max_workers": 2}}, ThreadRunner(max_workers=2)),
        (
            {"spark": {"master": "yarn", "conf": {"spark.a": "${B}"}}},
            SparkRunner(master="yarn", config={"spark.a": "${B}"}),
        ),
    ],
)
def test_a_declared_runner_is_a_resource_of_the_dataset(runner: object, resource: LanceRunner) -> None:
    (key, made), *more = runner_resources(declared(runner)).items()
    assert (key, more) == (runner_key(declared(runner)), [])
    assert type(made) is type(resource)
    assert made.model_dump() == resource.model_dump()


def test_a_declared_runner_may_be_the_code_locations() -> None:
    assert runner_resources(declared("code_location")) == {}
    assert runner_key(declared("code_location")) == RUNNER_KEY


def test_a_spark_runner_expands_variables_when_a_run_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def session(app_name: str, *, master: str | None, config: Mapping[str, str]) -> object:
        asked.update(master=master, config=config)
        return object()

    monkeypatch.setattr("lance_ops.dagster.runners.spark_runner.get_or_create", session)
    monkeypatch.setenv("MASTER", "spark://host:7077")
    monkeypatch.setenv("SECRET", "s3cret")
    runner = SparkRunner(master="${MASTER}", config={"spark.key": "${SECRET}"})
    assert "s3cret" not in repr(runner)
    runner.runner()
    assert asked == {"master": "spark://host:7077", "config": {"spark.key": "s3cret"}}


def keys_of(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every key that a schema names, with what it says of it."""
    for kind, of_kind in schema["$defs"].items():
        for key, of_key in of_kind.get("properties", {}).items():
            yield f"{kind}.{key}", of_key


def test_every_key_of_a_declaration_has_a_description_in_the_schema() -> None:
    keys = dict(keys_of(defs_schema()))
    assert {"ComponentAttributes.runner", "RawFiles.glob", "SparkSettings.conf", "HealthLimits.versions"} <= keys.keys()
    assert {"FleetConfig.root", "FleetBudget.max_minutes", "FleetPolicy.verify_after_days"} <= keys.keys()
    assert [key for key, of_key in keys.items() if not of_key.get("description")] == []


def test_the_schema_accepts_what_loads_and_refuses_unknown_keys() -> None:
    validator = jsonschema.Draft202012Validator(defs_schema())
    document = {"type": COMPONENT_TYPE, "attributes": yaml.safe_load(ATTRIBUTES)}
    validator.validate(document)
    document["attributes"]["raw"]["globs"] = "*"
    with pytest.raises(jsonschema.ValidationError, match="'globs' was unexpected"):
        validator.validate(document)


SCAFFOLDERS: Mapping[type[dg.Component], type[dg.Scaffolder[Any]]] = {
    LanceDatasetComponent: DatasetScaffolder,
    LanceFleetComponent: FleetScaffolder,
    LanceResourcesComponent: ResourcesScaffolder,
}


def scaffolded(
    folder: Path,
    params: Mapping[str, Any],
    *,
    component: type[dg.Component] = LanceDatasetComponent,
    append: bool = False,
) -> list[dict[str, Any]]:
    """Call a component's scaffolder as `dg scaffold defs` does; return the documents of the file."""
    path = folder / "defs.yaml"
    scaffolder = SCAFFOLDERS[component]()
    request = dg.ScaffoldRequest(
        type_name=f"lance_ops.dagster.{component.__name__}",
        target_path=path if append else folder,
        scaffold_format="yaml",
        project_root=None,
        params=scaffolder.get_scaffold_params().model_validate(params),
        append=append,
    )
    scaffolder.scaffold(request)
    return list(yaml.safe_load_all(path.read_text()))


def test_the_scaffolder_declares_how_the_landed_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing = tmp_path / "landing"
    (landing / "sales").mkdir(parents=True)
    for day in (1, 2):
        text = f"Ort;Nr;Betrag\nZürich;00{day};{day},5\n"
        (landing / f"sales/2026-01-0{day}.csv").write_text(text, encoding="cp1252")
    monkeypatch.setenv("LANDING", str(landing))
    (made,) = scaffolded(tmp_path, {"name": "sales", "landing": "${LANDING}"})
    attributes = made["attributes"]
    assert attributes["raw"] == {
        "uri": "${LANDING}/sales",
        "glob": "*.csv",
        "key": r"(?P<key>\d{4}-\d{2}-\d{2})",
        "text": {"delimiter": ";", "encoding": "cp1252", "decimal_point": ","},
    }
    assert attributes["write"] == {"columns": {"Nr": "string"}}
    assert "# Its text is cp1252: Zürich" in (tmp_path / "defs.yaml").read_text()
    (landing / "other").mkdir()
    (landing / "other/a.parquet").touch()
    reasons = {
        "${LANDING}": "The files are of 2 kinds: declare a dataset for each (lance-ops init).",
        str(tmp_path / "absent"): "absent",
        "${ABSENT}": "The files were not looked at: raw.uri: environment variable ABSENT is not set",
        "s3://bucket/in": "The files were not looked at: only those of a local folder are.",
    }
    for place, reason in reasons.items():
        (made,) = scaffolded(tmp_path, {"name": "sales", "landing": place})
        assert made["attributes"]["raw"] == {"uri": place}
        comments = [line for line in (tmp_path / "defs.yaml").read_text().splitlines() if line.startswith("# ")]
        assert any(reason in comment for comment in comments)


def test_a_scaffolded_dataset_with_raw_files_says_which_executor_its_backfills_need(tmp_path: Path) -> None:
    for params, is_said in (({"landing": "/in", "glob": "*.csv"}, True), ({}, False)):
        scaffolded(tmp_path, {"name": "sales", **params})
        assert ("executor=dg.in_process_executor" in (tmp_path / "defs.yaml").read_text()) == is_said


def test_the_scaffolder_writes_declarations_that_load(tmp_path: Path) -> None:
    folder = tmp_path / "Daily-Orders"
    folder.mkdir()
    (first,) = scaffolded(folder, {})
    assert first["attributes"] == {"name": "daily_orders", "uri": "${LANCE_OPS_LAKE}/daily_orders.lance"}
    _, second = scaffolded(folder, {"name": "b", "landing": "/in", "glob": "*.csv"}, append=True)
    assert second["attributes"]["raw"] == {"uri": "/in", "glob": "*.csv"}
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(component_cls=LanceDatasetComponent, defs_yaml_contents=second)
        with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
            dg.Definitions.validate_loadable(definitions)


def test_a_scaffolded_fleet_fits_the_printed_schema_and_loads_alone(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(CliRunner().invoke(app, ["schema"]).stdout))
    folder = tmp_path / "Silver-Lake"
    folder.mkdir()
    (unbounded,) = scaffolded(folder, {}, component=LanceFleetComponent)
    assert unbounded == {
        "type": FLEET_COMPONENT_TYPE,
        "attributes": {"name": "silver_lake", "root": "${LANCE_OPS_LAKE}"},
    }
    assert "# Nothing bounds what a night may rewrite." in (folder / "defs.yaml").read_text()
    asked = {"name": "lake", "root": "s3://lake/silver", "max_megabytes": 5}
    _, bounded = scaffolded(folder, asked, component=LanceFleetComponent, append=True)
    assert bounded["attributes"]["budget"] == {"max_megabytes": 5}
    assert (folder / "defs.yaml").read_text().count("# Nothing bounds") == 1
    for document in (unbounded, bounded):
        validator.validate(document)
        with create_defs_folder_sandbox() as sandbox:
            path = sandbox.scaffold_component(component_cls=LanceFleetComponent, defs_yaml_contents=document)
            with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
                dg.Definitions.validate_loadable(definitions)
                name = document["attributes"]["name"]
                assert f"{name}_maintenance" in definitions.get_repository_def().job_names


def test_scaffolded_resources_fit_the_printed_schema_and_load_alone(tmp_path: Path) -> None:
    (first,) = scaffolded(tmp_path, {}, component=LanceResourcesComponent)
    assert first == {
        "type": RESOURCES_COMPONENT_TYPE,
        "attributes": {"io_manager": {"base_uri": "${LANCE_OPS_LAKE}"}},
    }
    (comment,) = [line for line in (tmp_path / "defs.yaml").read_text().splitlines() if line.startswith("# An asset")]
    datasets = yaml.safe_load(comment.partition("such as ")[2])
    asked = {"base_uri": "s3://lake/gold", "key": "gold"}
    _, second = scaffolded(tmp_path, asked, component=LanceResourcesComponent, append=True)
    assert second["attributes"] == {"io_manager": {"key": "gold", "base_uri": "s3://lake/gold"}}
    first["attributes"] |= datasets
    for document, keys in ((first, {"io_manager", "trips"}), (second, {"gold"})):
        jsonschema.Draft202012Validator(defs_schema()).validate(document)
        with create_defs_folder_sandbox() as sandbox:
            path = sandbox.scaffold_component(component_cls=LanceResourcesComponent, defs_yaml_contents=document)
            with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
                dg.Definitions.validate_loadable(definitions)
                assert (definitions.resources or {}).keys() == keys


@pytest.mark.parametrize(
    ("component", "attributes"),
    [
        (LanceFleetComponent, {"name": "lake", "root": "/lake", "budgets": {"max_megabytes": 5}}),
        (LanceFleetComponent, {"name": "lake", "root": "/lake", "budget": {"megabytes": 5}}),
        (LanceFleetComponent, {"name": "lake", "uri": "/lake"}),
        (LanceDatasetComponent, {"name": "lake", "uri": "/lake", "root": "/lake"}),
        (LanceResourcesComponent, {"io_manager": {"base_uri": "/lake", "key_prefix": "a"}}),
        (LanceResourcesComponent, {"datasets": {"trips": {"uri": "/lake", "versions": 3}}}),
    ],
)
def test_the_schema_and_dagster_refuse_a_key_that_the_component_lacks(
    component: type[dg.Component], attributes: Mapping[str, Any]
) -> None:
    document = {"type": f"lance_ops.dagster.{component.__name__}", "attributes": attributes}
    with pytest.raises(jsonschema.ValidationError, match="Additional properties are not allowed|required"):
        jsonschema.Draft202012Validator(defs_schema()).validate(document)
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(component_cls=component, defs_yaml_contents=document)
        loading = sandbox.load_component_and_build_defs(defs_path=path)
        with pytest.raises(Exception, match="Error while loading"), loading:
            pass


def test_the_schema_offers_no_null_for_a_section_so_that_errors_name_the_key_within_it() -> None:
    choices = {key: of_key.get("anyOf", ()) for key, of_key in keys_of(defs_schema())}
    assert "SparkSettings.master" in choices and "ComponentAttributes.raw" in choices
    optional = {key: each for key, each in choices.items() if {"type": "null"} in each}
    assert optional and not [key for key, each in optional.items() if any("$ref" in choice for choice in each)]


def test_the_schema_refuses_another_component() -> None:
    with pytest.raises(jsonschema.ValidationError, match="is not one of"):
        jsonschema.Draft202012Validator(defs_schema()).validate({"type": "dagster.Other", "attributes": {}})


def test_dagster_finds_the_component_in_the_module_of_its_registry_entry() -> None:
    found = discover_package_objects(["lance_ops.dagster"])
    assert [f"{key.namespace}.{key.name}" for key in found] == [
        COMPONENT_TYPE,
        FLEET_COMPONENT_TYPE,
        RESOURCES_COMPONENT_TYPE,
    ]


DATASET = "type: lance_ops.dagster.LanceDatasetComponent\nattributes: {{name: {}, uri: /a.lance}}\n"
SAME_TABLE = "type: lance_ops.dagster.LanceDatasetComponent\nattributes: {name: sales, uri: /a.lance/}\n"
FLEET = "type: lance_ops.dagster.LanceFleetComponent\nattributes: {{name: {}, root: /lake}}\n"


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        (DATASET.format("orders"), DATASET.format("orders"), "orders is already declared in"),
        (DATASET.format("orders"), FLEET.format("orders"), "orders is already declared in"),
        (FLEET.format("orders"), DATASET.format("orders"), "orders is already declared in"),
        (DATASET.format("a/b"), DATASET.format("a_b"), "a_b gives jobs the names of a/b, which is already declared in"),
    ],
    ids=["datasets", "dataset, fleet", "fleet, dataset", "jobs"],
)
def test_a_name_that_two_files_declare_is_refused_with_both(
    project: Project, first: str, second: str, problem: str
) -> None:
    one, other = (project.declare(f"{folder}/defs.yaml", text) for folder, text in (("a", first), ("b", second)))
    assert f"{other}: attributes.name: {problem} {one}" in project.refusal()


def test_a_table_that_two_files_declare_is_refused_with_both(project: Project) -> None:
    """Each would take the batches that the other ingested under the same keys for its own."""
    one = project.declare("a/defs.yaml", DATASET.format("orders"))
    other = project.declare("b/defs.yaml", SAME_TABLE)
    assert f"{other}: attributes.uri: it is the table of orders in {one}: declare a table once" in project.refusal()
