"""Write a new project: survey the raw files and the tables, make the texts of its files, and write what is missing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import dagster as dg

from lance_ops.core.errors import ConfigError
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import ComponentAttributes, StoreLocation
from lance_ops.dagster.project.landing_survey import survey_landing
from lance_ops.dagster.project.project_files import NewProject, project_files
from lance_ops.dagster.project.proposal import Proposal, with_distinct_names
from lance_ops.dagster.project.table_survey import survey_tables

__all__ = ["StartedProject", "start_project"]


@dataclass(frozen=True)
class StartedProject:
    """What was written, and what was not. Paths are within the project."""

    home: str
    package: str
    datasets: tuple[str, ...]
    written: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that were there already."""
    notes: tuple[str, ...]
    """What the surveys found and did not declare, and what somebody must decide."""


def start_project(
    folder: Path,
    *,
    landing: str | None = None,
    tables: str | None = None,
    add: bool = False,
    landing_options: Mapping[str, str] | None = None,
    table_options: Mapping[str, str] | None = None,
) -> StartedProject:
    """Write a project into `folder`: a dataset for each kind of landed file, and for each table beneath `tables`.

    A kind of file that has the name of a table ingests into that table. Without `tables`, tables will be in `lake/` of
    the project. Raises `ConfigError` if the folder has files, unless `add` allows to write beside them; a file that
    exists is kept in any case. The options are those of the stores, for the surveys; the project does not hold them.
    """
    home = Path(os.path.abspath(folder))
    if home.exists() and not home.is_dir():
        raise ConfigError(f"{home} is a file; give the name of a new folder")
    if home.exists() and any(home.iterdir()) and not add:
        raise ConfigError(
            f"{home} is not empty; give the name of a new folder, or --add to write what is missing in it"
        )
    notes: list[str] = []
    lake = _absolute(tables) if tables is not None else str(home / "lake")
    proposals: dict[str, Proposal] = {}
    if tables is not None:
        of_tables = survey_tables(StoreLocation(lake, table_options or {}))
        proposals |= {each.name: each for each in of_tables.proposals}
        notes += of_tables.refused
    if landing is not None:
        of_files = survey_landing(StoreLocation(_absolute(landing), landing_options or {}))
        for each in of_files.proposals:
            proposals[each.name] = _ingesting(proposals.get(each.name), each)
        notes += of_files.ignored
    found = with_distinct_names(proposals[name] for name in sorted(proposals))
    notes += [f"{each.name}: {doubt}" for each in found for doubt in each.doubts]
    for each in found:
        ComponentAttributes.model_validate(each.attributes)
    project = NewProject(str(home), lake, None if landing is None else _absolute(landing), found)
    written, kept = _write(home, project_files(project))
    if "dagster.yaml" in written:
        _initialise(home)
    return StartedProject(
        str(home), project.package, tuple(each.name for each in found), tuple(written), tuple(kept), tuple(notes)
    )


def _ingesting(table: Proposal | None, files: Proposal) -> Proposal:
    """Return the declaration of a table that raw files go into."""
    if table is None:
        return files
    return replace(
        table,
        raw=files.raw,
        write=files.write,
        comments=(*table.comments, *files.comments),
        doubts=(*table.doubts, *files.doubts),
    )


def _absolute(place: str) -> str:
    return place.rstrip("/") if "://" in place else os.path.abspath(os.path.expanduser(place))


def _write(home: Path, files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Write the files that are missing; return those and the others."""
    written, kept = [], []
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            kept.append(name)
        else:
            written.append(name)
    return written, kept


def _initialise(home: Path) -> None:
    """Create the instance's SQLite files, because two processes that create them at once damage them."""
    with dg.DagsterInstance.from_config(str(home)) as instance:
        instance.get_run_records(limit=1)
