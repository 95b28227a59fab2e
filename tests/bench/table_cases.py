"""The measured operations on tables: commits, opening large tables, changing rows, compacting.

This library prepares each case once, and each contender gets a copy, so both start with the same bytes. After the
first round, which warms up, both must give the same answer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

import lance_ops
from lance_ops.committers.version_hint import VERSION_HINT_PATH
from lance_ops.core.file_names import ManifestNaming, manifest_name
from lance_ops.table import encode_manifest
from lance_ops.transactions import Append
from lance_ops.writing.commit import commit_operation
from tests.residency import forget

__all__ = ["ALL_TABLE_CASES", "COMMITS", "FEW_TAKEN", "TAKEN", "TableCase", "write_versions"]

COMMITS, WRITERS = 16, 8
TAKEN = 1000
FEW_TAKEN = 10

_SOURCE = "rows_to_merge.arrow"


def _all_rows(module: ModuleType, uri: str, result: object) -> pa.Table:
    rows = module.dataset(uri).to_table()
    return rows.sort_by([(name, "ascending") for name in rows.schema.names])


def _as_it_is(module: ModuleType, uri: str, result: object) -> pa.Table:
    return result if isinstance(result, pa.Table) else pa.table({"result": [result]})


@dataclass(frozen=True)
class TableCase:
    """`run` is measured; it takes the folder and the round's number. With `anew`, each round gets a fresh copy.

    `begin` does to a copy what cannot be copied. `answer` is what the contenders must agree on, made of the folder and
    what `run` returned.
    """

    name: str
    prepare: Callable[[Path, float], None]
    run: Callable[[ModuleType, str, int], object]
    anew: bool = False
    begin: Callable[[Path], object] | None = None
    answer: Callable[[ModuleType, str, object], pa.Table] = _all_rows

    def start(self, root: Path, name: str, number: int) -> str:
        """Make the folder that a contender's round finds out of `source`, and return its name.

        Those of other rounds stay: who has a file of one mapped would pay within its time for deleting it.
        """
        files = f"{name}-{number}" if self.anew else name
        if not (root / files).exists():
            shutil.copytree(root / "source", root / files)
            if self.begin is not None:
                self.begin(root / files)
        return files


def _one_row() -> pa.Table:
    return pa.table({"id": [1], "text": ["one row"]})


def _prepare_one_row(folder: Path, scale: float) -> None:
    lance_ops.write_dataset(_one_row(), str(folder))


def write_versions(folder: Path, num_versions: int) -> None:
    """Write a table of one row and `num_versions` versions, without committing all of them."""
    dataset = lance_ops.write_dataset(_one_row(), str(folder))
    manifest = dataset.snapshot.manifest
    for version in range(2, num_versions + 1):
        data = encode_manifest(replace(manifest, version=version), b"")
        (folder / "_versions" / manifest_name(version, ManifestNaming.V2)).write_bytes(data)


def _prepare_versions(folder: Path, scale: float) -> None:
    write_versions(folder, max(2, round(10_000 * scale) - 1))


def _commit_the_last(folder: Path) -> None:
    lance_ops.write_dataset(_one_row(), str(folder), mode="append")


def _commit_the_last_without_hint(folder: Path) -> None:
    _commit_the_last(folder)
    (folder / VERSION_HINT_PATH).unlink()


def _prepare_fragments(folder: Path, scale: float) -> None:
    snapshot = lance_ops.write_dataset(_one_row(), str(folder)).snapshot
    first = snapshot.manifest.fragments[0]
    stem = first.files[0].path.removesuffix(".lance")
    named = (f"{stem}{number:06}.lance" for number in range(max(2, round(100_000 * scale))))
    commit_operation(
        snapshot, Append(tuple(replace(first, id=0, files=(replace(first.files[0], path=name),)) for name in named))
    )


def _rows(num_rows: int) -> pa.Table:
    """Return rows with keys in no order, beside a number and a text."""
    rng = np.random.default_rng(0)
    keys = rng.permutation(num_rows)
    return pa.table({"id": keys, "value": rng.normal(size=num_rows), "text": _texts(keys)})


def _texts(keys: np.ndarray) -> pa.Array:
    return pa.array([f"row {key}" for key in keys.tolist()])


def _prepare_rows(
    folder: Path, scale: float, *, fragments: int = 10, indexed: bool = False, stable: bool = False
) -> None:
    rows = _rows(_num_rows(scale))
    dataset = lance_ops.write_dataset(
        rows, str(folder), max_rows_per_file=len(rows) // fragments, enable_stable_row_ids=stable
    )
    if indexed:
        dataset.create_scalar_index("id", "BTREE")


def _num_rows(scale: float) -> int:
    return max(1000, round(1_000_000 * scale))


def _forget(folder: Path) -> None:
    """Drop all files of a table from the page cache."""
    for file in (path for path in folder.rglob("*") if path.is_file()):
        forget(file)


def _prepare_stable_row_ids(folder: Path, scale: float) -> None:
    """Make ten fragments of rows that a compaction has moved."""
    _prepare_rows(folder, scale, fragments=20, stable=True)
    dataset = lance_ops.dataset(str(folder))
    dataset.delete("id % 5 = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=dataset.count_rows() // 10)


def _prepare_merge(folder: Path, scale: float, *, share: float, new: float = 0, indexed: bool = False) -> None:
    """Lay rows to merge into the table beside it: of a share of its keys, and `new` times as many others."""
    _prepare_rows(folder, scale, indexed=indexed)
    rng, num_rows = np.random.default_rng(1), _num_rows(scale)
    there = rng.choice(num_rows, max(1, round(num_rows * share)), replace=False)
    keys = rng.permutation(np.concatenate([there, np.arange(num_rows, num_rows + round(len(there) * new))]))
    rows = pa.table({"id": keys, "value": rng.normal(size=len(keys)), "text": _texts(keys * 7919)})
    with pa.ipc.new_file(folder / _SOURCE, rows.schema) as file:
        file.write_table(rows)


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


def _update_some(module: ModuleType, uri: str, number: int) -> None:
    module.dataset(uri).update({"value": "value + 1"}, "id % 100 = 7")


def _update_all(module: ModuleType, uri: str, number: int) -> None:
    module.dataset(uri).update({"value": "value + 1"})


def _upsert(module: ModuleType, uri: str, number: int) -> None:
    merge = module.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(_source(uri))


def _update_by_key(module: ModuleType, uri: str, number: int) -> None:
    merge = module.dataset(uri).merge_insert("id").when_matched_update_all()
    merge.execute(_source(uri).select(["id", "value"]))


def _source(uri: str) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(f"{uri}/{_SOURCE}")).read_all()


def _add_column(module: ModuleType, uri: str, number: int) -> None:
    module.dataset(uri).add_columns({"more": "value * 2 + id"})


def _take_by_row_id(module: ModuleType, uri: str, number: int) -> pa.Table:
    dataset = module.dataset(uri)
    return dataset._take_rows(np.random.default_rng(number).integers(0, dataset.count_rows(), TAKEN).tolist())


def _take_few(module: ModuleType, uri: str, number: int) -> pa.Table:
    dataset = module.dataset(uri)
    return dataset.take(np.random.default_rng(number).integers(0, dataset.count_rows(), FEW_TAKEN).tolist())


def _scan(module: ModuleType, uri: str, number: int, *, verify: bool) -> pa.Table:
    return _opened(module, uri, verify).to_table()


def _take(module: ModuleType, uri: str, number: int, *, verify: bool) -> pa.Table:
    dataset = _opened(module, uri, verify)
    return dataset.take(np.random.default_rng(number).integers(0, dataset.count_rows(), TAKEN).tolist())


def _opened(module: ModuleType, uri: str, verify: bool) -> Any:
    """Open a table; only this library can verify checksums."""
    return module.dataset(uri, verify_checksums="always") if verify and module is lance_ops else module.dataset(uri)


def _compact(module: ModuleType, uri: str, number: int) -> None:
    module.dataset(uri).optimize.compact_files()


ALL_TABLE_CASES = (
    TableCase("commits_alone", _prepare_one_row, _commit_alone),
    TableCase("commits_8_writers", _prepare_one_row, _commit_beside_others),
    TableCase("open_10000_versions", _prepare_versions, _open, begin=_commit_the_last, answer=_as_it_is),
    TableCase(
        "open_10000_versions_listed",
        _prepare_versions,
        _open,
        begin=_commit_the_last_without_hint,
        answer=_as_it_is,
    ),
    TableCase("open_100000_fragments", _prepare_fragments, _open, answer=_as_it_is),
    TableCase("commit_100000_fragments", _prepare_fragments, _commit, answer=_as_it_is),
    TableCase("delete_1_percent", _prepare_rows, _delete),
    TableCase("update_1_percent", _prepare_rows, _update_some, anew=True),
    TableCase("update_all", _prepare_rows, _update_all, anew=True),
    TableCase("merge_insert", partial(_prepare_merge, share=0.005, new=1), _upsert, anew=True),
    TableCase("merge_insert_half", partial(_prepare_merge, share=0.5, new=0.1), _upsert, anew=True),
    TableCase("merge_insert_by_index", partial(_prepare_merge, share=0.0001, indexed=True), _upsert, anew=True),
    TableCase("merge_insert_column", partial(_prepare_merge, share=0.01), _update_by_key, anew=True),
    TableCase("add_column", _prepare_rows, _add_column, anew=True),
    TableCase("take_stable_row_ids", _prepare_stable_row_ids, _take_by_row_id, answer=_as_it_is),
    TableCase("take_cold", _prepare_rows, _take_few, anew=True, begin=_forget, answer=_as_it_is),
    TableCase("scan", _prepare_rows, partial(_scan, verify=False), answer=_as_it_is),
    TableCase("scan_verified", _prepare_rows, partial(_scan, verify=True), answer=_as_it_is),
    TableCase("take", _prepare_rows, partial(_take, verify=False), answer=_as_it_is),
    TableCase("take_verified", _prepare_rows, partial(_take, verify=True), answer=_as_it_is),
    TableCase("compact_with_index", partial(_prepare_rows, fragments=50, indexed=True), _compact, anew=True),
)
