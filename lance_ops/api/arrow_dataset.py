"""Make `LanceDataset` a `pyarrow.dataset.Dataset`, because engines push columns and filters down only to those.

pyarrow's datasets are C++ objects, and a Python subclass has none. Functions of pyarrow that bypass the Python methods
(`Scanner.from_dataset`, Acero) would read a null pointer. Therefore the C++ half is a union of one unreadable dataset,
and such a function raises an error.
"""

from __future__ import annotations

from typing import Any, NoReturn

import pyarrow as pa

from lance_ops.core.arrow import pads
from lance_ops.core.errors import UnsupportedFeature

__all__ = ["ArrowDataset"]

_NO_COLUMNS = pa.schema([])
_NOT_A_FILE = pa.py_buffer(b"A Lance dataset is read by its own methods.")
_UNREADABLE = pads.FileSystemDataset(
    [pads.IpcFileFormat().make_fragment(_NOT_A_FILE)], _NO_COLUMNS, pads.IpcFileFormat()
)


class ArrowDataset(pads.UnionDataset):  # type: ignore[misc]  # pyarrow ships no types
    """The methods of pyarrow's datasets that Lance datasets do not support."""

    def __init__(self) -> None:
        super().__init__(_NO_COLUMNS, [_UNREADABLE])

    @property
    def partition_expression(self) -> NoReturn:
        """There are no partitions."""
        raise UnsupportedFeature("partition_expression of a Lance dataset")

    @property
    def children(self) -> NoReturn:
        """There are no datasets in this one."""
        raise UnsupportedFeature("children of a Lance dataset")

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Raise `UnsupportedFeature`: a dataset is read in its own schema."""
        raise UnsupportedFeature("replace_schema of a Lance dataset (see alter_columns)")

    def filter(self, expression: Any) -> NoReturn:
        """Raise `UnsupportedFeature`: a filter is an argument of a scan."""
        raise UnsupportedFeature("filter() of a Lance dataset (pass filter= to scanner or to_table)")

    def sort_by(self, sorting: Any, **kwargs: Any) -> NoReturn:
        """Raise `UnsupportedFeature`: an order is an argument of a scan."""
        raise UnsupportedFeature("sort_by() of a Lance dataset (pass order_by= to scanner or to_table)")

    def join(
        self,
        right_dataset: Any,
        keys: Any,
        right_keys: Any = None,
        join_type: str = "left outer",
        left_suffix: str | None = None,
        right_suffix: str | None = None,
        coalesce_keys: bool = True,
        use_threads: bool = True,
    ) -> NoReturn:
        """Raise `UnsupportedFeature`: tables join."""
        raise UnsupportedFeature("join() of a Lance dataset (join what to_table returns, or use an engine)")

    def join_asof(
        self, right_dataset: Any, on: Any, by: Any, tolerance: Any, right_on: Any = None, right_by: Any = None
    ) -> NoReturn:
        """Raise `UnsupportedFeature`: tables join."""
        raise UnsupportedFeature("join_asof() of a Lance dataset (join what to_table returns, or use an engine)")
