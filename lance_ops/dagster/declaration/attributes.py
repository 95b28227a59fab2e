"""The attributes of a component that declares a dataset, and their JSON schema for editors."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lance_ops.dagster.declaration.config import DatasetConfig
from lance_ops.dagster.declaration.runner_choice import RunnerChoice

__all__ = ["COMPONENT_TYPE", "ComponentAttributes", "defs_schema"]

COMPONENT_TYPE = "lance_ops.dagster.LanceDatasetComponent"
"""The `type` of a `defs.yaml` that declares a dataset."""


class ComponentAttributes(DatasetConfig):
    """A declared dataset that loads alone: its tasks run in threads unless it chooses another runner."""

    runner: RunnerChoice = Field(
        default="threads",
        description="What executes the tasks: threads, spark, {spark: {master, conf}}, or code_location for its "
        "resource `lance_runner`.",
    )


def defs_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a `defs.yaml` that declares a dataset."""
    attributes = ComponentAttributes.model_json_schema(ref_template="#/$defs/{model}")
    kinds = attributes.pop("$defs")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Lance dataset, as a Dagster component",
        "type": "object",
        "properties": {
            "type": {"const": COMPONENT_TYPE, "description": "The component."},
            "attributes": {"$ref": f"#/$defs/{ComponentAttributes.__name__}"},
            "requirements": {"type": "object", "description": "Dagster's: environment variables of this file."},
            "template_vars_module": {"type": "string", "description": "Dagster's: variables for {{ }}."},
            "post_processing": {"type": "object", "description": "Dagster's: changes of the loaded assets."},
        },
        "required": ["type", "attributes"],
        "additionalProperties": False,
        "$defs": {**kinds, ComponentAttributes.__name__: attributes},
    }
