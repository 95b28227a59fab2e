"""Tables of newer writers: protobuf fields that this release does not know survive every verb."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lance_ops
from lance_ops import LanceDataset
from lance_ops.errors import UnsupportedFeature
from lance_ops.table import decode_manifest, encode_manifest
from lance_ops.transactions import read_version
from tests.table.marked import marked, marks

OURS = {"manifest.writer_version"}
"""The part of the manifest that names the writer of each version."""


@pytest.fixture
def dataset(dataset_uri: str) -> LanceDataset:
    """Return a table of three fragments, deletions, an index and a base path; every message has an unknown field."""
    table = pa.table({"id": range(30), "s": pa.array([{"x": str(i)} for i in range(30)])})
    made = lance_ops.write_dataset(table, dataset_uri, max_rows_per_file=10)
    made.add_bases([lance_ops.DatasetBasePath("/elsewhere")])
    made.create_scalar_index("id", "BTREE")
    made.delete("id = 3")
    path = manifest_of(made)
    path.write_bytes(marked(path.read_bytes()))
    opened = lance_ops.dataset(dataset_uri)
    assert "manifest.fragments[0].deletion_file" in marks(path.read_bytes())
    return opened


def manifest_of(dataset: LanceDataset) -> Path:
    return Path(dataset.uri, dataset.snapshot.committer.location(dataset.version))


VERBS: dict[str, tuple[Callable[[LanceDataset], object], tuple[str, ...]]] = {
    "append": (lambda dataset: dataset.insert(pa.table({"id": [99]})), ()),
    "delete elsewhere": (lambda dataset: dataset.delete("id = 25"), ()),
    "delete again": (lambda dataset: dataset.delete("id = 5"), ("manifest.fragments[0].deletion_file",)),
    "delete a fragment": (lambda dataset: dataset.delete("id >= 20"), ("manifest.fragments[2]",)),
    "add a column": (lambda dataset: dataset.add_columns({"z": "id"}), ()),
    "rename a column": (lambda dataset: dataset.alter_columns({"path": "s", "name": "t"}), ()),
    "config": (lambda dataset: dataset.update_config({"a": "b"}), ()),
    "table metadata": (lambda dataset: dataset.update_metadata({"a": "b"}), ()),
    "schema metadata": (lambda dataset: dataset.update_schema_metadata({"a": "b"}), ()),
    "field metadata": (lambda dataset: dataset.update_field_metadata({"s.x": {"a": "b"}}), ()),
    "another base": (lambda dataset: dataset.add_bases([lance_ops.DatasetBasePath("/more")]), ()),
    "restore": (lambda dataset: dataset.restore(), ()),
    "index": (lambda dataset: dataset.create_scalar_index("id", "BTREE", "more"), ()),
    "compact": (
        lambda dataset: dataset.optimize.compact_files(),
        ("manifest.fragments", "indices.indices[0].files"),
    ),
    "overwrite": (
        lambda dataset: dataset.insert(pa.table({"id": [1]}), mode="overwrite"),
        ("manifest.fragments", "manifest.fields", "manifest.data_format", "indices"),
    ),
}
"""Verbs, and the messages that each replaces."""


@pytest.mark.parametrize("verb", VERBS)
def test_unknown_protobuf_fields_survive_every_verb(dataset: LanceDataset, verb: str) -> None:
    do, replaced = VERBS[verb]
    before = marks(manifest_of(dataset).read_bytes()) - OURS
    version = dataset.version
    do(dataset)
    assert dataset.version > version
    after = marks(manifest_of(dataset).read_bytes())
    assert {place for place in before - after if not place.startswith(replaced)} == set()


def test_unknown_protobuf_fields_survive_clones_and_branches(dataset: LanceDataset) -> None:
    before = marks(manifest_of(dataset).read_bytes()) - OURS
    branch = dataset.create_branch("dev")
    shallow = dataset.shallow_clone(f"{dataset.uri}-shallow", dataset.version)
    for copy in (branch, shallow):
        after = marks(manifest_of(copy).read_bytes())
        moved = {place for place in before if "base_paths" in place}
        assert before - moved <= after and "manifest.base_paths[1]" in after


@pytest.mark.parametrize("bit", [6, 11, 12, 40, 63])
def test_an_unknown_feature_flag_refuses_readers_or_writers(dataset: LanceDataset, bit: int) -> None:
    path = manifest_of(dataset)
    store, committer = dataset.snapshot.store, dataset.snapshot.committer
    landed = read_version(store, committer, dataset.version)
    assert landed.transaction is not None

    def with_flags(reader: int, writer: int) -> None:
        manifest = decode_manifest(encode_manifest(landed.manifest, b""), "m")
        for name, flags in (("reader_feature_flags", reader), ("writer_feature_flags", writer)):
            object.__setattr__(manifest, name, getattr(manifest, name) | flags)
        path.write_bytes(encode_manifest(manifest, landed.transaction.encode() if landed.transaction else b""))

    with_flags(0, 1 << bit)
    readable = lance_ops.dataset(dataset.uri)
    assert readable.count_rows() == 29
    for write in (
        lambda: readable.insert(pa.table({"id": [1]})),
        lambda: readable.delete("id = 1"),
        lambda: readable.update_config({"a": "b"}),
        readable.restore,
        lambda: readable.optimize.compact_files(num_threads=1),
        lambda: readable.create_scalar_index("id", "BTREE", "more"),
        lambda: readable.insert(pa.table({"id": [1]}), mode="overwrite"),
        lambda: readable.create_branch("dev"),
        lambda: readable.shallow_clone(f"{dataset.uri}-copy", dataset.version),
        lambda: readable.deep_clone(f"{dataset.uri}-copy", dataset.version),
    ):
        with pytest.raises(UnsupportedFeature, match="writing a table with feature flags"):
            write()
    assert readable.latest_version == dataset.version

    with_flags(1 << bit, 1 << bit)
    with pytest.raises(UnsupportedFeature, match="reading a table with feature flags"):
        lance_ops.dataset(dataset.uri)
