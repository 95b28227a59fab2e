"""The source's keys, ready to be asked which of them rows of the target have.

Every distinct key has a code, a small number. A key with a null in it has none: nulls equal nothing, as in SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lance_ops.core.errors import UnsupportedFeature

__all__ = ["NO_CODE", "SourceKeys"]

Codes = npt.NDArray[np.int64]

NO_CODE = -1


class SourceKeys:
    """Keys of one or more columns. Pickled with its columns: as large as the source's keys."""

    def __init__(self, columns: Sequence[pa.Array], names: Sequence[str]) -> None:
        """Take the key columns, one array each; raise `UnsupportedFeature` for a type that has no equality here."""
        for column, name in zip(columns, names, strict=True):
            if pt.is_nested(column.type) or pt.is_float16(column.type):
                raise UnsupportedFeature(f"a merge on values of type {column.type}", f"column {name!r}")
        columns = [_one_form(column) for column in columns]
        self._values = [pc.unique(column.drop_null()) for column in columns]
        self._pairs: list[Codes] = []
        codes = _index_in(columns[0], self._values[0])
        for column, values in zip(columns[1:], self._values[1:], strict=True):
            combined = _combine(codes, _index_in(column, values), len(values))
            self._pairs.append(np.unique(combined[combined != NO_CODE]))
            codes = _rank(combined, self._pairs[-1])
        self.codes = codes
        """The code of each source row."""
        self.num_codes = len(self._pairs[-1] if self._pairs else self._values[0])
        """How many distinct keys there are."""
        order = np.argsort(codes, kind="stable")
        self._rows = order[np.searchsorted(codes[order], 0) :]
        self._starts = np.searchsorted(codes[self._rows], np.arange(self.num_codes + 1))

    @property
    def values(self) -> pa.Array:
        """The distinct values of the first key column."""
        return self._values[0]

    def look_up(self, columns: Sequence[pa.Array]) -> Codes:
        """Return the code of each row's key, `NO_CODE` where the source has no such key."""
        columns = [_one_form(column) for column in columns]
        codes = _index_in(columns[0], self._values[0])
        rest = zip(columns[1:], self._values[1:], self._pairs, strict=True)
        for column, values, pairs in rest:
            codes = _rank(_combine(codes, _index_in(column, values), len(values)), pairs)
        return codes

    def rows_of(self, codes: Codes) -> tuple[Codes, Codes]:
        """Return pairs (place in `codes`, source row): as many for a code as the source has rows of that key."""
        counts = self._starts[codes + 1] - self._starts[codes]
        places = np.repeat(np.arange(len(codes)), counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return places, self._rows[self._starts[codes][places] + within]

    def last_row_of(self, codes: Codes) -> Codes:
        """Return the last source row of each key."""
        last: Codes = self._rows[self._starts[codes + 1] - 1]
        return last


def _one_form(column: pa.Array) -> pa.Array:
    """Write equal floats with equal bits: hashes tell 0.0 from -0.0, and one NaN from another."""
    if not pt.is_floating(column.type):
        return column
    nan = pa.scalar(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, pa.scalar(0.0, column.type)))


def _index_in(column: pa.Array, values: pa.Array) -> Codes:
    found = pc.index_in(column, value_set=values, skip_nulls=True)
    codes: Codes = found.fill_null(NO_CODE).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _combine(left: Codes, right: Codes, num_right: int) -> Codes:
    return np.where((left == NO_CODE) | (right == NO_CODE), NO_CODE, left * num_right + right)


def _rank(combined: Codes, known: Codes) -> Codes:
    if not len(known):
        return np.full(len(combined), NO_CODE)
    places = np.minimum(np.searchsorted(known, combined), len(known) - 1)
    return np.where(known[places] == combined, places, NO_CODE)
