from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from typing import Any

import dagster as dg
import jsonschema
import pytest
from dagster.components.testing import create_defs_folder_sandbox

from lance_ops.dagster import LanceDatasetComponent, LanceFleetComponent, LanceResourcesComponent
from lance_ops.dagster.declaration import DeclaredModel
from lance_ops.dagster.declaration.templates import unset_variable
from lance_ops.dagster.fleet import FleetConfig
from lance_ops.dagster.project import defs_schema

pytestmark = [
    pytest.mark.dagster,
    # Dagster reads defs.yaml by a name that pydantic deprecates, and by a class of its own that is marked beta.
    pytest.mark.filterwarnings("ignore::dagster.BetaWarning"),
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecatedSince20"),
]

Component = type[LanceDatasetComponent] | type[LanceFleetComponent] | type[LanceResourcesComponent]

REQUIRED: Mapping[Component, Mapping[str, Any]] = {
    LanceDatasetComponent: {"name": "trips", "uri": "/lake/trips"},
    LanceFleetComponent: {"name": "lake", "root": "/lake"},
    LanceResourcesComponent: {"io_manager": {"base_uri": "/lake"}},
}
MAIL = {"to": ["a@b.c"], "sender": "d@b.c", "host": "mail"}


def document(component: Component, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `defs.yaml` with these attributes beside those that the component requires."""
    return {
        "type": f"lance_ops.dagster.{component.__name__}",
        "attributes": {**REQUIRED[component], **attributes},
    }


def loaded(component: Component, attributes: Mapping[str, Any]) -> DeclaredModel:
    """Load the attributes as Dagster does; return the declared model."""
    with create_defs_folder_sandbox() as sandbox:
        contents = document(component, attributes)
        path = sandbox.scaffold_component(component_cls=component, defs_yaml_contents=contents)
        with sandbox.load_component_and_build_defs(defs_path=path) as (made, definitions):
            dg.Definitions.validate_loadable(definitions)
            assert isinstance(made, LanceDatasetComponent | LanceFleetComponent | LanceResourcesComponent)
            return made.config


def refusal(component: Component, attributes: Mapping[str, Any]) -> str:
    """Return the error that Dagster shows for attributes that do not load."""
    with pytest.raises(Exception, match="Error while loading") as caught:
        loaded(component, attributes)
    return "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("component", "templated", "plain"),
    [
        (
            LanceDatasetComponent,
            {"maintenance": {"upkeep": {"max_megabytes_per_run": "{{ env.NUMBER }}"}}},
            {"maintenance": {"upkeep": {"max_megabytes_per_run": 25}}},
        ),
        (
            LanceDatasetComponent,
            {"health": {"versions": "{{ env.NUMBER | int }}", "deleted_ratio": "{{ env.SHARE }}"}},
            {"health": {"versions": 25, "deleted_ratio": 0.5}},
        ),
        (
            LanceDatasetComponent,
            {"maintenance": {"compaction": {"materialize_deletions": "{{ env.FLAG }}"}}},
            {"maintenance": {"compaction": {"materialize_deletions": False}}},
        ),
        (
            LanceDatasetComponent,
            {"raw": {"uri": "/in", "changed": "{{ env.CHANGED }}", "schema_mode": "{{ env.MODE }}"}},
            {"raw": {"uri": "/in", "changed": "append", "schema_mode": "add"}},
        ),
        (
            LanceDatasetComponent,
            {"indices": [{"column": "a", "type": "{{ env.INDEX }}"}], "owners": ["{{ env.TEAM }}"]},
            {"indices": [{"column": "a", "type": "ZONEMAP"}], "owners": ["team:data"]},
        ),
        (
            LanceDatasetComponent,
            {"columns": {"a": {"description": "of {{ env.TEAM }}"}, "b": "{{ env.NOTES }}"}},
            {"columns": {"a": {"description": "of team:data"}, "b": {"description": "noted"}}},
        ),
        (
            LanceDatasetComponent,
            {"runner": {"threads": {"max_workers": "{{ env.NUMBER }}"}}},
            {"runner": {"threads": {"max_workers": 25}}},
        ),
        (
            LanceFleetComponent,
            {"budget": {"max_megabytes": "{{ env.NUMBER | int }}"}, "failure_threshold": "{{ env.SHARE }}"},
            {"budget": {"max_megabytes": 25}, "failure_threshold": 0.5},
        ),
        (
            LanceFleetComponent,
            {"policy": {"compaction": {"materialize_deletions": "{{ env.FLAG }}"}}, "runner": "{{ env.RUNNER }}"},
            {"policy": {"compaction": {"materialize_deletions": False}}, "runner": "spark"},
        ),
        (
            LanceFleetComponent,
            {"alerts": [{"email": MAIL | {"port": "{{ env.NUMBER }}"}, "events": ["{{ env.EVENT }}"]}]},
            {"alerts": [{"email": MAIL | {"port": 25}, "events": ["failure"]}]},
        ),
        (
            LanceFleetComponent,
            {"tags": {"team": "{{ env.EVENT }}"}, "cron": "{{ env.CRON }}", "name": "{{ env.RUNNER }}"},
            {"tags": {"team": "failure"}, "cron": "0 5 * * *", "name": "spark"},
        ),
        (
            LanceResourcesComponent,
            {
                "io_manager": {"base_uri": "{{ env.TEAM }}", "key": "{{ env.RUNNER }}", "mode": "{{ env.CHANGED }}"},
                "datasets": {"trips": {"uri": "/lake/trips", "version": "{{ env.NUMBER }}"}},
            },
            {
                "io_manager": {"base_uri": "team:data", "key": "spark", "mode": "append"},
                "datasets": {"trips": {"uri": "/lake/trips", "version": 25}},
            },
        ),
    ],
)
def test_a_template_stands_for_any_value(
    component: Component, templated: Mapping[str, Any], plain: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {
        "NUMBER": "25",
        "SHARE": "0.5",
        "FLAG": "false",
        "CHANGED": "append",
        "MODE": "add",
        "INDEX": "ZONEMAP",
        "TEAM": "team:data",
        "NOTES": "{'description': 'noted'}",
        "RUNNER": "spark",
        "EVENT": "failure",
        "CRON": "0 5 * * *",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    jsonschema.Draft202012Validator(defs_schema()).validate(document(component, templated))
    jsonschema.Draft202012Validator(component.get_model_cls().model_json_schema()).validate(
        document(component, templated)["attributes"]
    )
    assert loaded(component, templated) == loaded(component, plain)


def test_the_schema_accepts_a_template_for_every_key() -> None:
    kinds = defs_schema()["$defs"]
    refused = [
        f"{kind}.{key}"
        for kind, of_kind in kinds.items()
        for key, of_key in of_kind.get("properties", {}).items()
        if not jsonschema.Draft202012Validator({**of_key, "$defs": kinds}).is_valid("{{ env.VALUE }}")
    ]
    assert refused == []


def test_the_schema_names_the_wrong_key_within_a_section_for_which_a_template_may_stand() -> None:
    wrong = document(LanceDatasetComponent, {"maintenance": {"compaction": {"materialize_deletions": "perhaps"}}})
    (error,) = jsonschema.Draft202012Validator(defs_schema()).iter_errors(wrong)
    assert list(error.path) == ["attributes", "maintenance", "compaction", "materialize_deletions"]
    assert "is not of type 'boolean'" in error.message


@pytest.mark.parametrize(
    ("component", "attributes", "key"),
    [
        (LanceDatasetComponent, {"health": {"versions": "{{ env.S3CRET }}"}}, "health.versions: Input should be"),
        (LanceDatasetComponent, {"raw": {"uri": "/in", "changed": "{{ env.S3CRET }}"}}, "raw.changed: Input should be"),
        (LanceDatasetComponent, {"indices": [{"column": "a", "type": "{{ env.S3CRET }}"}]}, "indices.0.type: Input"),
        (LanceDatasetComponent, {"raw": {"uri": "/in", "key": "{{ env.S3CRET }}"}}, "raw.key: needs a group"),
        (LanceFleetComponent, {"budget": {"max_megabytes": "{{ env.S3CRET }}"}}, "budget.max_megabytes: Input should"),
        (LanceFleetComponent, {"budget": {"max_tables": "{{ 0 }}"}}, "budget.max_tables: Input should be greater"),
        (LanceFleetComponent, {"budget": "{{ env.S3CRET }}"}, "budget: Input should be"),
        (
            LanceResourcesComponent,
            {"datasets": {"a": {"uri": "/a", "version": "{{ env.S3CRET }}"}}},
            "datasets.a.version",
        ),
    ],
)
def test_a_rendered_value_that_does_not_fit_is_refused_with_its_file_and_key_and_not_quoted(
    component: Component, attributes: Mapping[str, Any], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3CRET", "hunter2")
    told = refusal(component, attributes)
    assert f"/defs.yaml: attributes.{key}" in told
    assert "hunter2" not in told


@pytest.mark.parametrize(
    ("component", "attributes", "key"),
    [
        (LanceDatasetComponent, {"health": {"versions": "{{ env.ABSENT }}"}}, "health.versions"),
        (LanceDatasetComponent, {"health": {"versions": "{{ env.ABSENT | int }}"}}, "health.versions"),
        (LanceDatasetComponent, {"uri": "{{ env.ABSENT }}/trips"}, "uri"),
        (LanceDatasetComponent, {"uri": "{{ env.ABSENT ~ '/trips' }}"}, "uri"),
        (LanceFleetComponent, {"budget": {"max_megabytes": "{{env.ABSENT}}"}}, "budget.max_megabytes"),
        (LanceFleetComponent, {"owners": ["{{ env.ABSENT }}"]}, "owners.0"),
    ],
)
def test_a_variable_that_is_not_set_is_named_with_the_key(
    component: Component, attributes: Mapping[str, Any], key: str
) -> None:
    told = refusal(component, attributes)
    assert f"/defs.yaml: attributes.{key}: environment variable ABSENT is not set; set it, or give a default" in told


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{{ env.ABSENT ~ '/trips' }}", "ABSENT"),
        ("{{ '/lake/' ~ env.ABSENT }}", "ABSENT"),
        ("{{ env.PATH ~ env.ABSENT }}", "ABSENT"),
        ("{{ (env.ABSENT ~ '/trips') or '/lake' }}", "ABSENT"),
        ("{{ env.ABSENT or env.MISSING }}", "MISSING"),
        ("{{ env.ABSENT | default('/lake') }}", "ABSENT"),
        ("{{ env.ABSENT.lower() }}", "ABSENT"),
        ("{{ [env.ABSENT] | join('/') }}", "ABSENT"),
        ("{{ '/a' if env.MISSING else env.ABSENT }}", "ABSENT"),
        ("{% if env.MISSING %}a{% else %}{{ env.ABSENT }}{% endif %}", "ABSENT"),
        ("{{ env.ABSENT if env.ABSENT is defined else '/lake' }}", "ABSENT"),
        ("{{ '/lake' if env.ABSENT is not defined else env.ABSENT }}", "ABSENT"),
        ("{{ '/lake' if env.ABSENT is undefined else env.ABSENT }}", "ABSENT"),
        ("{{ env.ABSENT is defined and env.ABSENT }}", "ABSENT"),
        ("{{ env.ABSENT if env.ABSENT != '' else '/lake' }}", "ABSENT"),
        ("{% if '' != env.ABSENT %}{{ env.ABSENT }}{% endif %}", "ABSENT"),
    ],
)
def test_a_variable_that_is_not_set_within_an_expression_is_named(template: str, name: str) -> None:
    assert unset_variable(template) == name


@pytest.mark.parametrize(
    "template",
    [
        "{{ env.PATH ~ '/trips' }}",
        "{{ env.ABSENT ~ '/trips' if env.ABSENT else '/lake' }}",
        "{% if env.ABSENT %}{{ env.ABSENT }}{% endif %}",
        "{{ (env.ABSENT or '/lake') ~ '/trips' }}",
        "{{ env.ABSENT | d('/lake', boolean=true) ~ '/trips' }}",
        "{{ '/a' if env.ABSENT == 'x' else '/b' }}",
        "{{ '/a' if 'x' == env.ABSENT else '/b' }}",
        "{{ '/a' if env.ABSENT is none else '/b' }}",
        "{{ env.ABSENT if env.ABSENT is not none else '/b' }}",
        "{{ env.ABSENT if env.ABSENT != none else '/b' }}",
        "{{ '/a' if env.ABSENT is defined else '/b' }}",
        "{{ env.ABSENT if env.ABSENT is defined and env.ABSENT else '/b' }}",
        "{{ not env.ABSENT }}",
        "{{ 'env.ABSENT' }}",
        "{{ other.env.ABSENT }}",
        "{{ env.ABSENT",
    ],
)
def test_a_template_that_handles_the_lack_of_a_variable_is_rendered(template: str) -> None:
    assert unset_variable(template) is None


def test_a_template_may_give_a_default_for_a_variable_that_is_not_set() -> None:
    versions = ("{{ env('ABSENT', 7) }}", "{{ env.ABSENT or 7 }}", "{{ env.ABSENT | default(7, true) }}")
    for written in versions:
        templated = loaded(LanceDatasetComponent, {"health": {"versions": written}})
        assert templated == loaded(LanceDatasetComponent, {"health": {"versions": 7}})


def test_a_text_that_looks_like_a_number_stays_a_text() -> None:
    config = loaded(LanceFleetComponent, {"tags": {"year": "2026"}, "storage_options": {"port": "9000"}})
    assert isinstance(config, FleetConfig)
    assert (config.tags, config.storage_options) == ({"year": "2026"}, {"port": "9000"})


def test_a_section_without_templates_is_checked_at_its_line_whatever_another_section_holds() -> None:
    told = refusal(
        LanceDatasetComponent, {"health": {"versions": "{{ env.ABSENT }}"}, "raw": {"uri": "/in", "key": "("}}
    )
    assert re.search(r"raw\.key at .*defs\.yaml:\d+", told)


def test_a_name_that_templates_do_not_know_is_told_with_its_line() -> None:
    told = refusal(LanceDatasetComponent, {"health": {"versions": "{{ unknown }}"}})
    assert re.search(r"defs\.yaml:\d+ - attributes\.health\.versions", told)
    assert "'unknown' not found in scope" in told
