"""The methods of `LanceDataset` that change rows. Each makes one commit, and is planned again after a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from string import ascii_uppercase
from typing import Any, Self, TypedDict, TypeVar

import pyarrow as pa

from lance_ops import changing, refs, transactions, writing
from lance_ops.api.arrow_input import keys_with_names, reader_of
from lance_ops.api.file_options import fragment_limits
from lance_ops.api.lance_dataset.merge_insert import MergeInsertBuilder
from lance_ops.api.merge_source import merge_source
from lance_ops.api.scanning import Filter
from lance_ops.api.version_handle import Handle
from lance_ops.api.write_destination import check_mode, write_onto
from lance_ops.api.write_version import write_version
from lance_ops.changing import merge_insert
from lance_ops.core.errors import InvalidInput
from lance_ops.core.frameworks import table_of_models
from lance_ops.reading import bind_filter
from lance_ops.runners import InThreads, Runner
from lance_ops.snapshot import Snapshot

__all__ = ["DeleteResult", "RowChanges", "UpdateResult"]

R = TypeVar("R")


class DeleteResult(TypedDict):
    """The result of `delete`."""

    num_deleted_rows: int


class UpdateResult(TypedDict):
    """The result of `update`."""

    num_rows_updated: int


class RowChanges(Handle):
    """Deletes, updates, inserts and merges. Each moves the handle to the version it made."""

    def delete(
        self,
        predicate: str | Filter,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = timedelta(seconds=30),
        transaction_properties: Mapping[str, str] | None = None,
        runner: Runner | None = None,
    ) -> DeleteResult:
        """Delete the rows for which the predicate is true.

        If no row matches, nothing is committed. After a conflict, the rows are searched again on the newest version.
        Raises `TooManyConcurrentWriters` when `conflict_retries` or `retry_timeout` is used up.
        """
        if predicate is None:
            raise InvalidInput("delete needs a predicate; to delete every row say so: delete('true')")
        parsed = bind_filter(self._snapshot, predicate)
        snapshot, num_deleted = self._retried(
            lambda current: changing.delete(current, parsed, runner or InThreads(), transaction_properties),
            conflict_retries,
            retry_timeout,
            is_long=runner is not None,
        )
        self._committed(snapshot)
        return DeleteResult(num_deleted_rows=num_deleted)

    def delete_by_keys(
        self,
        keys: Any,
        on: str | Iterable[str],
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = timedelta(seconds=30),
        transaction_properties: Mapping[str, str] | None = None,
        runner: Runner | None = None,
    ) -> DeleteResult:
        """Delete the rows whose columns `on` have the values of a row of `keys`, which is data as for `merge_insert`.

        For one column, `keys` may also be a list or an array of its values. A list of texts names raw files: pass such
        keys as `pa.array(…)`.
        This is a join: millions of keys cost one pass over the key columns. Other columns of `keys` are not read, a key
        may repeat, and one with a null in it matches nothing. Conflicts are retried as by `delete`.
        """
        names = (on,) if isinstance(on, str) else tuple(on)
        if not names:
            raise InvalidInput("delete_by_keys needs the columns to match on")
        deletes = merge_insert.MergeRequest(names, merge_insert.WhenMatched.DELETE)
        merge_insert.merge_keys(self._snapshot, deletes)  # so that a mistake is raised before any work
        used = runner or InThreads()
        with merge_source(self._snapshot, keys_with_names(keys, names), None, runner, names) as source:
            snapshot, num_deleted = self._retried(
                lambda current: changing.delete_by_keys(current, names, source, used, transaction_properties),
                conflict_retries,
                retry_timeout,
                is_long=runner is not None or not isinstance(source, pa.Table),
            )
        self._committed(snapshot)
        return DeleteResult(num_deleted_rows=num_deleted)

    def duplicates(
        self,
        on: str | Iterable[str],
        filter: Filter = None,
        *,
        examples: int = 10,
        runner: Runner | None = None,
    ) -> changing.Duplicates:
        """Count the rows that have the same values of the columns `on` as another row; show keys of the most frequent.

        Keys are equal as in `merge_insert`: 0.0 equals -0.0, and a key with a null in it equals no other. Tasks of the
        runner read the keys and compare them; the driver gets numbers and the examples.
        """
        names = (on,) if isinstance(on, str) else tuple(on)
        predicate = None if filter is None else bind_filter(self._snapshot, filter)
        return changing.find_duplicates(self._snapshot, names, predicate, runner or InThreads(), examples)

    def delete_duplicates(
        self,
        on: str | Iterable[str],
        keep: str = "first",
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = timedelta(seconds=30),
        transaction_properties: Mapping[str, str] | None = None,
        runner: Runner | None = None,
    ) -> DeleteResult:
        """Delete the rows that `duplicates` counts, but the `first` or the `last` of each key, in the order of a scan.

        Nothing is committed if there are none. Conflicts are retried as by `delete`. Calls that keep different rows
        must not run at once: together they could leave none.
        """
        if keep not in (each.value for each in changing.Keep):
            raise InvalidInput(f"keep is 'first' or 'last', not {keep!r}")
        names = (on,) if isinstance(on, str) else tuple(on)
        snapshot, num_deleted = self._retried(
            lambda current: changing.delete_duplicates(
                current, names, changing.Keep(keep), runner or InThreads(), transaction_properties
            ),
            conflict_retries,
            retry_timeout,
            is_long=True,
        )
        self._committed(snapshot)
        return DeleteResult(num_deleted_rows=num_deleted)

    def update(
        self,
        updates: Mapping[str, str],
        where: Filter = None,
        conflict_retries: int = 10,
        retry_timeout: timedelta = timedelta(seconds=30),
        data_storage_version: str | None = None,
        *,
        transaction_properties: Mapping[str, str] | None = None,
        runner: Runner | None = None,
    ) -> UpdateResult:
        """Set columns to the values of SQL expressions over the old values, in the rows for which `where` is true.

        If no row matches, nothing is committed. Conflicts are retried as by `delete`.
        """

        def attempt(current: Snapshot) -> tuple[Snapshot, int]:
            predicate = None if where is None else bind_filter(current, where)
            assignments = changing.bind_updates(current, updates)
            used = runner or InThreads()
            return changing.update(current, assignments, predicate, used, transaction_properties, data_storage_version)

        is_long = runner is not None
        snapshot, num_updated = self._retried(attempt, conflict_retries, retry_timeout, is_long=is_long)
        self._committed(snapshot)
        return UpdateResult(num_rows_updated=num_updated)

    @classmethod
    def from_pydantic_model(
        cls,
        model_class: type[Any],
        data: Any,
        uri: str | PathLike[str] | None = None,
        mode: str = "create",
        **kwargs: Any,
    ) -> Self:
        """Write a list of instances of a model of pydantic as a dataset, and return it.

        The schema is `lance_ops.pydantic.pydantic_to_schema` of the model. The URI is the model's name in snake case
        unless given. The other arguments and errors are those of `write_dataset`. Raises `TypeError` for data that is
        no list of instances of exactly this model, and `InvalidInput` for an empty one.
        """
        table = table_of_models(model_class, data)
        place = _snake_case(model_class.__name__) if uri is None else uri
        return cls.of(write_version(table, place, mode=mode, **kwargs))

    def insert(
        self,
        data: Any,
        *,
        mode: str = "append",
        schema: pa.Schema | None = None,
        max_rows_per_file: int = writing.MAX_ROWS_PER_FILE,
        max_rows_per_group: int = 1024,
        max_bytes_per_file: int = writing.MAX_BYTES_PER_FILE,
        data_cache_bytes: int | None = None,
        max_page_bytes: int | None = None,
        progress: writing.FragmentWriteProgress | None = None,
        data_storage_version: str | None = None,
        target_bases: Sequence[str] | None = None,
        target_all_bases: bool | None = None,
        external_blob_mode: str = "reference",
        allow_external_blob_outside_bases: bool = False,
        blob_pack_file_size_threshold: int | None = None,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Append rows or overwrite the table, as `write_dataset` does, and move the handle to the version made."""
        check_mode(mode, self.uri)
        reader = reader_of(data, schema)
        limits = fragment_limits(
            max_rows_per_file,
            max_bytes_per_file,
            external_blob_mode,
            allow_external_blob_outside_bases,
            data_cache_bytes=data_cache_bytes,
            max_page_bytes=max_page_bytes,
            blob_pack_file_size_threshold=blob_pack_file_size_threshold,
            progress=progress,
        )
        properties = transactions.with_commit_message(transaction_properties, commit_message)
        current = self._snapshot.latest()
        self._committed(
            write_onto(current, reader, mode, limits, properties, target_bases, target_all_bases, data_storage_version)
        )

    def truncate_table(self, *, transaction_properties: Mapping[str, str] | None = None) -> None:
        """Delete every row and keep the schema. Nothing is committed if the table has no rows."""

        def attempt(current: Snapshot) -> Snapshot:
            return changing.truncate(current, transaction_properties)

        self._committed(self._retried(attempt, 10, timedelta(seconds=30), is_long=False))

    def merge_insert(self, on: str | Iterable[str] | None = None) -> MergeInsertBuilder:
        """Return a builder of a merge by key: rows updated, inserted and deleted in one commit.

        Without `on`, the table's declared primary key is the key. See `MergeInsertBuilder`.
        """
        return MergeInsertBuilder(self, on)

    def _retried(
        self, attempt: Callable[[Snapshot], R], retries: int, timeout: timedelta | None, *, is_long: bool
    ) -> R:
        """Attempt a change again after conflicts; a long one keeps the version that it was planned on."""
        kept = refs.keeping_version(attempt, self._snapshot) if is_long else attempt
        return writing.retry_conflicts(self._snapshot, kept, retries, timeout)


def _snake_case(name: str) -> str:
    """Return the name of a class as the reference names its dataset: `FlightLog` becomes `flight_log`."""
    return "".join(f"_{each}" if at and each in ascii_uppercase else each for at, each in enumerate(name)).lower()
