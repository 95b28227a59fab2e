"""Write the `defs.yaml` of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from lance_ops.dagster.declaration import COMPONENT_TYPE

__all__ = ["SCHEMA_FILE", "defs_yaml"]

SCHEMA_FILE = ".schemas/lance_dataset.json"
"""Where a project has the JSON schema of its declarations."""


def defs_yaml(attributes: Mapping[str, Any], comments: Sequence[str] = (), schema: str | None = None) -> str:
    """Return the text of a `defs.yaml`; `schema` is the path of the JSON schema, which editors find by a comment."""
    lines = [f"# yaml-language-server: $schema={schema}"] if schema else []
    lines += [f"# {comment}" for comment in comments]
    document = {"type": COMPONENT_TYPE, "attributes": dict(attributes)}
    return "\n".join([*lines, yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)])
