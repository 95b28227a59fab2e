"""Classes with fields, whose `__init__` is compiled when the first value is made; fast copies of objects."""

from lance_ops.core.records.fast_copy import changed_copy
from lance_ops.core.records.late_init import dataclass

__all__ = ["changed_copy", "dataclass"]
