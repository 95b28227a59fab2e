"""Types of other frameworks in Arrow's terms: models of pydantic, and numbers of the type bfloat16."""

from lance_ops.core.frameworks.bfloat16 import (
    BFloat16,
    BFloat16Array,
    BFloat16Type,
    bfloat16_array,
    from_floats,
    to_floats,
)

__all__ = [
    "BFloat16",
    "BFloat16Array",
    "BFloat16Type",
    "bfloat16_array",
    "from_floats",
    "to_floats",
]
