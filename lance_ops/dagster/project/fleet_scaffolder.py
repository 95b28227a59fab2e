"""Write a fleet's `defs.yaml` when `dg scaffold defs` asks for one."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import BaseModel, Field

from lance_ops.dagster.fleet import FLEET_COMPONENT_TYPE
from lance_ops.dagster.project.defs_yaml import name_of_folder, write_declaration
from lance_ops.dagster.project.proposal import LAKE

__all__ = ["FleetParameters", "FleetScaffolder"]

_LEFT_OUT = (
    "Tables that datasets of this project maintain are left out: their own policies hold. A dataset with",
    "maintenance: {cron: null} leaves its table to the fleet. To leave out tables of other projects: exclude: [raw/*]",
    "The fleet does not verify the files of a table that is left out: declare verification in its dataset, too.",
)
_NO_BUDGET = "Nothing bounds what a night may rewrite. To bound it: budget: {max_megabytes: 50000, max_minutes: 240}"


class FleetParameters(BaseModel):
    """What `dg scaffold defs` may be told about a fleet; each has an option of its own."""

    name: str | None = Field(default=None, description="The fleet's name; default: that of the folder.")
    root: str = Field(
        default=f"${{{LAKE}}}", description="The folder or prefix whose Lance tables are maintained, whoever made them."
    )
    max_megabytes: int | None = Field(default=None, description="What a night may rewrite, in MiB; default: no bound.")


class FleetScaffolder(dg.Scaffolder[FleetParameters]):
    """Writes a declaration that loads as it stands."""

    @classmethod
    def get_scaffold_params(cls) -> type[FleetParameters]:
        """Return the model of the options."""
        return FleetParameters

    def scaffold(self, request: dg.ScaffoldRequest[FleetParameters]) -> None:
        """Write `defs.yaml`; with `append`, add the declaration to the file as another document."""
        asked = request.params
        attributes: dict[str, Any] = {"name": asked.name or name_of_folder(request, "fleet"), "root": asked.root}
        if asked.max_megabytes is not None:
            attributes["budget"] = {"max_megabytes": asked.max_megabytes}
        comments = [*_LEFT_OUT, *([_NO_BUDGET] if asked.max_megabytes is None else [])]
        write_declaration(request, FLEET_COMPONENT_TYPE, attributes, comments)
