"""What is measured of tables rather than of values: commits, opening what is large, deleting, compacting.

A case is prepared once, by this library, and each contender gets a copy: both begin with the same bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa

import lance_ops
from lance_ops.core.names import ManifestNaming, manifest_name
from lance_ops.snapshot.commit import commit_operation
from lance_ops.table import encode_manifest
from lance_ops.transactions import Append

__all__ = ["ALL_TABLE_CASES", "COMMITS", "TableCase"]

COMMITS, WRITERS = 16, 8


@dataclass(frozen=True)
class TableCase:
    """`run` is measured, on the folder and with the number of the round; `anew` gives each round a fresh copy."""

    name: str
    prepare: Callable[[Path, float], None]
    run: Callable[[ModuleType, str, int], object]
    anew: bool = False

    def start(self, source: Path, folder: Path) -> None:
        """Make the folder that a round finds, if it is not there or not fit."""
        if self.anew or not folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(source, folder)


def _one_row() -> pa.Table:
    return pa.table({"id": [1], "text": ["one row"]})


def _prepare_one_row(folder: Path, scale: float) -> None:
    lance_ops.write_dataset(_one_row(), str(folder))


def _prepare_versions(folder: Path, scale: float) -> None:
    dataset = lance_ops.write_dataset(_one_row(), str(folder))
    manifest = dataset.snapshot.manifest
    for version in range(2, max(3, round(10_000 * scale))):
        data = encode_manifest(replace(manifest, version=version), b"")
        (folder / "_versions" / manifest_name(version, ManifestNaming.V2)).write_bytes(data)
    (folder / "_versions" / "latest_version_hint.json").write_text(f'{{"version":{version}}}')


def _prepare_fragments(folder: Path, scale: float) -> None:
    snapshot = lance_ops.write_dataset(_one_row(), str(folder)).snapshot
    first = snapshot.manifest.fragments[0]
    stem = first.files[0].path.removesuffix(".lance")
    named = (f"{stem}{number:06}.lance" for number in range(max(2, round(100_000 * scale))))
    commit_operation(
        snapshot, Append(tuple(replace(first, id=0, files=(replace(first.files[0], path=name),)) for name in named))
    )


def _prepare_rows(folder: Path, scale: float, fragments: int = 10) -> None:
    num_rows = max(1000, round(1_000_000 * scale))
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "id": rng.permutation(num_rows),
            "value": rng.normal(size=num_rows),
            "text": pa.array([f"row {number}" for number in range(num_rows)]),
        }
    )
    lance_ops.write_dataset(table, str(folder), max_rows_per_file=num_rows // fragments)


def _prepare_indexed_rows(folder: Path, scale: float) -> None:
    _prepare_rows(folder, scale, fragments=50)
    lance_ops.dataset(str(folder)).create_scalar_index("id", "BTREE")


def _commit(module: ModuleType, uri: str, number: int) -> None:
    module.write_dataset(_one_row(), uri, mode="append")


def _commit_alone(module: ModuleType, uri: str, number: int) -> None:
    for _ in range(COMMITS):
        _commit(module, uri, number)


def _commit_beside_others(module: ModuleType, uri: str, number: int) -> None:
    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(lambda _: _commit(module, uri, number), range(COMMITS)))


def _open(module: ModuleType, uri: str, number: int) -> object:
    return module.dataset(uri).version


def _delete(module: ModuleType, uri: str, number: int) -> None:
    module.dataset(uri).delete(f"id % 100 = {number}")


def _compact(module: ModuleType, uri: str, number: int) -> None:
    module.dataset(uri).optimize.compact_files()


ALL_TABLE_CASES = (
    TableCase("commits_alone", _prepare_one_row, _commit_alone),
    TableCase("commits_8_writers", _prepare_one_row, _commit_beside_others),
    TableCase("open_10000_versions", _prepare_versions, _open),
    TableCase("open_100000_fragments", _prepare_fragments, _open),
    TableCase("commit_100000_fragments", _prepare_fragments, _commit),
    TableCase("delete_1_percent", _prepare_rows, _delete),
    TableCase("compact_with_index", _prepare_indexed_rows, _compact, anew=True),
)
