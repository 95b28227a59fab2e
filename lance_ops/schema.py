"""The reference's `lance.schema`: schemas with the ids of their fields."""

from lance_ops.api import LanceField, LanceSchema

__all__ = ["LanceField", "LanceSchema"]
