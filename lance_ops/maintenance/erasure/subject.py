"""Whose rows to erase: those that match a filter, or that have one of some keys. Nothing here is ever stored."""

from __future__ import annotations

import hashlib
import hmac
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.core.errors import InvalidInput
from lance_ops.core.predicate import Predicate
from lance_ops.core.records import dataclass
from lance_ops.reading import ROW_COLUMNS, UserFilter, bind_filter
from lance_ops.snapshot import Snapshot

__all__ = ["MOST_KEYS", "Subject"]

MOST_KEYS = 10_000
"""Each task and each step of the proof searches for all keys."""


@dataclass(frozen=True)
class Subject:
    """A filter that matches the rows to erase."""

    matching: UserFilter

    @classmethod
    def of_keys(cls, keys: pa.Table) -> Subject:
        """Return the subject of the rows whose columns have the values of a row of `keys`; nulls match nothing.

        Raises `InvalidInput` for no key, and for more than 10,000.
        """
        if not keys.num_rows:
            raise InvalidInput("an erasure takes at least one key: name the rows to erase")
        if keys.num_rows > MOST_KEYS:
            raise InvalidInput(
                f"an erasure takes at most {MOST_KEYS:,} keys, not {keys.num_rows:,} or more: erase them in parts, or "
                "delete them by keys where no proof is needed"
            )
        names = keys.schema.names
        if len(names) == 1:
            return cls(pc.field(names[0]).isin(keys.column(0).combine_chunks().drop_null()))
        rows = [
            reduce(lambda left, right: left & right, (pc.field(name) == row[name] for name in names))
            for row in keys.drop_null().to_pylist()
        ]
        return cls(reduce(lambda left, right: left | right, rows))

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
        return hmac.new(salt.encode(), str(self.matching).encode(), hashlib.sha256).hexdigest()
