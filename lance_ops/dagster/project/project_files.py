"""The files of a new project, as texts: a Python package whose `defs/` declares datasets, and its settings."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from lance_ops import __version__
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import COMPONENT_TYPE, DatasetNames
from lance_ops.dagster.instances import instance_file
from lance_ops.dagster.project.component_schema import SCHEMA_FILE, defs_schema
from lance_ops.dagster.project.defs_yaml import defs_yaml
from lance_ops.dagster.project.proposal import LAKE, LANDING, Proposal

__all__ = ["NewProject", "project_files"]


@dataclass(frozen=True)
class NewProject:
    """What a project is made of. `home`, `lake` and `landing` are absolute paths, or URIs for the last two."""

    home: str
    lake: str
    landing: str | None
    proposals: Sequence[Proposal]

    @property
    def name(self) -> str:
        """The name of the distribution: that of the folder."""
        return re.sub(r"[^A-Za-z0-9]+", "-", self.home.rpartition("/")[2]).strip("-").lower() or "lake"

    @property
    def package(self) -> str:
        """The name of the Python package, which is not that of a package that is installed already."""
        name = self.name.replace("-", "_")
        name = f"lake_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
        installed = find_spec(name)
        is_other = installed is not None and not (installed.origin or "").startswith(f"{self.home}/")
        return f"{name}_lake" if is_other else name


def project_files(project: NewProject) -> dict[str, str]:
    """Return the text of each file under its path in the project."""
    package = project.package
    files = {
        "pyproject.toml": _pyproject(project),
        f"{package}/__init__.py": f'"""The Lance datasets of {project.name}."""\n',
        f"{package}/definitions.py": _DEFINITIONS,
        "dagster.yaml": instance_file("laptop"),
        "dagster_cloud.yaml": _CLOUD.format(package=package),
        ".env": "".join(_environment(project)),
        ".env.example": _ENVIRONMENT_EXAMPLE,
        ".gitignore": _IGNORED,
        SCHEMA_FILE: json.dumps(defs_schema(), indent=2) + "\n",
        "README.md": _readme(project),
    }
    for proposal in project.proposals:
        # No folder lies in another one, because Dagster looks for nothing beneath a folder that has a defs.yaml.
        folder = f"{package}/defs/{DatasetNames(proposal.name).identifier}"
        files[f"{folder}/defs.yaml"] = defs_yaml(
            COMPONENT_TYPE, proposal.attributes, [*proposal.comments, *proposal.doubts], f"../../../{SCHEMA_FILE}"
        )
    if not project.proposals:
        # Dagster refuses a folder of definitions without any file that it reads.
        files[f"{package}/defs/__init__.py"] = '"""What Dagster loads: a folder for each dataset."""\n'
    return files


_DEFINITIONS = '''\
"""The Dagster code location: everything that `defs/` declares."""

from pathlib import Path

import dagster as dg


@dg.definitions
def definitions() -> dg.Definitions:
    """Load `defs/`. Merge definitions of your own with what it returns.

    The steps of a run share its process, as in the jobs of each dataset: so does a backfill from the UI.
    """
    declared = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(declared, dg.Definitions(executor=dg.in_process_executor))
'''

_CLOUD = """\
# The code location for Dagster+. The variables of .env.example are the deployment's.
locations:
  - location_name: {package}
    code_source:
      module_name: {package}.definitions
    build:
      directory: .
    working_directory: .
"""

_ENVIRONMENT_EXAMPLE = f"""\
# Copy this file to .env, which Dagster's commands read in this folder.
# Where Dagster keeps its settings (dagster.yaml) and its history: the absolute path of this folder.
DAGSTER_HOME=
# Where the tables are: a folder, or a URL such as s3://bucket/lake.
{LAKE}=
# Where raw files land.
{LANDING}=
"""

_IGNORED = """\
.env
.tmp_dagster_home_*
__pycache__/
*.egg-info/
# What Dagster keeps in DAGSTER_HOME.
/.logs_queue/
/.nux/
/.telemetry/
/history/
/logs/
/schedules/
/storage/
# Tables, if they are beneath this folder.
/lake/
"""


def _pyproject(project: NewProject) -> str:
    package = project.package
    return f'''\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{project.name}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["lance-ops[all]>={__version__}"]

[tool.hatch.build.targets.wheel]
packages = ["{package}"]

[tool.dagster]
module_name = "{package}.definitions"
code_location_name = "{package}"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "{package}"
code_location_name = "{package}"
code_location_target_module = "{package}.definitions"
'''


def _environment(project: NewProject) -> Iterator[str]:
    values = {"DAGSTER_HOME": project.home, LAKE: project.lake, LANDING: project.landing}
    for name, value in values.items():
        if value is not None:
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            yield f"{name}='{escaped}'\n"


def _readme(project: NewProject) -> str:
    first = project.proposals[0].name if project.proposals else "dataset"
    job = DatasetNames(first).of("maintenance")
    rows = "".join(
        f"| `{each.name}` | `{each.table}` | {'`' + each.raw['uri'] + '`' if each.raw else 'none'} |\n"
        for each in project.proposals
    )
    listed = f"| dataset | table in `{LAKE}` | raw files |\n|---|---|---|\n{rows}" if rows else "There is none yet.\n"
    return f"""\
# {project.name}

Lance datasets, ingested and maintained by Dagster with [lance-ops](https://pypi.org/project/lance-ops/).

    dg check defs
    dg dev
    dg launch --job {job}

The first command loads everything. The second starts Dagster on http://127.0.0.1:3000: its sensors ingest what
lands, and maintenance runs at night. The third maintains a dataset now. All of them read `.env` in this folder.

## Datasets

{listed}
Each is declared in `{project.package}/defs/<dataset>/defs.yaml`. Editors with a YAML language server explain and
check its keys by `{SCHEMA_FILE}`. Another dataset, the upkeep at night of every table of the lake that no dataset
above maintains, and an IO manager that stores what your own assets return beneath `{LAKE}`:

    dg scaffold defs lance_ops.dagster.LanceDatasetComponent <dataset> --landing <folder>
    dg scaffold defs lance_ops.dagster.LanceFleetComponent lake --max-megabytes 50000
    dg scaffold defs lance_ops.dagster.LanceResourcesComponent resources

## Deploying

`dagster_cloud.yaml` is for Dagster+. Elsewhere, set the variables of `.env.example` in the deployment.
`dagster.yaml` holds the settings of an instance on one machine.
"""
