"""Read the names of the files that fragments name, without decoding the fragments.

Clean-up needs these names of every version. What it does not need is left as the bytes that it is, in particular the
fields and columns of each file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from lance_ops.pb.manifest_parts_pb2 import ManifestFileNames, ManifestParts
from lance_ops.store import check_paths
from lance_ops.table.fragments.deletion_file import deletion_file_name_in
from lance_ops.table.fragments.fragment import check_row_count
from lance_ops.table.fragments.row_metadata import ExternalFile
from lance_ops.wire import parse_message

__all__ = ["FragmentFiles", "files_named_in"]

_SEQUENCES: tuple[
    Literal["external_row_ids", "external_last_updated_at_versions", "external_created_at_versions"], ...
] = ("external_row_ids", "external_last_updated_at_versions", "external_created_at_versions")


class FragmentFiles(NamedTuple):
    """The files of fragments, each as the id of its base (None: the table's root) and its name.

    Data files are named as in `DataFile.path`, deletion files as in `_deletions`, sequences of rows by their path.
    """

    data: list[tuple[int | None, str]]
    deletions: list[tuple[int | None, str]]
    sequences: list[tuple[int | None, str]]


def files_named_in(messages: Iterable[bytes], path: str) -> FragmentFiles:
    """Return the files that encoded fragments name; `path` names their manifest in errors.

    Raises as `Fragment.from_pb` does.
    """
    section = ManifestParts(fragments=messages).SerializeToString()
    found = data, deletion_files, sequences = FragmentFiles([], [], [])
    for fragment in parse_message(ManifestFileNames, section, path, "fragments").fragments:
        check_row_count(fragment, path)
        for file in fragment.files:
            data.append((file.base_id if file.HasField("base_id") else None, file.path))
        if fragment.HasField("deletion_file"):
            deletions = fragment.deletion_file
            base_id = deletions.base_id if deletions.HasField("base_id") else None
            deletion_files.append((base_id, deletion_file_name_in(deletions, fragment.id, path)))
        for name in _SEQUENCES:
            if fragment.HasField(name):
                sequences.append((None, ExternalFile.from_pb(getattr(fragment, name)).path))
    check_paths(name for _, name in data)
    return found
