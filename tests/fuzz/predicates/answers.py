"""What a library answers to a question: the rows that a filter selects, or the values of a computed column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_ops.errors import LanceOpsError

__all__ = ["SELECTED", "Answer", "Form", "ask_ours", "ask_theirs", "same_value", "take_ours", "without_signs"]

SELECTED = "selected"
"""The value of each row that a filter selects."""


class Form(StrEnum):
    """How an expression is asked about."""

    FILTER = "filter"
    COLUMN = "column"


@dataclass(frozen=True)
class Answer:
    """Each row's value by the row's id, with the type of a column, or the error that was raised.

    Instants and durations are in nanoseconds, so that those of different units compare.
    """

    values: Mapping[int, Any] = field(default_factory=dict)
    type: pa.DataType | None = None
    error: str = ""

    def same_as(self, other: Answer) -> bool:
        """Whether values and types are equal, or both raise; the libraries word their errors differently."""
        if self.error or other.error:
            return bool(self.error and other.error)
        return self.type == other.type and not self.differing(other, exactly=True)

    def differing(self, other: Answer, *, exactly: bool = False) -> set[int]:
        """Return the ids of the rows with different values; `exactly` tells 0.0 from -0.0, and 1 from 1.0."""
        ids = self.values.keys() | other.values.keys()
        return {each for each in ids if not same_value(self.values.get(each), other.values.get(each), exactly)}

    def among(self, ids: set[int]) -> Answer:
        """Return the answer for some of the rows."""
        return Answer({each: value for each, value in self.values.items() if each in ids}, self.type, self.error)

    def __str__(self) -> str:
        if self.error:
            return self.error
        if self.type is None:
            return f"{len(self.values)} rows: {list(self.values)}"
        return f"{self.type}: {dict(list(self.values.items())[:60])}"


def same_value(left: Any, right: Any, exactly: bool = False) -> bool:
    """Whether two values are equal. Every NaN equals every other."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right):
        return True
    return repr(left) == repr(right) or (not exactly and left is not None and left == right)


def ask_ours(dataset: Any, form: Form, sql: str, **options: Any) -> Answer:
    """Return our library's answer; an error that is not typed escapes."""
    try:
        return _answer(dataset.to_table(**_question(form, sql), **options), form)
    except LanceOpsError as error:
        return Answer(error=f"{type(error).__name__}: {error}")


def take_ours(dataset: Any, sql: str, positions: list[int]) -> Answer:
    """Return our library's values of a computed column for rows that a take names."""
    try:
        return _answer(dataset.take(positions, **_question(Form.COLUMN, sql)), Form.COLUMN)
    except LanceOpsError as error:
        return Answer(error=f"{type(error).__name__}: {error}")


def ask_theirs(dataset: Any, form: Form, sql: str, **options: Any) -> Answer:
    """Return pylance's answer, whatever it raises."""
    try:
        return _answer(dataset.to_table(**_question(form, sql), **options), form)
    except BaseException as error:  # a panic of the reference is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        return Answer(error=f"{type(error).__name__}: {str(error).splitlines()[0]}")


def without_signs(table: pa.Table) -> pa.Table:
    """Return a table whose zeros and NaNs have no sign."""
    return pa.table([_without_signs(column.combine_chunks()) for column in table.columns], schema=table.schema)


def _without_signs(values: Any) -> Any:
    if pa.types.is_floating(values.type):
        numbers = np.array(values.to_numpy(zero_copy_only=False))
        numbers[numbers == 0] = 0.0
        numbers[np.isnan(numbers)] = np.nan
        return pa.array(
            numbers.astype(values.type.to_pandas_dtype()), values.type, mask=pc.is_null(values).to_numpy(False)
        )
    return values


def _question(form: Form, sql: str) -> dict[str, Any]:
    return {"columns": ["id"], "filter": sql} if form is Form.FILTER else {"columns": {"id": "id", "x": sql}}


def _answer(rows: pa.Table, form: Form) -> Answer:
    ids = rows["id"].to_pylist()
    if form is Form.FILTER:
        return Answer(dict.fromkeys(sorted(ids), SELECTED))
    values = rows["x"]
    return Answer(dict(sorted(zip(ids, _plain(values), strict=True))), values.type)


def _plain(values: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ns", values.type.tz)).cast(pa.int64())
    elif pa.types.is_duration(values.type):
        values = values.cast(pa.duration("ns")).cast(pa.int64())
    elif pa.types.is_date64(values.type):
        values = values.cast(pa.date32())
    plain = values.to_pylist()
    return list(map(float, plain)) if pa.types.is_float16(values.type) and None not in plain else list(plain)
