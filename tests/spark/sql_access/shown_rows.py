"""What a table in the lake stores, and what a statement returns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lance_ops.api import LanceDataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["first", "stored"]


def stored(lake: Path, name: str = "numbers") -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in LanceDataset(lake / f"{name}.lance").to_table().to_pylist())


def first(frame: DataFrame) -> dict[str, Any]:
    return frame.collect()[0].asDict(recursive=True)
