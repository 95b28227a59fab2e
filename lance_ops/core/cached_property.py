"""`functools.cached_property` without the lock that it has before Python 3.12.

The lock is shared by all instances of a class. A child that is forked while another thread computes a value would wait
for it forever. Without the lock, two threads may both compute a value, and the last one is kept.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["cached_property"]

T = TypeVar("T")

if TYPE_CHECKING or sys.version_info >= (3, 12):
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property[T]):  # noqa: N801 # the name of what it replaces
        """Compute a value on first use, and keep it in the instance."""

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
