"""List the versions in the directory `_versions`, and rename their manifests.

A dataset names all its manifests by one scheme. With two schemes there could be two different files for one version, so
a mixture is refused. Detached manifests (`d…`), staged ones, the hint and temporary files are not versions.

`version_hint` says when no listing is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from lance_ops.core.errors import CorruptFile
from lance_ops.core.file_names import (
    VERSIONS_DIR,
    ManifestNaming,
    manifest_name,
    parse_detached_name,
    parse_manifest_name,
)
from lance_ops.core.records import dataclass
from lance_ops.store import Store

__all__ = [
    "VersionNames",
    "delete_manifests",
    "detached_among",
    "list_detached",
    "list_newest",
    "list_versions",
    "manifest_path",
    "migrate_to_v2",
]

# Long listings cost more, so few names are requested first. Only V1 directories with more names cost a second request.
_FIRST_NAMES = 16
_V2_LENGTH = len(manifest_name(1, ManifestNaming.V2))


@dataclass(frozen=True, slots=True)
class VersionNames:
    """The listed versions, ascending, and their naming scheme, None if there are no versions.

    `tags` are the tags of their manifests as far as the store states them; see `Store.list_tags`.
    """

    versions: tuple[int, ...]
    naming: ManifestNaming | None
    tags: Mapping[int, str] = field(default_factory=dict)


def list_versions(store: Store) -> VersionNames:
    """Return every version. Raises `CorruptFile` on a mixture of naming schemes."""
    return _parse(store, store.list_tags(VERSIONS_DIR))


def list_detached(store: Store) -> list[int]:
    """Return every detached version, ascending."""
    return detached_among(store.list_names(VERSIONS_DIR))


def detached_among(names: Iterable[str]) -> list[int]:
    """Return the detached versions among names in `_versions`, ascending."""
    return sorted(version for version in map(parse_detached_name, names) if version)


def list_newest(store: Store) -> VersionNames:
    """Return some of the versions; the newest is always among them.

    V2 names descend, so the first name in order is the newest version. The first page of an ordered listing has it, and
    in an unordered listing it is the least name, the only one to parse.
    """
    if store.lists_in_order:
        first = store.list_tags(VERSIONS_DIR, limit=_FIRST_NAMES)
        seen = _parse(store, first)
        if seen.naming is ManifestNaming.V2 or len(first) < _FIRST_NAMES:
            return seen
    names = store.list_names(VERSIONS_DIR)
    newest = min(names, default="")
    if not _is_v2(newest):
        newest = min((name for name in names if _is_v2(name)), default="")
    return _parse(store, dict.fromkeys([newest, *(name for name in names if len(name) != _V2_LENGTH)]))


def delete_manifests(store: Store, versions: Mapping[str, int]) -> set[int]:
    """Delete manifests, given the version of each path; return the versions whose manifests the store failed to delete.

    One request deletes as many as the store takes.
    """
    paths, size = [*versions], store.deleted_at_once
    failed = set().union(*(store.delete_several(paths[at : at + size]) for at in range(0, len(paths), size)))
    return {versions[path] for path in failed}


def migrate_to_v2(store: Store) -> None:
    """Rename every manifest to its V2 name. A second call finishes an interrupted one.

    No other process may use the dataset meanwhile: until the end both schemes are present, and readers refuse that.
    """
    parsed = (parse_manifest_name(name) for name in store.list_names(VERSIONS_DIR))
    old = sorted(version for version, naming in filter(None, parsed) if naming is ManifestNaming.V1)
    for version in old:
        store.put(manifest_path(version, ManifestNaming.V2), store.get(manifest_path(version, ManifestNaming.V1)))
    for version in old:
        store.delete(manifest_path(version, ManifestNaming.V1))


def manifest_path(version: int, naming: ManifestNaming) -> str:
    """Return the path of a version's manifest."""
    return f"{VERSIONS_DIR}/{manifest_name(version, naming)}"


def _is_v2(name: str) -> bool:
    return len(name) == _V2_LENGTH and parse_manifest_name(name) is not None


def _parse(store: Store, names: Mapping[str, str | None]) -> VersionNames:
    found = ((parse_manifest_name(name), tag) for name, tag in names.items())
    tagged = [(*version, tag) for version, tag in found if version is not None]
    parsed = [(version, naming) for version, naming, _ in tagged]
    schemes = {naming for _, naming in parsed}
    if len(schemes) > 1:
        raise CorruptFile(
            store.uri_of(VERSIONS_DIR),
            "manifest names",
            "both naming schemes are in use; `migrate_manifest_paths_v2` was interrupted or ran beside a writer",
        )
    tags = {version: tag for version, _, tag in tagged if tag is not None}
    return VersionNames(tuple(sorted(version for version, _ in parsed)), next(iter(schemes), None), tags)
