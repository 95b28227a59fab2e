"""Decode the details of the fragment-reuse index, which maps the rows of compactions whose index remap was deferred.

There is one address map for each compaction, the oldest first. A group names its old fragments and the addresses of
their surviving rows. The new fragments hold these rows in ascending order of address, from their first row on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyroaring import BitMap

from lance_ops.core.errors import CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.pb import table_pb2
from lance_ops.table.fragments import ExternalFile
from lance_ops.table.rows import NewFragment, OldFragment, RewrittenGroup, RowAddressMap, decode_treemap, offsets_in
from lance_ops.wire import parse_message

__all__ = ["decode_reuse_content", "decode_reuse_details"]

_PLACE = "fragment-reuse index"
Details = table_pb2.FragmentReuseIndexDetails


def decode_reuse_details(data: bytes, path: str) -> tuple[RowAddressMap, ...] | ExternalFile:
    """Decode an index's details: the maps, or the file in the index's directory for `decode_reuse_content`.

    `path` names the manifest in errors. Raises `CorruptFile`, and `UnsupportedFeature` for transitions.
    """
    details = parse_message(Details, data, path, _PLACE)
    if details.WhichOneof("content") == "external":
        return ExternalFile.from_pb(details.external)
    return _maps(details.inline, path)


def decode_reuse_content(data: bytes, path: str) -> tuple[RowAddressMap, ...]:
    """Decode the maps from a file of details; raises as `decode_reuse_details` does."""
    return _maps(parse_message(Details.InlineContent, data, path, _PLACE), path)


def _maps(content: Details.InlineContent, path: str) -> tuple[RowAddressMap, ...]:
    if content.transitions:
        raise UnsupportedFeature("a fragment-reuse index of transitions", path)
    versions = sorted(content.legacy_versions, key=lambda version: version.dataset_version)
    return tuple(RowAddressMap(tuple(_group(group, path) for group in version.groups)) for version in versions)


def _group(group: Details.Group, path: str) -> RewrittenGroup:
    survivors = decode_treemap(group.changed_row_addrs, path, _PLACE)
    ascending = sorted(group.old_fragments, key=lambda fragment: fragment.id)
    try:
        return RewrittenGroup(
            tuple(_old(digest, survivors.get(digest.id, BitMap())) for digest in ascending),
            tuple(NewFragment(digest.id, digest.physical_rows) for digest in _written(group.new_fragments)),
        )
    except InvalidInput as error:
        raise CorruptFile(path, _PLACE, str(error)) from error


def _old(digest: Details.FragmentDigest, survivors: BitMap) -> OldFragment:
    if survivors and survivors.max() >= digest.physical_rows:
        raise InvalidInput(f"row {survivors.max()} of fragment {digest.id} survived, of {digest.physical_rows}")
    gone = np.delete(np.arange(digest.physical_rows, dtype=np.uint32), offsets_in(survivors))
    return OldFragment(digest.id, digest.physical_rows, gone)


def _written(digests: Sequence[Details.FragmentDigest]) -> Sequence[Details.FragmentDigest]:
    return [digest for digest in digests if digest.physical_rows]
