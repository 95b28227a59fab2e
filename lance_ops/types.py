"""The reference's `lance.types`: `ReaderLike`, an alias for the data that writers take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.dataset as pads

__all__ = ["ReaderLike"]

ReaderLike: TypeAlias = (
    pa.Table
    | pa.RecordBatch
    | pa.RecordBatchReader
    | pads.Dataset
    | pads.Scanner
    | Mapping[str, Any]
    | Sequence[Mapping[str, Any]]
    | Iterable[pa.RecordBatch]
)
"""Data that `write_dataset` and the other functions that write rows take.

They also take what a type checker sees only where its package is installed: data frames of pandas and Polars, datasets
of Hugging Face, models of pydantic, and anything with `__arrow_c_stream__`.
"""
