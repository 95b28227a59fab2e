"""Records of erasures, which keep versions that may hold erased rows from being restored.

    _lance_ops/erasures/{id}.json      what was erased and proven, without the erased values; see `maintenance.erasure`

An erasure writes its record before it changes anything. A record names the newest version of each branch when the
erasure began or ended, and the older versions that were proven to hold none of the rows. The record is in the root of
the main branch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lance_ops.core.errors import CorruptFile, InvalidInput, ObjectNotFound
from lance_ops.core.file_names import MAIN_BRANCH
from lance_ops.refs.branch_locations import branch_of, reference_store
from lance_ops.snapshot import Snapshot
from lance_ops.store import Store

__all__ = ["ERASURES_DIR", "check_restores_no_erased_rows", "erasure_before", "list_erasures"]

ERASURES_DIR = "_lance_ops/erasures"
_SUFFIX = ".json"


def list_erasures(store: Store) -> Iterator[Mapping[str, Any]]:
    """Yield every record in the root of a main branch; raise `CorruptFile` for one that cannot be read."""
    for info in store.list(ERASURES_DIR):
        if info.path.endswith(_SUFFIX):
            try:
                yield _decoded(store, info.path)
            except ObjectNotFound:
                continue


def check_restores_no_erased_rows(snapshot: Snapshot) -> None:
    """Raise `InvalidInput` if a record says that the snapshot's version may hold rows that were erased since."""
    record = erasure_before(reference_store(snapshot), branch_of(snapshot), snapshot.version)
    if record is not None:
        raise InvalidInput(
            f"{snapshot.uri}: version {snapshot.version} may hold rows that erasure {record['id']} removed "
            f"({record['reason']}): it cannot be restored"
        )


def erasure_before(store: Store, branch: str | None, version: int) -> Mapping[str, Any] | None:
    """Return the record of an erasure that removed a version of a branch, or that would have to; None if none did."""
    for record in list_erasures(store):
        erased = record["branches"].get(branch or MAIN_BRANCH)
        if erased and version < erased["version"] and version not in erased["clean_versions"]:
            return record
    return None


def _decoded(store: Store, path: str) -> Mapping[str, Any]:
    try:
        record: dict[str, Any] = json.loads(store.get(path).to_pybytes())
        for erased in record["branches"].values():
            int(erased["version"]), frozenset(map(int, erased["clean_versions"]))
        str(record["id"]), str(record["reason"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptFile(store.uri_of(path), "erasure record", f"not a record: {error!r}") from error
    return record
