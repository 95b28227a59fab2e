"""Write a dataset's `defs.yaml` when `dg scaffold defs` asks for one."""

from __future__ import annotations

import os
import re
from typing import Any

import dagster as dg
from pydantic import BaseModel, Field

from lance_ops.core.errors import ConfigError
from lance_ops.dagster.declaration import ComponentAttributes
from lance_ops.dagster.project.defs_yaml import SCHEMA_FILE, defs_yaml

__all__ = ["DatasetParameters", "DatasetScaffolder"]


class DatasetParameters(BaseModel):
    """What `dg scaffold defs` may be told about a dataset; each has an option of its own."""

    name: str | None = Field(default=None, description="The dataset's name; default: that of the folder.")
    uri: str | None = Field(default=None, description="Where the table is; default: ${LANCE_OPS_LAKE}/<name>.lance.")
    landing: str | None = Field(default=None, description="The folder of raw files; default: no ingestion.")
    glob: str | None = Field(default=None, description="Which files of the landing folder count.")


class DatasetScaffolder(dg.Scaffolder[DatasetParameters]):
    """Writes a declaration that loads as it stands."""

    @classmethod
    def get_scaffold_params(cls) -> type[DatasetParameters]:
        """Return the model of the options."""
        return DatasetParameters

    def scaffold(self, request: dg.ScaffoldRequest[DatasetParameters]) -> None:
        """Write `defs.yaml`; with `append`, add the declaration to the file as another document."""
        if request.scaffold_format != "yaml":
            raise ConfigError("a Lance dataset is declared in YAML: leave out `--format python`")
        asked = request.params
        folder = request.target_path.parent if request.append else request.target_path
        name = asked.name or _name_of(folder.name)
        attributes: dict[str, Any] = {"name": name, "uri": asked.uri or f"${{LANCE_OPS_LAKE}}/{name}.lance"}
        if asked.landing is not None:
            attributes["raw"] = {"uri": asked.landing} | ({"glob": asked.glob} if asked.glob else {})
        ComponentAttributes.model_validate(attributes)
        schema = None if request.project_root is None else request.project_root / SCHEMA_FILE
        text = defs_yaml(attributes, schema=os.path.relpath(schema, folder) if schema and schema.exists() else None)
        if request.append:
            with request.target_path.open("a", encoding="utf-8") as file:
                file.write(f"---\n{text}")
        else:
            (request.target_path / "defs.yaml").write_text(text, encoding="utf-8")


def _name_of(folder: str) -> str:
    """Return a folder's name with only the characters that a dataset's name may have."""
    name = re.sub(r"[^a-z0-9]+", "_", folder.lower()).strip("_")
    return name if name[:1].isalpha() else f"dataset_{name}".rstrip("_")
