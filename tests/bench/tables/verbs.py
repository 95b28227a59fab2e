"""What is measured: each verb opens the table anew, as a script, a task or a request does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

import lance_ops
from tests.bench.measuring import touch
from tests.bench.tables.tables import rows, rows_to_append

__all__ = ["ALL_VERBS", "TAKEN", "Verb"]

TAKEN = 100
_OFFSET_FROM_END, _LIMIT = 20, 10


def _result(module: ModuleType, uri: str, result: object) -> pa.Table:
    match result:
        case pa.Table():
            return result
        case pa.Schema():
            return pa.table({"columns": result.names})
        case list():
            return pa.table({"versions": [version["version"] for version in result]})
        case _:
            return pa.table({"result": [result]})


def _all_rows(module: ModuleType, uri: str, result: object) -> pa.Table:
    table = module.dataset(uri).to_table()
    return table.sort_by(table.column_names[0])


def _unindexed_rows(module: ModuleType, uri: str, result: object) -> pa.Table:
    return pa.table({"unindexed": [module.dataset(uri).stats.index_stats("id_idx")["num_unindexed_rows"]]})


def _indices(module: ModuleType, uri: str, result: object) -> pa.Table:
    dataset = module.dataset(uri)
    found = dataset.to_table(filter="name in ('customer-1', 'customer-7', 'customer-999999999')")
    names = sorted(index.name for index in dataset.describe_indices())
    return pa.table({"indices": [names], "found": [sorted(found["name"].to_pylist())]})


def _rows_and_versions(module: ModuleType, uri: str, result: object) -> pa.Table:
    dataset = module.dataset(uri)
    return pa.table(
        {"rows": [dataset.count_rows()], "versions": [[version["version"] for version in dataset.versions()]]}
    )


@dataclass(frozen=True)
class Verb:
    """A verb: `run` is measured. It gets the library, the table's URI, and what `prepare` made of the round's number.

    If the verb `changes` the table, each round gets a fresh copy; `before` has changed what is copied. `answer` is what
    the contenders must agree on, made of the URI and what `run` returned.
    """

    name: str
    run: Callable[[ModuleType, str, Any], object]
    prepare: Callable[[ModuleType, str, int], object] = lambda module, uri, number: number
    changes: bool = False
    before: Callable[[str], object] | None = None
    answer: Callable[[ModuleType, str, object], pa.Table] = _result


def _num_rows(module: ModuleType, uri: str) -> int:
    num_rows: int = module.dataset(uri).count_rows()
    return num_rows


def _a_version(module: ModuleType, uri: str, number: int) -> int:
    latest: int = module.dataset(uri).version
    return 1 + number * 7919 % latest


def _scan(module: ModuleType, uri: str, _: int) -> pa.Table:
    return touch(module.dataset(uri).to_table())


def _filter(module: ModuleType, uri: str, bucket: int) -> pa.Table:
    return touch(module.dataset(uri).to_table(filter=f"bucket = {bucket}"))


def _filter_one_column(module: ModuleType, uri: str, bucket: int) -> pa.Table:
    return touch(module.dataset(uri).to_table(columns=["value"], filter=f"bucket = {bucket}"))


def _a_key(module: ModuleType, uri: str, number: int) -> int:
    """Return a random id that no table has deleted."""
    return 7 + 100 * int(np.random.default_rng(number).integers(_num_rows(module, uri) // 100))


def _row_by_btree(module: ModuleType, uri: str, key: int) -> pa.Table:
    return touch(module.dataset(uri).to_table(filter=f"id = {key}"))


def _a_range(module: ModuleType, uri: str, number: int) -> tuple[int, int]:
    """Return the bounds of a random hundredth of the ids."""
    share = _num_rows(module, uri) // 100
    first = int(np.random.default_rng(number).integers(90 * share))
    return first, first + share


def _range_by_btree(module: ModuleType, uri: str, bounds: tuple[int, int]) -> pa.Table:
    return touch(module.dataset(uri).to_table(filter=f"id >= {bounds[0]} and id < {bounds[1]}"))


def _positions(module: ModuleType, uri: str, number: int) -> list[int]:
    positions: list[int] = np.random.default_rng(number).integers(0, _num_rows(module, uri), TAKEN).tolist()
    return positions


def _take(module: ModuleType, uri: str, positions: list[int]) -> pa.Table:
    return touch(module.dataset(uri).take(positions))


def _near_the_end(module: ModuleType, uri: str, number: int) -> int:
    return _num_rows(module, uri) - _OFFSET_FROM_END


def _offset(module: ModuleType, uri: str, offset: int) -> pa.Table:
    return touch(module.dataset(uri).to_table(offset=offset, limit=_LIMIT))


def _append(module: ModuleType, uri: str, appended: pa.Table) -> None:
    module.write_dataset(appended, uri, mode="append")


def _update(module: ModuleType, uri: str, _: int) -> None:
    module.dataset(uri).update({"value": "value + 1"}, "id % 50 = 9")


def _append_unindexed(uri: str) -> None:
    num_rows = lance_ops.dataset(uri).count_rows()
    lance_ops.write_dataset(rows(2 * num_rows, max(1, num_rows // 100)), uri, mode="append")


def _leave_garbage(uri: str) -> None:
    """Make ten versions with deletion vectors of their own, and one that replaces the data files."""
    for share in range(10, 20):
        lance_ops.dataset(uri).delete(f"id % 1000 = {share}")
    lance_ops.dataset(uri).optimize.compact_files()


ALL_VERBS = (
    Verb("open_latest", lambda module, uri, _: module.dataset(uri).version),
    Verb("open_numbered", lambda module, uri, version: module.dataset(uri, version=version).version, _a_version),
    Verb("open_schema", lambda module, uri, _: module.dataset(uri).schema),
    Verb("list_versions", lambda module, uri, _: module.dataset(uri).versions()),
    Verb("scan", _scan),
    Verb("filter", _filter),
    Verb("filter_one_column", _filter_one_column),
    Verb("row_by_btree", _row_by_btree, _a_key),
    Verb("range_by_btree", _range_by_btree, _a_range),
    Verb("take", _take, _positions),
    Verb("count", lambda module, uri, _: module.dataset(uri).count_rows()),
    Verb("offset", _offset, _near_the_end),
    Verb("append", _append, lambda module, uri, _: rows_to_append(uri), changes=True, answer=_all_rows),
    Verb("delete", lambda module, uri, _: module.dataset(uri).delete("id % 100 = 7"), changes=True, answer=_all_rows),
    Verb("update", _update, changes=True, answer=_all_rows),
    Verb(
        "optimize_indices",
        lambda module, uri, _: module.dataset(uri).optimize.optimize_indices(),
        changes=True,
        before=_append_unindexed,
        answer=_unindexed_rows,
    ),
    Verb(
        "btree_on_strings",
        lambda module, uri, _: module.dataset(uri).create_scalar_index("name", "BTREE"),
        changes=True,
        answer=_indices,
    ),
    Verb(
        "compact",
        lambda module, uri, _: module.dataset(uri).optimize.compact_files(),
        changes=True,
        answer=_all_rows,
    ),
    Verb(
        "clean_up",
        lambda module, uri, _: module.dataset(uri).cleanup_old_versions(timedelta(0)),
        changes=True,
        before=_leave_garbage,
        answer=_rows_and_versions,
    ),
)
