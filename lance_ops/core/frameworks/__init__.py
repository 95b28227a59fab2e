"""Types and data of other frameworks in Arrow's terms: models of pydantic, bfloat16, datasets of Hugging Face."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
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

_MODULES = {
    "BFloat16": "bfloat16",
    "BFloat16Array": "bfloat16",
    "BFloat16Type": "bfloat16",
    "FixedSizeListMixin": "pydantic_models",
    "MultiVector": "pydantic_models",
    "Vector": "pydantic_models",
    "bfloat16_array": "bfloat16",
    "check_is_one_dataset": "hugging_face",
    "from_floats": "bfloat16",
    "get_extras": "pydantic_models",
    "hugging_face_schema": "hugging_face",
    "hugging_face_tables": "hugging_face",
    "is_hugging_face_dataset": "hugging_face",
    "is_nullable": "pydantic_models",
    "pydantic_to_schema": "pydantic_models",
    "rows_of_models": "pydantic_models",
    "table_of_models": "pydantic_models",
    "to_floats": "bfloat16",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
