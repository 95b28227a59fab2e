"""Describe a `defs.yaml` to editors: the JSON schema of the components that this package declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from lance_ops.dagster.declaration import COMPONENT_TYPE, ComponentAttributes, with_templates
from lance_ops.dagster.fleet import FLEET_COMPONENT_TYPE, FleetConfig
from lance_ops.dagster.io import RESOURCES_COMPONENT_TYPE, ResourcesConfig

__all__ = ["ATTRIBUTES", "SCHEMA_FILE", "defs_schema"]

SCHEMA_FILE = ".schemas/lance_components.json"
"""Where a project has the JSON schema of its declarations."""

ATTRIBUTES: Mapping[str, type[BaseModel]] = {
    COMPONENT_TYPE: ComponentAttributes,
    FLEET_COMPONENT_TYPE: FleetConfig,
    RESOURCES_COMPONENT_TYPE: ResourcesConfig,
}
"""The attributes of each component, by its `type`."""


def defs_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a `defs.yaml`, whose `type` decides which attributes it may have."""
    references, definitions = models_json_schema(
        [(with_templates(model), "validation") for model in ATTRIBUTES.values()], ref_template="#/$defs/{model}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Lance dataset, a fleet of Lance tables, or resources, as a Dagster component",
        "type": "object",
        "properties": {
            "type": {"enum": [*ATTRIBUTES], "description": "The component."},
            "attributes": {"type": "object", "description": "What the component declares."},
            "requirements": {"type": "object", "description": "Dagster's: environment variables of this file."},
            "template_vars_module": {"type": "string", "description": "Dagster's: variables for {{ }}."},
            "post_processing": {"type": "object", "description": "Dagster's: changes of the loaded assets."},
        },
        "required": ["type", "attributes"],
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"type": {"const": component}}, "required": ["type"]},
                "then": {"properties": {"attributes": references[with_templates(model), "validation"]}},
            }
            for component, model in ATTRIBUTES.items()
        ],
        "$defs": definitions["$defs"],
    }
