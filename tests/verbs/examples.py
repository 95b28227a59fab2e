"""Each thing that the verbs do, once: the verb, the command that does the same, and what becomes of a small table."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from lance_ops.api import LanceDataset, dataset, write_dataset
from lance_ops.verbs import (
    AddColumns,
    Branch,
    Cleanup,
    Clone,
    Compact,
    DeleteDuplicates,
    DeleteRows,
    DropIndex,
    Erase,
    IngestFiles,
    Migrate,
    Reindex,
    Repair,
    Restore,
    Tag,
    Update,
    Upsert,
    Verb,
    Verify,
)

__all__ = ["EXAMPLES", "NUM_ROWS", "Example", "made_table"]

NUM_ROWS = 12


@dataclass(frozen=True)
class Example:
    """What is done, as the issue of a platform team would call it, and how.

    `make` gets a folder with `more.parquet`, `keys.parquet`, `keys.lance` and `values.parquet`. `command` is a line in
    which `{uri}` and `{folder}` stand for these. `own_preview` says that the command shows a dry run in its own words.
    """

    title: str
    make: Callable[[str], Verb]
    command: str
    num_commits: int = 1
    num_rows: int = NUM_ROWS
    prepare: Callable[[LanceDataset], object] = lambda _: None
    own_preview: bool = False

    def words(self, uri: str, folder: str) -> list[str]:
        """Return the words of the command line."""
        return [word.format(uri=uri, folder=folder) for word in shlex.split(self.command)]

    def begin(self, uri: str, folder: Path) -> LanceDataset:
        """Make the table and the files beside it."""
        data = made_table(uri)
        rows = {"x": [100, 5], "s": ["new", "new"]}
        pyarrow.parquet.write_table(pa.table(rows), folder / "more.parquet")
        pyarrow.parquet.write_table(pa.table({"x": [1, 2, 50]}), folder / "keys.parquet")
        write_dataset(pa.table({"x": [1, 2, 50]}), str(folder / "keys.lance"))
        named = pa.table({"_rowaddr": [0, 1], "s": ["new", "new"], "y": [1, 2]})
        pyarrow.parquet.write_table(named.select(["_rowaddr", "s"]), folder / "values.parquet")
        pyarrow.parquet.write_table(named.select(["_rowaddr", "y"]), folder / "new.parquet")
        self.prepare(data)
        return dataset(uri)


def made_table(uri: str) -> LanceDataset:
    """Twelve rows in three fragments, with an index on x; version 2."""
    rows = pa.table({"x": range(NUM_ROWS), "s": [f"pair {x // 2}" for x in range(NUM_ROWS)]})
    write_dataset(rows, uri, max_rows_per_file=4).create_scalar_index("x", "BTREE")
    return dataset(uri)


def _one_more(data: LanceDataset) -> None:
    data.insert(pa.table({"x": [50], "s": ["later"]}))


EXAMPLES = (
    Example(
        "ingest",
        lambda folder: IngestFiles((f"{folder}/more.parquet",), isolated=False),
        "ingest {uri} {folder}/more.parquet",
        num_rows=NUM_ROWS + 2,
    ),
    Example(
        "delete by predicate",
        lambda _: DeleteRows("x < 3", "r"),
        "delete {uri} 'x < 3' --reason r",
        num_rows=NUM_ROWS - 3,
    ),
    Example(
        "delete by keys of a file",
        lambda folder: DeleteRows(key_files=(f"{folder}/keys.parquet",), on=("x",), reason="r"),
        "delete {uri} --keys {folder}/keys.parquet --on x --reason r",
        num_rows=NUM_ROWS - 2,
    ),
    Example(
        "delete by a joined dataset",
        lambda folder: DeleteRows(key_files=(f"{folder}/keys.lance",), on=("x",), reason="r"),
        "delete {uri} --keys {folder}/keys.lance --on x --reason r",
        num_rows=NUM_ROWS - 2,
    ),
    Example(
        "delete duplicates",
        lambda _: DeleteDuplicates(("s",)),
        "duplicates {uri} --on s --keep first",
        num_rows=NUM_ROWS // 2,
    ),
    Example("update", lambda _: Update({"s": "'new'"}, "x < 3"), "update {uri} \"s='new'\" --where 'x < 3'"),
    Example(
        "update by rows of a file",
        lambda folder: Update(files=(f"{folder}/values.parquet",)),
        "update {uri} --from {folder}/values.parquet",
    ),
    Example(
        "upsert",
        lambda folder: Upsert((f"{folder}/more.parquet",), ("x",)),
        "merge {uri} {folder}/more.parquet --on x",
        num_rows=NUM_ROWS + 1,
    ),
    Example("add columns", lambda _: AddColumns({"y": "x + 1"}), "add-columns {uri} 'y=x + 1'"),
    Example(
        "add columns by a function",
        lambda _: AddColumns(function="tests.verbs.made_columns:doubled"),
        "add-columns {uri} --function tests.verbs.made_columns:doubled",
    ),
    Example(
        "add columns by rows of a file",
        lambda folder: AddColumns(files=(f"{folder}/new.parquet",)),
        "add-columns {uri} --from {folder}/new.parquet",
    ),
    # a deletion, a rewrite of reserved ids, a new index
    Example("erase", lambda _: Erase("x = 1", "r"), "erase {uri} 'x = 1' --reason r --yes", 4, NUM_ROWS - 1),
    Example("restore", lambda _: Restore(1, reason="r"), "restore {uri} 1 --reason r"),
    Example(
        "restore a tag",
        lambda _: Restore(tag="t", reason="r"),
        "restore {uri} t --reason r",
        prepare=lambda data: data.tags.create("t", 1),
    ),
    # ids of fragments are reserved before they are rewritten
    Example("compact", lambda _: Compact(), "compact {uri}", 2),
    Example(
        "compact within bounds",
        lambda _: Compact(max_source_fragments=2, max_source_bytes=1 << 20, max_seconds=1000),
        "compact {uri} --max-source-fragments 2 --max-source-bytes 1048576 --max-seconds 1000",
        2,
    ),
    Example(
        "cluster",
        lambda _: Compact(cluster_by=("s", "x"), cluster_order="z_order"),
        "compact {uri} --cluster-by s --cluster-by x --z-order",
        2,
    ),
    Example(
        "create an index", lambda _: Reindex(create={"s_idx": "s"}, indices=("s_idx",)), "reindex {uri} --create s"
    ),
    Example("refresh indices", lambda _: Reindex(), "reindex {uri}", num_rows=NUM_ROWS + 1, prepare=_one_more),
    Example("rebuild indices", lambda _: Reindex(rebuild=True), "reindex {uri} --rebuild"),
    Example("drop an index", lambda _: DropIndex("x_idx"), "reindex {uri} --drop x_idx"),
    Example("clean up", lambda _: Cleanup(retain_versions=1), "cleanup {uri} --retain-versions 1", 0, own_preview=True),
    Example("verify", lambda _: Verify(), "verify {uri}", 0),
    Example("repair", lambda _: Repair(level="quick"), "repair {uri}", 0, own_preview=True),
    Example("migrate", lambda _: Migrate("2.1"), "migrate {uri} --data-storage-version 2.1", 2),
    Example("tag", lambda _: Tag("t"), "tags create {uri} t", 0),
    Example(
        "move a tag",
        lambda _: Tag("t", 1, "move"),
        "tags update {uri} t 1",
        0,
        prepare=lambda data: data.tags.create("t", 2),
    ),
    Example(
        "delete a tag",
        lambda _: Tag("t", action="delete"),
        "tags delete {uri} t",
        0,
        prepare=lambda data: data.tags.create("t", 2),
    ),
    Example("branch", lambda _: Branch("b"), "branches create {uri} b", 0),
    Example(
        "delete a branch",
        lambda _: Branch("b", action="delete"),
        "branches delete {uri} b --yes",
        0,
        prepare=lambda data: data.create_branch("b"),
    ),
    Example("clone", lambda folder: Clone(f"{folder}/copy.lance"), "clone {uri} {folder}/copy.lance", 0),
)
