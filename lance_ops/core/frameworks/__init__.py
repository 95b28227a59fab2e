"""Types and data of other frameworks in Arrow's terms: models of pydantic, bfloat16, datasets of Hugging Face."""

from lance_ops.core.frameworks.bfloat16 import (
    BFloat16,
    BFloat16Array,
    BFloat16Type,
    bfloat16_array,
    from_floats,
    to_floats,
)
from lance_ops.core.frameworks.hugging_face import (
    check_is_one_dataset,
    hugging_face_schema,
    hugging_face_tables,
    is_hugging_face_dataset,
)
from lance_ops.core.frameworks.pydantic_models import (
    FixedSizeListMixin,
    MultiVector,
    Vector,
    get_extras,
    is_nullable,
    pydantic_to_schema,
    rows_of_models,
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
    "check_is_one_dataset",
    "from_floats",
    "get_extras",
    "hugging_face_schema",
    "hugging_face_tables",
    "is_hugging_face_dataset",
    "is_nullable",
    "pydantic_to_schema",
    "rows_of_models",
    "table_of_models",
    "to_floats",
]
