"""Classes with fields, whose `__init__` is compiled when the first value is made."""

from lance_ops.core.records.late_init import dataclass

__all__ = ["dataclass"]
