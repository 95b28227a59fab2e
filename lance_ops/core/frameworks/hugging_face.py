"""Read datasets of Hugging Face as Arrow tables. This module never imports `datasets`: its caller has done so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lance_ops.core.errors import InvalidInput, WrongType

__all__ = ["check_is_one_dataset", "hugging_face_schema", "hugging_face_tables", "is_hugging_face_dataset"]

_ROWS_AT_ONCE = 1024


def is_hugging_face_dataset(data: Any) -> bool:
    """Return whether the data is a `datasets.Dataset` or a `datasets.IterableDataset`."""
    return _is_any(data, "Dataset", "IterableDataset")


def check_is_one_dataset(data: Any) -> None:
    """Raise `WrongType` for a dictionary of datasets, which would need one table for each."""
    if _is_any(data, "DatasetDict", "IterableDatasetDict"):
        splits = ", ".join(map(repr, data))
        raise WrongType(f"a {type(data).__name__} holds several datasets ({splits}): write each to a table of its own")


def hugging_face_schema(data: Any) -> pa.Schema:
    """Return the Arrow schema of the features, with their description in the metadata.

    Raises `InvalidInput` for an iterable dataset that does not know its features.
    """
    if data.features is None:
        raise InvalidInput("the features of this IterableDataset are not known before it is read: pass schema=…")
    schema: pa.Schema = data.features.arrow_schema
    return schema


def hugging_face_tables(data: Any) -> Iterator[pa.Table]:
    """Yield the rows as they are stored: nothing is decoded, and images stay structs of bytes and a path.

    Rows that a filter, a selection or a shuffle of the dataset left out are left out here too.
    """
    yield from data.with_format("arrow").iter(batch_size=_ROWS_AT_ONCE)


def _is_any(data: Any, *names: str) -> bool:
    package = sys.modules.get("datasets")
    kinds = tuple(getattr(package, name) for name in names if hasattr(package, name))
    return isinstance(data, kinds)
