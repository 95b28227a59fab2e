"""The reference's `lance.pydantic`: schemas of tables from models of pydantic."""

from lance_ops.core.frameworks import (
    FixedSizeListMixin,
    MultiVector,
    Vector,
    get_extras,
    is_nullable,
    pydantic_to_schema,
)

__all__ = ["FixedSizeListMixin", "MultiVector", "Vector", "get_extras", "is_nullable", "pydantic_to_schema"]
