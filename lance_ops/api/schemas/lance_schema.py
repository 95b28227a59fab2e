"""`LanceSchema` and `LanceField`: a schema with its fields' ids, under the reference's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import pyarrow as pa

from lance_ops.api.schemas.extension_types import shown_field, shown_schema
from lance_ops.core.errors import InvalidInput
from lance_ops.core.records import dataclass
from lance_ops.core.schema import PRIMARY_KEY, Field, Schema, split_path

__all__ = ["AnySchema", "LanceField", "LanceSchema", "schema_of"]

_CLUSTERING_KEY = "lance-schema:unenforced-clustering-key"
_POSITION = ":position"


@dataclass(frozen=True)
class LanceField:
    """A field of a schema."""

    field: Field

    def name(self) -> str:
        """Return its name."""
        return self.field.name

    def id(self) -> int:
        """Return the field's id, by which data files name it."""
        return self.field.id

    def children(self) -> list[LanceField]:
        """Return the child fields."""
        return [LanceField(child) for child in self.field.children]

    @property
    def metadata(self) -> dict[str, str]:
        """Its metadata."""
        return dict(self.field.metadata)

    def to_arrow(self) -> pa.Field:
        """Return the field as an Arrow field."""
        return shown_field(self.field)

    def is_unenforced_primary_key(self) -> bool:
        """Return whether the field is declared part of the primary key. Nothing enforces the key."""
        return self.field.unenforced_primary_key or _declared(self.field, PRIMARY_KEY)

    def unenforced_primary_key_position(self) -> int | None:
        """Return the field's position in the primary key, from 1; None if the order of the fields gives it."""
        return _position(self.field, PRIMARY_KEY)

    def is_unenforced_clustering_key(self) -> bool:
        """Return whether the field is declared part of the clustering key, by which rows are stored close together."""
        return _declared(self.field, _CLUSTERING_KEY)

    def unenforced_clustering_key_position(self) -> int | None:
        """Return the field's position in the clustering key, from 1; None if the order of the fields gives it."""
        return _position(self.field, _CLUSTERING_KEY)

    def __repr__(self) -> str:
        return f"LanceField({self.name()!r}, id={self.id()}, type={self.field.logical_type})"


@dataclass(frozen=True)
class LanceSchema:
    """A table's schema; `LanceOperation.Merge`, `Project` and `Overwrite` take one."""

    schema: Schema

    @staticmethod
    def from_pyarrow(schema: pa.Schema) -> LanceSchema:
        """Number the fields of an Arrow schema from 0, parents before their children."""
        return LanceSchema(Schema.from_arrow(schema))

    def to_pyarrow(self) -> pa.Schema:
        """Return the schema as an Arrow schema."""
        return shown_schema(self.schema)

    def fields(self) -> list[LanceField]:
        """Return the columns."""
        return [LanceField(column) for column in self.schema.fields]

    def field(self, name: str) -> LanceField | None:
        """Return the field of a name or a dotted path, or None. A name that contains a dot is written in backticks."""
        return _find(self.schema.fields, name, str)

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """Return the field of a name or path, or None. An exact match is preferred to one that differs in case."""
        return self.field(name) or _find(self.schema.fields, name, str.casefold)

    def unenforced_primary_key(self) -> list[LanceField]:
        """Return the fields of the declared primary key, in the key's order."""
        return self._key(LanceField.is_unenforced_primary_key, LanceField.unenforced_primary_key_position)

    def unenforced_clustering_key(self) -> list[LanceField]:
        """Return the fields of the declared clustering key, in the key's order."""
        return self._key(LanceField.is_unenforced_clustering_key, LanceField.unenforced_clustering_key_position)

    def _key(
        self, belongs: Callable[[LanceField], bool], position: Callable[[LanceField], int | None]
    ) -> list[LanceField]:
        fields = filter(belongs, map(LanceField, self.schema.walk()))
        return sorted(fields, key=lambda field: (position(field) or 0, field.id()))

    def __repr__(self) -> str:
        return f"LanceSchema({', '.join(map(repr, self.fields()))})"


AnySchema: TypeAlias = "LanceSchema | Schema | pa.Schema"
"""A schema as operations take it. The fields of an Arrow schema get ids from 0."""


def schema_of(given: AnySchema) -> Schema:
    """Return the internal schema for a `LanceSchema` or an Arrow schema."""
    if isinstance(given, LanceSchema):
        return given.schema
    return given if isinstance(given, Schema) else Schema.from_arrow(given)


def _find(columns: Iterable[Field], path: str, spelled: Callable[[str], str]) -> LanceField | None:
    known = tuple(columns)
    try:
        names = [path] if any(column.name == path for column in known) else split_path(path)
    except InvalidInput:
        return None
    found: Field | None = None
    for name in names:
        found = next((field for field in known if spelled(field.name) == spelled(name)), None)
        if found is None:
            return None
        known = found.children
    return None if found is None else LanceField(found)


def _declared(field: Field, key: str) -> bool:
    said = field.metadata.get(key, "").lower() in ("true", "1", "yes", "on", "y", "t")
    return said or _position(field, key) is not None


def _position(field: Field, key: str) -> int | None:
    said = field.metadata.get(key + _POSITION, "")
    return int(said) if said.isdecimal() else None
