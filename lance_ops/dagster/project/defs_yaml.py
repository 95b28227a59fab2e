"""Write a `defs.yaml`: each of its documents declares one component."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from lance_ops.core.errors import ConfigError
from lance_ops.dagster.project.component_schema import ATTRIBUTES, SCHEMA_FILE

__all__ = ["defs_yaml", "name_of_folder", "write_declaration"]


def defs_yaml(
    component: str, attributes: Mapping[str, Any], comments: Sequence[str] = (), schema: str | None = None
) -> str:
    """Return the text of a `defs.yaml`; `schema` is the path of the JSON schema, which editors find by a comment."""
    lines = [f"# yaml-language-server: $schema={schema}"] if schema else []
    lines += [f"# {comment}" for comment in comments]
    document = {"type": component, "attributes": dict(attributes)}
    return "\n".join([*lines, yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110)])


def write_declaration(
    request: dg.ScaffoldRequest[Any], component: str, attributes: Mapping[str, Any], comments: Sequence[str] = ()
) -> None:
    """Write the `defs.yaml` that `dg scaffold defs` requests; with `append`, add it to the file as another document.

    Raises `ConfigError` if Python is requested, and `pydantic.ValidationError` for attributes that would not load.
    """
    if request.scaffold_format != "yaml":
        raise ConfigError("a Lance component is declared in YAML: leave out `--format python`")
    ATTRIBUTES[component].model_validate(attributes)
    schema = None if request.project_root is None else request.project_root / SCHEMA_FILE
    schema_path = os.path.relpath(schema, _folder(request)) if schema and schema.exists() else None
    text = defs_yaml(component, attributes, comments, schema_path)
    if request.append:
        with request.target_path.open("a", encoding="utf-8") as file:
            file.write(f"---\n{text}")
    else:
        (request.target_path / "defs.yaml").write_text(text, encoding="utf-8")


def name_of_folder(request: dg.ScaffoldRequest[Any], kind: str) -> str:
    """Return the name of the requested folder with only the characters that a declared name may have.

    A name that begins with no letter gets `kind` before it.
    """
    name = re.sub(r"[^a-z0-9]+", "_", _folder(request).name.lower()).strip("_")
    return name if name[:1].isalpha() else f"{kind}_{name}".rstrip("_")


def _folder(request: dg.ScaffoldRequest[Any]) -> Path:
    return request.target_path.parent if request.append else request.target_path
