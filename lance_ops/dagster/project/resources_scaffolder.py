"""Write a `defs.yaml` of resources when `dg scaffold defs` asks for one."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import BaseModel, Field

from lance_ops.dagster.io import RESOURCES_COMPONENT_TYPE
from lance_ops.dagster.project.defs_yaml import write_declaration
from lance_ops.dagster.project.proposal import LAKE

__all__ = ["ResourcesParameters", "ResourcesScaffolder"]

_DATASETS = (
    "An asset opens a dataset by name if it is declared, such as "
    f'datasets: {{trips: {{uri: "${{{LAKE}}}/trips.lance", tag: released}}}}'
)


class ResourcesParameters(BaseModel):
    """What `dg scaffold defs` may be told about resources; each has an option of its own."""

    base_uri: str = Field(
        default=f"${{{LAKE}}}", description="The folder or prefix beneath which the IO manager stores outputs."
    )
    key: str | None = Field(default=None, description="The IO manager's key; default: io_manager.")


class ResourcesScaffolder(dg.Scaffolder[ResourcesParameters]):
    """Writes a declaration of an IO manager that loads as it stands."""

    @classmethod
    def get_scaffold_params(cls) -> type[ResourcesParameters]:
        """Return the model of the options."""
        return ResourcesParameters

    def scaffold(self, request: dg.ScaffoldRequest[ResourcesParameters]) -> None:
        """Write `defs.yaml`; with `append`, add the declaration to the file as another document."""
        asked = request.params
        manager: dict[str, Any] = {"key": asked.key} if asked.key is not None else {}
        manager["base_uri"] = asked.base_uri
        write_declaration(request, RESOURCES_COMPONENT_TYPE, {"io_manager": manager}, [_DATASETS])
