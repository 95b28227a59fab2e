"""Whose rows to erase: those that match a filter, or that have one of some keys. Nothing here is stored readably."""

from __future__ import annotations

import hashlib
import hmac
import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace

import numpy as np
import pyarrow as pa

from lance_ops.changing import key_hashes
from lance_ops.core.errors import InvalidInput
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.maintenance.erasure.subject.key_join import HasKey, distinct_keys
from lance_ops.maintenance.erasure.subject.shared_table import SharedTable, shared
from lance_ops.reading import ROW_COLUMNS, UserFilter, bind_filter
from lance_ops.runners import Runner
from lance_ops.snapshot import Snapshot

__all__ = ["Subject"]


@dataclass(frozen=True)
class Subject:
    """A filter that matches the rows to erase, or their distinct keys, by the names of columns.

    The keys are in the memory of this process, and of each worker process of a runner; see `key_join`. Each task has
    the filter itself, but only the place of the keys; see `shared_table`.
    """

    matching: UserFilter | None = None
    keys: SharedTable | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of_keys(cls, keys: pa.Table) -> Subject:
        """Return the subject of the rows whose columns have the values of a row of `keys`; nulls match nothing.

        A key may occur several times. Raises `InvalidInput` if there is none, and `UnsupportedFeature` for a column of
        a type without equality.
        """
        if not keys.num_rows:
            raise InvalidInput("an erasure takes at least one key: name the rows to erase")
        return cls(keys=SharedTable(distinct_keys(keys)))

    @property
    def path(self) -> str | None:
        """The path of the file that holds the keys, encrypted; None if they are not stored."""
        return None if self.keys is None else self.keys.path

    @contextmanager
    def shared(self, main: Snapshot, runner: Runner) -> Iterator[Subject]:
        """Give the subject with keys that tasks of this runner read."""
        if self.keys is None:
            yield self
            return
        with shared(main, self.keys.table, runner) as keys:
            yield replace(self, keys=keys)

    def bind(self, snapshot: Snapshot) -> Predicate:
        """Return the condition on this version's columns; raise as `bind_filter` and `HasKey.bind` do.

        Raises `InvalidInput` for a filter on row ids, addresses or versions: the same number names another row in
        another version.
        """
        if self.keys is not None:
            return HasKey.bind(snapshot, self.keys)
        if self.matching is None or (isinstance(self.matching, str) and not self.matching.strip()):
            raise InvalidInput("the filter is empty: name the rows to erase")
        bound = bind_filter(snapshot, self.matching)
        by_place = sorted(set(bound.columns()) & set(ROW_COLUMNS))
        if by_place:
            raise InvalidInput(f"{by_place[0]} names other rows in other versions: name the rows by their values")
        return bound

    def digest(self, salt: str) -> str:
        """Return a keyed digest: whoever knows the subject can find out whether a record is about it."""
        return hmac.new(salt.encode(), self._digest_input(), hashlib.sha256).hexdigest()

    def _digest_input(self) -> bytes:
        """Return bytes that differ between subjects. The text of an expression omits most of a long list."""
        if self.keys is not None:
            return self.keys.derived(_bytes_of_keys)
        return self.matching.encode() if isinstance(self.matching, str) else pickle.dumps(self.matching, protocol=5)


def _bytes_of_keys(keys: pa.Table) -> bytes:
    """Return the names of the columns and the hashes of the keys, in an order that is not that of the source."""
    hashes, _ = key_hashes([column.combine_chunks() for column in keys.columns])
    return json.dumps(keys.schema.names).encode() + np.sort(hashes).tobytes()
