"""Whose rows to erase: those that match a filter, or that have one of some keys. Nothing here is ever stored."""

from __future__ import annotations

import hashlib
import hmac
import json
import pickle
from dataclasses import field
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import InvalidInput
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_COLUMNS, UserFilter, bind_filter
from lance_ops.snapshot import Snapshot

__all__ = ["Subject", "max_num_keys"]


def max_num_keys(num_columns: int) -> int:
    """Return the largest number of keys that an erasure takes, by the number of their columns.

    Keys of one column travel as one array, and each task has all of them. Keys of several columns become a condition
    for each key.
    """
    return 1_000_000 if num_columns == 1 else 10_000


@dataclass(frozen=True)
class Subject:
    """A filter that matches the rows to erase, and the keys that it was made of."""

    matching: UserFilter
    keys: pa.Table | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of_keys(cls, keys: pa.Table) -> Subject:
        """Return the subject of the rows whose columns have the values of a row of `keys`; nulls match nothing.

        Raises `InvalidInput` for no key, and for more than `max_num_keys`.
        """
        if not keys.num_rows:
            raise InvalidInput("an erasure takes at least one key: name the rows to erase")
        names, most = keys.schema.names, max_num_keys(keys.num_columns)
        if keys.num_rows > most:
            columns = "one column" if len(names) == 1 else "several columns"
            raise InvalidInput(
                f"an erasure takes at most {most:,} keys of {columns}, not {keys.num_rows:,} or more: erase them in "
                "parts, or delete them by keys where no proof is needed"
            )
        if len(names) == 1:
            return cls(pc.field(names[0]).isin(keys.column(0).combine_chunks().drop_null()), keys)
        rows = [
            reduce(lambda left, right: left & right, (pc.field(name) == row[name] for name in names))
            for row in keys.drop_null().to_pylist()
        ]
        return cls(reduce(lambda left, right: left | right, rows), keys)

    def bind(self, snapshot: Snapshot) -> Predicate:
        """Return the filter on this version's columns; raise as `bind_filter` does.

        Raises `InvalidInput` for a filter on row ids, addresses or versions: the same number names another row in
        another version.
        """
        if isinstance(self.matching, str) and not self.matching.strip():
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
            return json.dumps(self.keys.to_pydict(), default=str).encode()
        return self.matching.encode() if isinstance(self.matching, str) else pickle.dumps(self.matching, protocol=5)
