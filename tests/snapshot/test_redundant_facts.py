"""A table states some facts twice. Where the two contradict each other, every read that relies on them is refused.

A fact that is absent is no contradiction: old and foreign writers leave out many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap, FrozenBitMap

import lance_ops
from lance_ops import LanceDataset
from lance_ops.core.schema import Schema, with_field
from lance_ops.errors import CorruptFile
from lance_ops.snapshot import Snapshot, validate
from lance_ops.table import DataFile, Fragment, Manifest, decode_manifest, encode_deletion_vector, encode_manifest
from lance_ops.table.rows import RowVersions, encode_row_id_range, encode_versions

ROWS, DELETED = 12_000, 6  # of each fragment; the second one's deletion vector is a bitmap
Change = Callable[[Manifest], Manifest]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """Return a table of two fragments with deletion files of both kinds, stable row ids and an index."""
    table = pa.table({"id": range(2 * ROWS), "x": pa.array(range(2 * ROWS), pa.int32())})
    uri = tmp_path_factory.mktemp("facts") / "table"
    dataset = lance_ops.write_dataset(table, uri, max_rows_per_file=ROWS, enable_stable_row_ids=True)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete(f"id < {DELETED} OR (id >= {ROWS} AND id % 2 = 0)")
    return dataset


def forged(made: LanceDataset, change: Change) -> Snapshot:
    """Return the newest version with another manifest, which is encoded and decoded again."""
    encoded = encode_manifest(change(made.snapshot.manifest), b"")
    return fresh(replace(made.snapshot, manifest=decode_manifest(encoded, "the manifest")))


def fresh(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without what was read before."""
    return Snapshot(snapshot.store, snapshot.committer, snapshot.manifest)


def of_fragment(change: Callable[[Fragment], Fragment], at: int = 0) -> Change:
    def changed(manifest: Manifest) -> Manifest:
        fragment = manifest.fragments[at]
        return replace(manifest, fragments=manifest.fragments.with_changes({fragment.id: change(fragment)}))

    return changed


def of_file(change: Callable[[DataFile], DataFile]) -> Change:
    return of_fragment(lambda fragment: replace(fragment, files=(change(fragment.files[0]),)))


def deleted_count(count: int, at: int = 0) -> Change:
    def changed(fragment: Fragment) -> Fragment:
        assert fragment.deletion_file is not None
        return replace(fragment, deletion_file=replace(fragment.deletion_file, num_deleted_rows=count))

    return of_fragment(changed, at)


def of_index(**changes: object) -> Change:
    return lambda manifest: replace(manifest, indices=(replace(manifest.indices[0], **changes),))  # type: ignore[arg-type]


def of_type(logical_type: str) -> Change:
    return lambda m: replace(m, schema=with_field(m.schema, 1, lambda field: replace(field, logical_type=logical_type)))


def scan(snapshot: Snapshot) -> int:
    return len(LanceDataset.of(snapshot).to_table(with_row_id=True))


def versions(snapshot: Snapshot) -> int:
    columns = ["_row_created_at_version", "_row_last_updated_at_version"]
    return len(LanceDataset.of(snapshot).to_table(columns=columns))


def count(snapshot: Snapshot) -> int:
    return LanceDataset.of(snapshot).count_rows()


def find(snapshot: Snapshot) -> int:
    found = LanceDataset.of(snapshot).to_table(filter=f"id >= {ROWS + 1}")
    return len(found) + ROWS - DELETED  # the rows of the first fragment


READS = (scan, versions, count, find)

