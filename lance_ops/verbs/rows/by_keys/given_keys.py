"""Read the keys that a verb is given as files or as a dataset, and find the rows that have one of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.api import LanceDataset, stored_files
from lance_ops.changing.merge_insert import by_tasks
from lance_ops.runners import InThreads, Runner
from lance_ops.verbs.rows.by_keys.keys_by_tasks import match_by_tasks
from lance_ops.verbs.rows.by_keys.matched_keys import ComingRows, FirstRows, MatchedKeys
from lance_ops.verbs.sources import (
    check_key_casts_of_file,
    distinct_keys,
    first_rows,
    fit_keys,
    key_names,
    no_keys,
    source_bytes,
    source_rows,
)

__all__ = ["counts_here", "match_keys", "read_keys", "staged_once"]

_ROWS = "rows of the source"
_LARGE_BYTES = 64 << 20
"""Tasks count the keys of files that are larger than this together, also in threads."""


def read_keys(data: LanceDataset, files: Sequence[str], on: tuple[str, ...]) -> pa.Table:
    """Return the distinct keys of raw files or of datasets (`….lance`), in the types of the table.

    Raises `InvalidInput` for a column that the table lacks, `UnsupportedFeature` for one in a struct, `SchemaMismatch`
    for a file that lacks one, and `RawFileRefused` for a file that cannot be read.
    """
    names = tuple(dict.fromkeys(on))
    return _counted_keys(data, files, names).select(list(names))


def counts_here(data: LanceDataset, runner: Runner, files: Sequence[str], on: Collection[str]) -> bool:
    """Return whether this process compares the keys itself, without tasks.

    It does so in threads, if the source has at most 64 MiB and no key is in a struct.
    """
    if not isinstance(runner, InThreads) or not set(on) <= set(data.schema.names):
        return False
    return sum(source_bytes(data, file) for file in files) <= _LARGE_BYTES


@contextmanager
def staged_once(
    data: LanceDataset, runner: Runner, files: Sequence[str], on: tuple[str, ...], columns: tuple[str, ...] = ()
) -> Iterator[by_tasks.SourceRows | None]:
    """Give the rows of the files, stored where tasks can read them; None if `counts_here`.

    Tasks copy raw files, or only their `columns`, to a dataset beneath the table's `data`, which is removed in the end.
    A check, the change that it allows and their attempts after conflicts read this copy.
    """
    if counts_here(data, runner, files, on):
        yield None
        return
    with stored_files(data.snapshot, files, runner, tuple(dict.fromkeys(columns)), keys=on) as source:
        yield source


def match_keys(
    data: LanceDataset,
    runner: Runner,
    files: Sequence[str],
    on: tuple[str, ...],
    unmatched_where: str | None = None,
    *,
    shows_source: bool = False,
    updates: bool = False,
    staged: by_tasks.SourceRows | None = None,
) -> MatchedKeys:
    """Count the rows that have one of the keys.

    With `unmatched_where`, a condition in SQL, also count the rows of the table that meet it and have none of the keys.
    With `shows_source`, also count the source's rows whose key no row has, and give some of its rows; with `updates`,
    also rows of it that would update others. If `counts_here`, this process reads the keys of both sides, and holds the
    source's distinct keys. Otherwise tasks read them: from `staged` if it is given. Without it, tasks first
    copy the raw files: all columns with `shows_source`, else only the key columns.
    """
    on = tuple(dict.fromkeys(on))
    if staged is not None:
        return match_by_tasks(data, runner, staged, on, unmatched_where, shows_source=shows_source)
    with staged_once(data, runner, files, on, () if shows_source else on) as source:
        if source is not None:
            return match_by_tasks(data, runner, source, on, unmatched_where, shows_source=shows_source)
    counted = _counted_keys(data, files, on)
    keys = counted.select(list(on))
    seen = [keys.slice(0, 0)]

    def matched() -> Iterator[pa.Table]:
        for batch in data.to_batches(list(on), with_row_address=True):
            found = pa.Table.from_batches([batch]).join(keys, list(on), join_type="left semi")
            if found.num_rows:
                seen.append(distinct_keys(found.select(list(on))).cast(keys.schema))
                yield found

    def unmatched(condition: str) -> Iterator[pa.Table]:
        for batch in data.to_batches(list(on), filter=condition, with_row_address=True):
            yield pa.Table.from_batches([batch]).join(keys, list(on), join_type="left anti")

    found = FirstRows.among(matched())
    others = FirstRows.among(iter(()) if unmatched_where is None else unmatched(unmatched_where))
    if not shows_source:
        return MatchedKeys(found, others)
    new = counted.join(distinct_keys(pa.concat_tables(seen)), list(on), join_type="left anti")
    is_shown = updates and found.count
    replacing = _rows_with_keys(data, files, found.rows(data, on)) if is_shown else keys.slice(0, 0)
    coming = ComingRows(_total(counted), _total(new), first_rows(data, files[0]), replacing)
    return MatchedKeys(found, others, coming)


def _rows_with_keys(data: LanceDataset, files: Sequence[str], keys: pa.Table) -> pa.Table:
    """Return the first rows of the source that have one of a few keys, as many as there are different keys."""
    on, found = keys.schema.names, list[pa.Table]()
    missing = distinct_keys(keys).num_rows
    for given in (rows for file in files for rows in source_rows(data, file)):
        places = given.select(on).cast(keys.schema).append_column(_ROWS, pa.array(np.arange(len(given))))
        hits = np.sort(places.join(keys, on, join_type="left semi")[_ROWS].to_numpy())
        if len(hits):
            found.append(given.take(hits[:missing]))
            missing -= len(found[-1])
        if not missing:
            break
    return pa.concat_tables(found, promote_options="permissive") if found else keys.slice(0, 0)


def _counted_keys(data: LanceDataset, files: Sequence[str], on: tuple[str, ...]) -> pa.Table:
    """Return the distinct keys, each with the number of rows that have it."""
    names = key_names(data, on)
    parts = [no_keys(data, on)]
    for file in files:
        check_key_casts_of_file(data, file, on)
        parts += [fit_keys(data, file, on, rows) for rows in source_rows(data, file, names)]
    keys: pa.Table = pa.concat_tables(parts).group_by(list(on)).aggregate([([], "count_all")])
    return keys.rename_columns([_ROWS if name == "count_all" else name for name in keys.schema.names])


def _total(counted: pa.Table) -> int:
    return int(pc.sum(counted[_ROWS]).as_py() or 0)
