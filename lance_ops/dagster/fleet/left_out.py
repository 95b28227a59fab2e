"""Say which tables beneath a fleet's root are left out, and why.

A dataset of the same code location that maintains its table does so by its own declaration. The fleet's policy may be
another one: it would remove versions that the dataset's declaration keeps. So the fleet leaves this table to the
dataset. A dataset whose jobs of maintenance are not in the code location maintains nothing there. The fleet also leaves
out the tables that its declaration excludes, for example those of another code location.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import dagster as dg
from dagster_shared.check import CheckError

from lance_ops.committers import files_uri
from lance_ops.core.errors import ConfigError
from lance_ops.dagster.declaration import DatasetNames, expand
from lance_ops.dagster.head import MAINTAINED_URI
from lance_ops.maintenance.fleet import ROOT_ITSELF, why_excluded
from lance_ops.store import path_beneath

__all__ = ["tables_of_datasets", "why_left_out"]


def why_left_out(context: dg.AssetExecutionContext, root: str, exclude: Sequence[str]) -> Callable[[str], str | None]:
    """Return a function that says of a table's path beneath the root why it is left out; None if it is not.

    `exclude` are the globs of the declaration.
    """
    excluded = why_excluded(exclude)
    try:
        datasets = tables_of_datasets(context.repository_def, root)
    except CheckError:  # Python code executes the job, and Dagster does not know its code location
        context.log.warning("this run has no code location: tables that its datasets maintain are not left out")
        datasets = {}

    def reason(table: str) -> str | None:
        dataset = datasets.get(table)
        return excluded(table) if dataset is None else f"dataset {dataset} maintains it by its own declaration"

    return reason


def tables_of_datasets(repository: dg.RepositoryDefinition, root: str) -> dict[str, str]:
    """Return the paths beneath `root` of the tables that datasets maintain, each with the name of its dataset.

    Two stores of one name at different endpoints count as the same one: leaving a table out is safe. Raises
    `ConfigError` if it cannot be told where the table of a dataset is.
    """
    found: dict[str, str] = {}
    for definition in set(repository.assets_defs_by_key.values()):
        for spec in definition.specs:
            uri = spec.metadata.get(MAINTAINED_URI)
            name = spec.key.to_user_string()
            if uri is not None and _has_jobs(repository, DatasetNames(name)):
                path = path_beneath(root, _files_of(name, str(uri)))
                if path is not None:
                    found[path or ROOT_ITSELF] = name
    return found


def _has_jobs(repository: dg.RepositoryDefinition, names: DatasetNames) -> bool:
    return any(repository.has_job(names.of(job)) for job in ("maintenance", "upkeep"))


def _files_of(dataset: str, uri: str) -> str:
    try:
        return files_uri(expand(uri, f"{dataset}: uri"))
    except ConfigError as error:
        raise ConfigError(
            f"the fleet cannot tell whether the table of dataset {dataset} lies beneath its root, where it would leave "
            f"it out: {error}"
        ) from error
