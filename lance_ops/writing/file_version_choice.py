"""Choose the file version in which a verb writes new files of a table."""

from __future__ import annotations

from lance_ops.core.errors import InvalidInput
from lance_ops.core.versions import FileVersion
from lance_ops.snapshot import Snapshot

__all__ = ["choose_file_version"]


def choose_file_version(snapshot: Snapshot, asked: str | None) -> FileVersion:
    """Return the file version to write: the table's unless `asked` names another.

    Raises `InvalidInput` if one of the two is 0.1 and the other is not: no table mixes these.
    """
    table = snapshot.file_version
    version = table if asked is None else FileVersion.parse(asked)
    if version is not table and FileVersion.V0_1 in (version, table):
        raise InvalidInput(
            f"{snapshot.uri} has files of version {table.value}, which cannot be mixed with {version.value}"
        )
    return version