CONTRADICTIONS: dict[str, tuple[Change, str, set[Callable[[Snapshot], int]]]] = {
    "more deleted rows than the vector has": (deleted_count(7), r"_deletions/.*arrow", {scan}),
    "fewer deleted rows than the bitmap has": (deleted_count(5000, 1), r"_deletions/.*bin", {scan}),
    "more deleted rows than rows": (deleted_count(ROWS + 1), "12001 of 12000 rows are deleted", {scan, count}),
    "more rows than the file": (of_fragment(lambda f: replace(f, physical_rows=ROWS + 1)), r"data/.*lance", {scan}),
    "fewer rows than the file": (of_fragment(lambda f: replace(f, physical_rows=ROWS - 1)), r"data/.*lance", {scan}),
    "rows before the last deleted one": (
        of_fragment(lambda f: replace(f, physical_rows=DELETED - 1)),
        "6 of 5 rows are deleted",
        {scan, count},
    ),
    "rows before the last one of the bitmap": (
        of_fragment(lambda f: replace(f, physical_rows=ROWS - 2), 1),
        r"_deletions/.*bin: deletion vector: row 11998 is deleted, but the fragment has 11998 rows",
        {scan},
    ),
    "fewer row ids than rows": (
        of_fragment(lambda f: f.with_sequences(row_ids=encode_row_id_range(0, ROWS - 1))),
        "row id sequence",
        {scan},
    ),
    "more row ids than rows": (
        of_fragment(lambda f: f.with_sequences(row_ids=encode_row_id_range(0, ROWS + 1))),
        "row id sequence",
        {scan},
    ),
    "no row ids": (of_fragment(lambda f: replace(f, row_id_meta=None)), "row id sequence", {scan}),
    "a row id that was never given out": (lambda m: replace(m, next_row_id=ROWS), "next row id is 12000", {scan}),
    "fewer versions of rows than rows": (
        of_fragment(lambda f: f.with_sequences(created_at_versions=encode_versions(RowVersions.uniform(1, ROWS - 1)))),
        "row version sequence",
        {versions},
    ),
    "more versions of updates than rows": (
        of_fragment(
            lambda f: f.with_sequences(last_updated_at_versions=encode_versions(RowVersions.uniform(1, ROWS + 1)))
        ),
        "row version sequence",
        {versions},
    ),
    "a field in a column that the file lacks": (
        of_file(lambda f: replace(f, column_indices=(0, 2))),
        r"data/.*lance: 2 columns",
        {scan},
    ),
    "two fields in one column": (of_file(lambda f: replace(f, column_indices=(1, 1))), r"data/.*lance", {scan}),
    "more columns than fields": (of_file(lambda f: replace(f, column_indices=(0, 1, 1))), r"data/.*lance", {scan}),
    "a file of another size": (of_file(lambda f: replace(f, file_size_bytes=9999)), r"data/.*lance", {scan}),
    "values of the same width and another type": (of_type("float"), "is int32 in the file and float in the", {scan}),
    "values of another width": (of_type("int64"), "is int32 in the file and int64 in the table", {scan}),
    "an index file of another size": (
        lambda m: of_index(files=tuple(replace(f, size_bytes=9999) for f in m.indices[0].files))(m),
        r"_indices/.*lance",
        {find},
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_contradiction_is_refused_where_it_is_read(made: LanceDataset, name: str) -> None:
    change, place, refused = CONTRADICTIONS[name]
    snapshot = forged(made, change)
    for read in READS:
        if read in refused:
            with pytest.raises(CorruptFile, match=place):
                read(fresh(snapshot))
    with pytest.raises(CorruptFile):
        validate(fresh(snapshot))


@pytest.mark.parametrize(
    ("change", "user"),
    [
        (lambda m: replace(m, max_fragment_id=0), "the fragments reach up to 1"),
        (of_index(fragment_bitmap=FrozenBitMap([0, 1, 9])), "index 'id_idx' reach up to 9"),
    ],
    ids=["fragments", "index"],
)
def test_a_fragment_id_above_the_highest_one_ever_used_is_refused_on_opening(
    made: LanceDataset, change: Change, user: str
) -> None:
    with pytest.raises(CorruptFile, match=f"the manifest: max_fragment_id: it is .*, but {user}"):
        forged(made, change)


@pytest.mark.parametrize("kind", ["arrow", "bin"])
def test_a_deleted_row_beyond_the_fragment_is_neither_read_nor_deleted_again(tmp_path: Path, kind: str) -> None:
    rows = 8000
    dataset = lance_ops.write_dataset(pa.table({"x": range(rows)}), tmp_path / "t")
    first, last = (0, 3) if kind == "arrow" else (0, 6000)
    dataset.delete(f"x >= {first} AND x < {last}")
    fragment = dataset.snapshot.fragments[0]
    assert fragment.deletion_file is not None
    (path,) = (tmp_path / "t/_deletions").glob(f"*.{kind}")
    beyond = BitMap([*range(first + 1, last), rows])  # row 0 is live again instead
    _, data = encode_deletion_vector(beyond, fragment.deletion_file.read_version, fragment.deletion_file.id)
    path.write_bytes(data)
    opened = lance_ops.dataset(tmp_path / "t")
    for act in (
        opened.to_table,
        lambda: opened.to_table(filter="x = 0"),
        lambda: opened.take([0]),
        lambda: opened.delete("x = 7000"),
        lambda: opened.update({"x": "x + 1"}, "x = 7000"),
        partial(opened.optimize.compact_files, materialize_deletions_threshold=0.0),
        opened.validate,
    ):
        with pytest.raises(CorruptFile, match=rf"_deletions/.*{kind}.* row {rows} is deleted, but .* {rows} rows"):
            act()
    assert lance_ops.dataset(tmp_path / "t").version == dataset.version


LEFT_OUT: dict[str, Change] = {
    "the number of rows": of_fragment(lambda f: replace(f, physical_rows=0)),
    "the number of deleted rows": deleted_count(0),
    "both numbers": lambda m: deleted_count(0)(of_fragment(lambda f: replace(f, physical_rows=0))(m)),
    "a file's size": of_file(lambda f: replace(f, file_size_bytes=0)),
    "a file's columns": of_file(lambda f: replace(f, column_indices=())),
    "the highest fragment id": lambda m: replace(m, max_fragment_id=None),
    "an index's files": of_index(files=()),
    "an index's fragments": of_index(fragment_bitmap=None),
    "versions of rows": of_fragment(
        lambda f: replace(f, created_at_version_meta=None, last_updated_at_version_meta=None)
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_a_fact_that_is_left_out_is_no_contradiction(made: LanceDataset, name: str) -> None:
    snapshot = forged(made, LEFT_OUT[name])
    assert {read(fresh(snapshot)) for read in READS} == {made.count_rows()}


def test_types_that_share_bytes_and_meaning_agree(tmp_path: Path) -> None:
    """An instant's zone and the width of text's offsets may differ between a file and its table."""
    instants = pa.array([1, 2], pa.timestamp("us"))
    dataset = lance_ops.write_dataset(pa.table({"t": instants, "s": ["a", "b"]}), tmp_path / "t")
    stated = Schema.from_arrow(pa.schema({"t": pa.timestamp("us", "UTC"), "s": pa.large_string()}))
    snapshot = replace(dataset.snapshot, manifest=replace(dataset.snapshot.manifest, schema=stated))
    assert LanceDataset.of(snapshot).to_table().to_pydict() == {
        "t": instants.cast(pa.timestamp("us", "UTC")).to_pylist(),
        "s": ["a", "b"],
    }
