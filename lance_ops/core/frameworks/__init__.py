"""Types of other frameworks in Arrow's terms: models of pydantic, and numbers of the type bfloat16."""

from lance_ops.core.frameworks.bfloat16 import (
    BFloat16,
    BFloat16Array,
    BFloat16Type,
    bfloat16_array,
    from_floats,
    to_floats,
)
from lance_ops.core.frameworks.pydantic_models import (
    FixedSizeListMixin,
    MultiVector,
    Vector,
    get_extras,
    is_nullable,
    pydantic_to_schema,
    table_of_models,
)

__all__ = [
    "BFloat16",
    "BFloat16Array",
    "BFloat16Type",
    "FixedSizeListMixin",
    "MultiVector",
    "Vector",
    "bfloat16_array",
    "from_floats",
    "get_extras",
    "is_nullable",
    "pydantic_to_schema",
    "table_of_models",
    "to_floats",
]
