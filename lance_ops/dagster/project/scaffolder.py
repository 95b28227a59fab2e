"""Write a dataset's `defs.yaml` when `dg scaffold defs` asks for one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import BaseModel, Field

from lance_ops.core.errors import LanceOpsError
from lance_ops.dagster.declaration import COMPONENT_TYPE, RawFiles
from lance_ops.dagster.project.defs_yaml import name_of_folder, write_declaration
from lance_ops.dagster.project.landing_survey import survey_landing
from lance_ops.dagster.project.proposal import LANDING, Proposal
from lance_ops.maintenance.ingest import local_path

__all__ = ["DatasetParameters", "DatasetScaffolder"]

_ONE_PROCESS = (
    "A backfill from the UI shares one process among its steps only if the code location has "
    "executor=dg.in_process_executor, as the projects of `lance-ops init` have."
)


class DatasetParameters(BaseModel):
    """What `dg scaffold defs` may be told about a dataset; each has an option of its own."""

    name: str | None = Field(default=None, description="The dataset's name; default: that of the folder.")
    uri: str | None = Field(default=None, description="Where the table is; default: ${LANCE_OPS_LAKE}/<name>.lance.")
    landing: str | None = Field(default=None, description="The folder or URI of raw files; default: no ingestion.")
    glob: str | None = Field(default=None, description="Which files of the landing folder count.")


class DatasetScaffolder(dg.Scaffolder[DatasetParameters]):
    """Writes a declaration that loads as it stands."""

    @classmethod
    def get_scaffold_params(cls) -> type[DatasetParameters]:
        """Return the model of the options."""
        return DatasetParameters

    def scaffold(self, request: dg.ScaffoldRequest[DatasetParameters]) -> None:
        """Write `defs.yaml`; with `append`, add the declaration to the file as another document."""
        asked = request.params
        name = asked.name or name_of_folder(request, "dataset")
        attributes: dict[str, Any] = {"name": name, "uri": asked.uri or f"${{LANCE_OPS_LAKE}}/{name}.lance"}
        comments: list[str] = []
        if asked.landing is not None:
            landing = _absolute(asked.landing)
            seen = _seen(landing) if asked.glob is None else "The files were not looked at: `--glob` chooses them."
            attributes["raw"] = {"uri": landing} | ({"glob": asked.glob} if asked.glob else {})
            if isinstance(seen, str):
                comments.append(seen)
            else:
                attributes["raw"] = dict(seen.raw or {})
                attributes |= {"write": dict(seen.write)} if seen.write else {}
                comments += [*seen.comments, *seen.doubts]
            comments.append(_ONE_PROCESS)
        write_declaration(request, COMPONENT_TYPE, attributes, comments)


def _absolute(landing: str) -> str:
    """Return a local path as an absolute one: another process loads the declaration in another folder.

    A URI, and a path with a variable, stay as they are.
    """
    return landing if "$" in landing or "://" in landing else str(Path(landing).absolute())


def _seen(landing: str) -> Proposal | str:
    """Return what `lance-ops init` would declare for a local landing folder, or why nothing is declared."""
    try:
        location = RawFiles(uri=landing).location()
        if local_path(location.uri) is None:
            return "The files were not looked at: only those of a local folder are."
        found = survey_landing(location).proposals
    except LanceOpsError as error:
        return f"The files were not looked at: {' '.join(str(error).split())}"
    if not found:
        return "No files that are read were found in the landing folder."
    if len(found) > 1:
        return f"The files are of {len(found)} kinds: declare a dataset for each (lance-ops init)."
    raw = dict(found[0].raw or {})
    return replace(found[0], raw=raw | {"uri": raw["uri"].replace(f"${{{LANDING}}}", landing.rstrip("/"), 1)})
