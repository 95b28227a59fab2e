"""A dataset with every kind of part, and damages to plant in a copy of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

import lance_ops
from lance_ops.core.addresses import row_addr
from lance_ops.core.schema import Schema
from lance_ops.file import FileReader, FileWriter
from lance_ops.maintenance.verification import DamageKind
from lance_ops.snapshot import Snapshot
from lance_ops.store import LocalStore
from lance_ops.table import Fragment, IndexMetadata, Manifest, encode_deletion_vector, encode_manifest
from lance_ops.table import decode_with_transaction as decode
from lance_ops.table.rows import RowIds, RowVersions, encode_row_ids, encode_versions
from tests.checksums import blob_bytes

__all__ = [
    "ALL_DAMAGES",
    "ROWS_PER_FRAGMENT",
    "Damage",
    "data_path",
    "deletion_path",
    "edit_manifest",
    "make_dataset",
    "newest_manifest",
    "set_row_ids",
]

ROWS_PER_FRAGMENT = 600
_DELETED_IN = 1
"""The fragment with a deletion file."""

_BLOBS = {"lance-encoding:blob": "true"}


def make_dataset(root: Path, *, stable_row_ids: bool = True, blobs: bool = True) -> lance_ops.LanceDataset:
    """Write three fragments with a deletion file, a B-tree index, blobs in sidecars, a tag and a branch."""
    ids = np.arange(3 * ROWS_PER_FRAGMENT)
    columns: dict[str, Any] = {"x": ids, "text": [f"text {i % 97}" if i % 5 else None for i in ids]}
    fields = [pa.field("x", pa.int64()), pa.field("text", pa.string())]
    if blobs:
        columns["blob"] = [bytes([i % 256]) * 70_000 if i % 150 == 0 else b"" for i in ids]
        fields.append(pa.field("blob", pa.large_binary(), metadata=_BLOBS))
    uri = str(root)
    lance_ops.write_dataset(
        pa.table(columns, schema=pa.schema(fields)),
        uri,
        max_rows_per_file=ROWS_PER_FRAGMENT,
        enable_stable_row_ids=stable_row_ids,
    )
    made = lance_ops.dataset(uri)
    made.create_scalar_index("x", "BTREE")
    made.tags.create("indexed")
    made.create_branch("trial", 1)
    made.delete(f"x >= {ROWS_PER_FRAGMENT + 100} AND x < {ROWS_PER_FRAGMENT + 110}")
    return made


@dataclass(frozen=True)
class Damage:
    """A damage to plant beneath a dataset's root, and the finding that must name it."""

    name: str
    plant: Callable[[Path], object]
    kind: DamageKind
    fragment_ids: tuple[int, ...] = ()
    index_names: tuple[str, ...] = ()
    quick: bool = True
    """Whether a quick verification must find it; others are found only if their block is read."""
    all_versions: bool = False
    """Whether only a verification of all versions finds it."""
    mended_by: str = ""
    """What a repair needs to mend it: "copy" or "itself"; empty for a damage that it refuses."""


# -- what plants them ----------------------------------------------------------------------------------------------


def newest_manifest(root: Path) -> Path:
    """Return the path of the newest version's manifest; names count down."""
    return min((root / "_versions").glob("*.manifest"))


def edit_manifest(root: Path, change: Callable[[Manifest], Manifest]) -> None:
    """Replace the newest manifest by a changed one, which nobody would have committed."""
    path = newest_manifest(root)
    manifest, transaction = decode(path.read_bytes(), str(path))
    path.write_bytes(encode_manifest(change(manifest), transaction or b""))


def edit_fragment(root: Path, fragment_id: int, change: Callable[[Fragment], Fragment]) -> None:
    """Change one fragment of the newest manifest."""

    def changed(manifest: Manifest) -> Manifest:
        fragments = {fragment_id: change(lookup(manifest)[fragment_id])}
        return replace(manifest, fragments=manifest.fragments.with_changes(fragments))

    edit_manifest(root, changed)


def lookup(manifest: Manifest) -> dict[int, Fragment]:
    return {fragment.id: fragment for fragment in manifest.fragments}


def fragment_of(root: Path, fragment_id: int) -> Fragment:
    return Snapshot.open(str(root)).fragments_by_id[fragment_id]


def data_path(root: Path, fragment_id: int) -> Path:
    return root / "data" / fragment_of(root, fragment_id).files[0].path


