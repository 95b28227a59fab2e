"""Look for Lance tables beneath a folder, and propose a declaration for each, whoever wrote it."""

from __future__ import annotations

from dataclasses import replace

from lance_ops.core.errors import ConfigError, CorruptFile, DatasetNotFound, LanceOpsError
from lance_ops.core.records import dataclass
from lance_ops.dagster.declaration import StoreLocation
from lance_ops.dagster.project.proposal import Proposal, columns_sentence, dataset_name, with_distinct_names
from lance_ops.indices import ALL_INDEX_TYPES
from lance_ops.maintenance.fleet import ROOT_ITSELF, find_tables
from lance_ops.maintenance.health import index_coverage
from lance_ops.maintenance.ingest import printable
from lance_ops.maintenance.repair import open_newest_readable
from lance_ops.snapshot import Snapshot

__all__ = ["TableSurvey", "survey_tables"]

_TYPES = {each.name for each in ALL_INDEX_TYPES}


@dataclass(frozen=True)
class TableSurvey:
    """The proposed datasets, and a sentence for each table that cannot be opened."""

    proposals: tuple[Proposal, ...]
    refused: tuple[str, ...] = ()


def survey_tables(location: StoreLocation) -> TableSurvey:
    """Propose a dataset for each table beneath a folder, in the order of the paths.

    A folder that does not exist gives no proposals. A table whose newest version is damaged gives one, too: Dagster's
    checks then name the damage until it is mended. Raises `ConfigError` if the folder is a table itself.
    """
    found, refused = [], []
    try:
        paths = find_tables(location.uri, location.storage_options)
    except DatasetNotFound:
        paths = ()
    for path in paths:
        if path == ROOT_ITSELF:
            raise ConfigError(f"{location.public_uri} is a table itself: give the folder above it")
        try:
            found.append(_survey(path, f"{location.uri}/{path}", location))
        except LanceOpsError as error:
            refused.append(f"{printable(path)}: not declared: {error}")
    return TableSurvey(with_distinct_names(found), tuple(refused))


def _survey(path: str, uri: str, location: StoreLocation) -> Proposal:
    try:
        return _proposal(path, Snapshot.open(uri, None, location.storage_options))
    except CorruptFile as error:
        doubt = printable(f"The newest version does not open: {error}. Run lance-ops verify, then lance-ops repair")
    try:
        seen = _proposal(path, open_newest_readable(uri, location.storage_options))
    except CorruptFile:
        seen = Proposal(dataset_name(path.removesuffix(".lance")), path)
    return replace(seen, doubts=(doubt,))


def _proposal(path: str, snapshot: Snapshot) -> Proposal:
    indices = tuple(
        {"column": index.fields[0], "type": index.type_name.upper(), "name": index.name}
        for index in index_coverage(snapshot)
        if index.type_name.upper() in _TYPES and len(index.fields) == 1
    )
    seen = (
        f"Seen: version {snapshot.version}, {snapshot.num_rows:,} rows, {len(snapshot.fragments):,} fragments",
        columns_sentence(snapshot.schema.to_arrow()),
    )
    name = dataset_name(path.removesuffix(".lance"))
    return Proposal(name, path, indices=indices, comments=tuple(map(printable, seen)))