def deletion_path(root: Path) -> Path:
    path = fragment_of(root, _DELETED_IN).deletion_path
    assert path is not None
    return root / path


def overwrite(path: Path, at: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + len(data)] = data
    path.write_bytes(content)


def flip_bit(path: Path, at: int) -> None:
    overwrite(path, at, bytes([path.read_bytes()[at] ^ 1]))


def cut(path: Path, size_bytes: int = -1) -> None:
    path.write_bytes(path.read_bytes()[:size_bytes])


def record_size(root: Path, fragment_id: int) -> None:
    """Record the present size of a fragment's file, so that only its content is wrong."""
    size = data_path(root, fragment_id).stat().st_size

    def sized(fragment: Fragment) -> Fragment:
        return replace(fragment, files=(replace(fragment.files[0], file_size_bytes=size), *fragment.files[1:]))

    edit_fragment(root, fragment_id, sized)


def rewrite_data_file(
    root: Path, fragment_id: int, change: Callable[[pa.Table, Schema], tuple[pa.Table, Schema]]
) -> None:
    path = data_path(root, fragment_id)
    store = LocalStore(str(path.parent))
    reader = FileReader(store, path.name)
    table, schema = change(reader.read(), reader.schema)
    path.unlink()
    with FileWriter(store, path.name, schema, reader.version) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    record_size(root, fragment_id)


def index_of(root: Path) -> IndexMetadata:
    return Snapshot.open(str(root)).manifest.indices[0]


def rewrite_entries(root: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write page_data anew with other entries; its size in the manifest is made right."""
    folder = root / index_of(root).directory
    store = LocalStore(str(folder))
    reader = FileReader(store, "page_data.lance")
    table = change(reader.read())
    (folder / "page_data.lance").unlink()
    with FileWriter(store, "page_data.lance", reader.schema, reader.version) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    size = (folder / "page_data.lance").stat().st_size

    def sized(manifest: Manifest) -> Manifest:
        [index] = manifest.indices
        files = tuple(replace(f, size_bytes=size) if f.path == "page_data.lance" else f for f in index.files)
        return replace(manifest, indices=(replace(index, files=files),))

    edit_manifest(root, sized)


def with_column(table: pa.Table, name: str, position: int, value: int) -> pa.Table:
    values = table.column(name).to_pylist()
    values[position] = value
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(name), pa.array(values, table.schema.field(name).type))


def set_deletions(root: Path, offsets: list[int], num_deleted_rows: int | None = None) -> None:
    file, data = encode_deletion_vector(BitMap(offsets), 3, 77)
    if num_deleted_rows is not None:
        file = replace(file, num_deleted_rows=num_deleted_rows)
    edit_fragment(root, _DELETED_IN, lambda fragment: replace(fragment, deletion_file=file))
    deletion_path(root).write_bytes(data)


def set_row_ids(root: Path, fragment_id: int, row_ids: list[int]) -> None:
    encoded = encode_row_ids(RowIds.of(np.array(row_ids, np.uint64)))
    edit_fragment(root, fragment_id, lambda fragment: fragment.with_sequences(row_ids=encoded))


def set_versions(root: Path, fragment_id: int, version: int, num_rows: int = ROWS_PER_FRAGMENT) -> None:
    encoded = encode_versions(RowVersions.uniform(version, num_rows))
    edit_fragment(root, fragment_id, lambda fragment: fragment.with_sequences(created_at_versions=encoded))


def set_columns(root: Path, fragment_id: int, columns: tuple[int, ...]) -> None:
    def changed(fragment: Fragment) -> Fragment:
        return replace(fragment, files=(replace(fragment.files[0], column_indices=columns),))

    edit_fragment(root, fragment_id, changed)


def swap_entries(table: pa.Table) -> pa.Table:
    order = list(range(table.num_rows))
    order[10], order[500] = order[500], order[10]
    return table.take(order)


def sidecars(root: Path) -> list[Path]:
    return sorted((root / "data").glob(f"{data_path(root, 0).stem}/*.blob"))


def set_reference(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def oldest_manifest(root: Path) -> Path:
    return max((root / "_versions").glob("*.manifest"))


def transaction_path(root: Path) -> Path:
    return root / "_transactions" / Snapshot.open(str(root)).manifest.transaction_file


_X = ("x_idx",)
_LAST = row_addr(2, ROWS_PER_FRAGMENT - 1)


def damaged_entries(name: str, change: Callable[[pa.Table], pa.Table], kind: DamageKind) -> Damage:
    """Return the damage of an index whose entries were changed; only reading them finds it."""
    return Damage(name, lambda r: rewrite_entries(r, change), kind, (), _X, quick=False, mended_by="itself")


ALL_DAMAGES: tuple[Damage, ...] = (
    Damage("data file missing", lambda r: data_path(r, 0).unlink(), DamageKind.MISSING_FILE, (0,), mended_by="copy"),
    Damage("data file cut short", lambda r: cut(data_path(r, 2)), DamageKind.FILE_SIZE, (2,), mended_by="copy"),
    Damage(
        "data file without its footer",
        lambda r: overwrite(data_path(r, 1), data_path(r, 1).stat().st_size - 40, bytes(40)),
        DamageKind.CHECKSUM,
        (1,),
        mended_by="copy",
    ),
    Damage(
        "data file of zeros",
        lambda r: data_path(r, 1).write_bytes(bytes(data_path(r, 1).stat().st_size)),
        DamageKind.FILE_CONTENT,
        (1,),
        mended_by="copy",
    ),
    Damage(
        "data file with garbage in its first page",
        lambda r: overwrite(data_path(r, 0), 0, b"\xff" * 256),
        DamageKind.CHECKSUM,
        (0,),
        quick=False,
        mended_by="copy",
    ),
    Damage(
        "data file with one flipped bit",
        lambda r: flip_bit(data_path(r, 2), 100),
        DamageKind.CHECKSUM,
        (2,),
        quick=False,
        mended_by="copy",
    ),
    Damage(
        "data file with fewer rows",
        lambda r: rewrite_data_file(r, 0, lambda table, schema: (table.slice(0, 10), schema)),
        DamageKind.ROW_COUNT,
        (0,),
    ),
    Damage(
        "data file with a column of another type",
        lambda r: rewrite_data_file(
            r,
            1,
            lambda table, schema: (
                table.set_column(0, pa.field("x", pa.float64()), table.column(0).cast(pa.float64())),
                Schema((replace(schema.fields[0], logical_type="double"), *schema.fields[1:])),
            ),
        ),
        DamageKind.FILE_SCHEMA,
        (1,),
    ),
    Damage(
        "manifest with a column that the file lacks",
        lambda r: set_columns(r, 2, (0, 1, 7)),
        DamageKind.FILE_SCHEMA,
        (2,),
    ),
    Damage(
        "manifest with another row count",
        lambda r: edit_fragment(r, 1, lambda f: replace(f, physical_rows=ROWS_PER_FRAGMENT + 1)),
        DamageKind.ROW_COUNT,
        (1,),
    ),
    Damage(
        "deletion file missing", lambda r: deletion_path(r).unlink(), DamageKind.MISSING_FILE, (1,), mended_by="copy"
    ),
    Damage(
        "deletion file of garbage",
        lambda r: deletion_path(r).write_bytes(b"garbage" * 50),
        DamageKind.DELETION_VECTOR,
        (1,),
        mended_by="copy",
    ),
    Damage(
        "deletion file with a flipped bit",
        lambda r: flip_bit(deletion_path(r), 100),
        DamageKind.CHECKSUM,
        (1,),
        mended_by="copy",
    ),
    Damage(
        "deletion file with another number of rows",
        lambda r: set_deletions(r, [1, 2, 3], 4),
        DamageKind.DELETION_VECTOR,
        (1,),
    ),
    Damage(
        "deletion of a row that does not exist",
        lambda r: set_deletions(r, [1, ROWS_PER_FRAGMENT]),
        DamageKind.DELETION_VECTOR,
        (1,),
    ),
    Damage("too few row ids", lambda r: set_row_ids(r, 0, list(range(10))), DamageKind.ROW_IDS, (0,)),
    Damage(
        "row id of two live rows",
        lambda r: set_row_ids(r, 2, [0, *range(2 * ROWS_PER_FRAGMENT + 1, 3 * ROWS_PER_FRAGMENT)]),
        DamageKind.ROW_IDS,
        (2,),
    ),
    Damage(
        "row ids that the table will give out again",
        lambda r: edit_manifest(r, lambda manifest: replace(manifest, next_row_id=2 * ROWS_PER_FRAGMENT)),
        DamageKind.ROW_IDS,
        (2,),
    ),
    Damage("rows of a later version", lambda r: set_versions(r, 1, 99), DamageKind.ROW_VERSIONS, (1,)),
    Damage("too few row versions", lambda r: set_versions(r, 1, 1, 5), DamageKind.ROW_VERSIONS, (1,)),
    Damage("blob sidecar missing", lambda r: sidecars(r)[0].unlink(), DamageKind.MISSING_FILE, (0,), mended_by="copy"),
    Damage(
        "blob sidecar cut short",
        lambda r: cut(sidecars(r)[0], blob_bytes(sidecars(r)[0]) - 1),
        DamageKind.FILE_SIZE,
        (0,),
        mended_by="copy",
    ),
    Damage(
        "blob sidecar with one flipped bit",
        lambda r: flip_bit(sidecars(r)[0], 100_000),
        DamageKind.CHECKSUM,
        (0,),
        quick=False,
        mended_by="copy",
    ),
    Damage(
        "index file missing",
        lambda r: (r / index_of(r).directory / "page_lookup.lance").unlink(),
        DamageKind.MISSING_FILE,
        (),
        _X,
        mended_by="itself",
    ),
    Damage(
        "index folder missing",
        lambda r: shutil.rmtree(r / index_of(r).directory),
        DamageKind.MISSING_FILE,
        (),
        _X,
        mended_by="itself",
    ),
    Damage(
        "index file cut short",
        lambda r: cut(r / index_of(r).directory / "page_data.lance"),
        DamageKind.FILE_SIZE,
        (),
        _X,
        mended_by="itself",
    ),
    Damage(
        "index file with a flipped bit",
        lambda r: flip_bit(r / index_of(r).directory / "page_data.lance", 70),
        DamageKind.CHECKSUM,
        (),
        _X,
        quick=False,
        mended_by="itself",
    ),
    damaged_entries("index without an entry of a live row", lambda table: table.slice(1), DamageKind.INDEX_FILE),
    damaged_entries(
        "index with two entries of a row and none of another",
        lambda table: with_column(table, "ids", 3, 4),
        DamageKind.INDEX_ENTRIES,
    ),
    damaged_entries(
        "index with another value than the row's",
        lambda table: with_column(table, "values", 5, 4),
        DamageKind.INDEX_ENTRIES,
    ),
    damaged_entries(
        "index with an entry behind a fragment's last row",
        lambda table: with_column(table, "ids", 1799, _LAST + 1),
        DamageKind.INDEX_ENTRIES,
    ),
    damaged_entries("index with entries out of order", swap_entries, DamageKind.INDEX_FILE),
    Damage(
        "index on a field that the schema lacks",
        lambda r: edit_manifest(
            r, lambda m: replace(m, indices=tuple(replace(index, fields=(99,)) for index in m.indices))
        ),
        DamageKind.INDEX_METADATA,
        (),
        _X,
        mended_by="itself",
    ),
    Damage(
        "two fragments of one id",
        lambda r: edit_manifest(
            r,
            lambda m: replace(m, fragments=type(m.fragments)([replace(f, id=min(f.id, 1)) for f in m.fragments])),
        ),
        DamageKind.MANIFEST,
        (1,),
    ),
    Damage(
        "transaction file missing", lambda r: transaction_path(r).unlink(), DamageKind.MISSING_FILE, mended_by="itself"
    ),
    Damage(
        "transaction file of garbage",
        lambda r: transaction_path(r).write_bytes(b"\xff" * 64),
        DamageKind.TRANSACTION_FILE,
        mended_by="itself",
    ),
    Damage(
        "hint at a version that does not exist",
        lambda r: (r / "_versions" / "latest_version_hint.json").write_text('{"version":99}'),
        DamageKind.VERSION_HINT,
        mended_by="itself",
    ),
    Damage(
        "tag of a version that does not exist",
        lambda r: set_reference(r / "_refs" / "tags" / "indexed.json", version=99),
        DamageKind.TAG,
    ),
    Damage("tag file of garbage", lambda r: (r / "_refs" / "tags" / "indexed.json").write_text("{"), DamageKind.TAG),
    Damage("branch whose first version is gone", lambda r: oldest_manifest(r).unlink(), DamageKind.BRANCH),
    Damage("branch without a version", lambda r: shutil.rmtree(r / "tree" / "trial"), DamageKind.BRANCH),
    Damage("older manifest cut short", lambda r: cut(oldest_manifest(r)), DamageKind.MANIFEST, all_versions=True),
)
