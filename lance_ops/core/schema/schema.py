"""A Lance schema: a tree of fields with ids, and its conversion from and to Arrow.

A field's id never changes while the field exists; data files name their columns by these ids. The logical type is a
string (`int32`, `timestamp:us:UTC`, `fixed_size_list:float:8`, …; see `logical_types`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.records import dataclass
from lance_ops.core.schema.field import (
    NO_PARENT,
    Field,
    decode_metadata,
    encode_metadata,
    field_from_arrow,
    restore_extensions,
    user_schema,
    without_hash,
)
from lance_ops.core.schema.nesting import check_depth
from lance_ops.core.schema.plain_columns import PlainColumns

__all__ = ["Schema", "split_path"]


@dataclass(frozen=True)
class Schema:
    """The fields of a table or file, in order, with the schema's metadata."""

    fields: tuple[Field, ...]
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.fields)

    def __getstate__(self) -> dict[str, Any]:
        state = {"fields": self.fields} | without_hash(self.__dict__)
        state.pop("_plain_columns", None)
        return state

    @classmethod
    def of_plain_columns(cls, columns: PlainColumns, metadata: Mapping[str, str]) -> Schema:
        """Return a wide schema, whose fields are made when one of them is first asked for."""
        made = cls.__new__(cls)
        vars(made).update(_plain_columns=columns, metadata=metadata)
        return made

    @property
    def _unmade(self) -> PlainColumns | None:
        """The columns of a wide schema whose fields have not been made yet; None if it has its fields."""
        return None if "fields" in vars(self) else vars(self)["_plain_columns"]

    if not TYPE_CHECKING:  # a type checker that sees it would accept any name

        def __getattr__(self, name: str) -> Any:
            columns = vars(self).get("_plain_columns")
            if name != "fields" or columns is None:
                raise AttributeError(f"a Schema has no attribute {name!r}")
            return vars(self).setdefault("fields", columns.fields())  # another thread may have made them meanwhile

    @classmethod
    def from_arrow(cls, schema: pa.Schema, first_id: int = 0) -> Schema:
        """Return the schema for an Arrow schema; ids count in pre-order from `first_id`.

        Raises `UnsupportedFeature` for Arrow types that Lance has no logical type for, `SchemaMismatch` for two columns
        of one name, and `InvalidInput` for a column that nests too deeply.
        """
        check_depth(schema)
        names = schema.names
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise SchemaMismatch(f"columns named twice: {', '.join(twice)}; give every column its own name")
        counter = iter(range(first_id, 1 << 31))
        fields = tuple(field_from_arrow(column, NO_PARENT, counter) for column in schema)
        return cls(fields, decode_metadata(schema.metadata))

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema that users see: known extension types, JSON as text, blobs as their values."""
        if not self.names_extensions:
            return self._storage
        return user_schema(self.fields, self.metadata)

    def to_arrow_restored(self) -> pa.Schema:
        """Return the storage schema with extension types known to this process restored."""
        return restore_extensions(self._storage) if self.names_extensions else self._storage

    @cached_property
    def described(self) -> Schema:
        """The schema that scans return: blobs, at any depth, are descriptors or positions and sizes."""
        fields = tuple(column.described() for column in self.fields)
        return self if fields == self.fields else Schema(fields, self.metadata)

    def to_arrow_storage(self) -> pa.Schema:
        """Return the Arrow schema of the storage types; extension types are metadata."""
        return self._storage

    @cached_property
    def _storage(self) -> pa.Schema:
        metadata = encode_metadata(self.metadata)
        if (unmade := self._unmade) is not None:
            return unmade.storage_schema().with_metadata(metadata)
        return pa.schema([pa.field(column.name, *column.storage_kind) for column in self.fields], metadata)

    @cached_property
    def names_extensions(self) -> bool:
        if (unmade := self._unmade) is not None:
            return unmade.name_extensions
        return any(column.names_extensions for column in self.fields)

    @cached_property
    def has_dictionaries(self) -> bool:
        """Whether any field, at any depth, is a dictionary column."""
        return any(node.is_dictionary for node in self.walk())

    @property
    def names(self) -> list[str]:
        """Names of the top-level columns, in order."""
        return [column.name for column in self.fields]

    @cached_property
    def ids(self) -> frozenset[int]:
        """The ids of all fields, at any depth."""
        return frozenset([node.id for node in self.walk()])

    @property
    def max_field_id(self) -> int:
        """The highest id in use, -1 for a schema without fields."""
        return max((node.id for node in self.walk()), default=-1)

    @cached_property
    def num_leaves(self) -> int:
        """Number of fields, at any depth, that have no children."""
        return sum(not node.children for node in self.walk())

    @cached_property
    def holds_blobs_v2(self) -> bool:
        """Whether a field, at any depth, is `lance.blob.v2`."""
        return any(column.holds_blobs_v2 for column in self.fields)

    def walk(self) -> Iterator[Field]:
        """Yield every field, parents before their children."""
        for column in self.fields:
            yield from column.walk()

    def by_id(self, field_id: int) -> Field | None:
        """Return the field of that id."""
        return self._by_id.get(field_id)

    def field(self, path: str) -> Field:
        """Return the field at a path: a column's exact name, or names joined by dots (back-quoted if they hold one).

        Raises `InvalidInput` naming the existing columns.
        """
        return self.lineage(path)[-1]

    def lineage(self, path: str) -> list[Field]:
        """Return the fields from the top-level column to the field at a path; see `field`."""
        exact = self._by_name.get(path)
        if exact is not None:
            return [exact]
        lineage: list[Field] = []
        siblings = self.fields
        for name in split_path(path):
            node = next((column for column in siblings if column.name == name), None)
            if node is None:
                known = ", ".join(column.name for column in siblings) or "none"
                raise InvalidInput(f"no column {path!r}: {name!r} is not among {known}")
            lineage.append(node)
            siblings = node.children
        return lineage

    def single_valued_lineage(self, path: str, what: str) -> list[Field]:
        """Return the lineage of a field with one value in a row: no field around it is a list or a map.

        Raises `InvalidInput` for any other field; `what` begins its message. See `lineage`.
        """
        lineage = self.lineage(path)
        repeated = next((each for each in lineage[:-1] if not pa.types.is_struct(each.arrow_type)), None)
        if repeated is not None:
            raise InvalidInput(f"{what} {path!r}: {repeated.name!r} has several values in a row")
        return lineage

    def path_of(self, field_id: int) -> str:
        """Return the dotted path of a field, a name that holds a dot back-quoted."""
        names: list[str] = []
        node = self._by_id.get(field_id)
        while node is not None:
            names.append(f"`{node.name}`" if "." in node.name else node.name)
            node = self._by_id.get(node.parent_id)
        return ".".join(reversed(names))

    def project(self, columns: Iterable[str]) -> Schema:
        """Keep the named columns or nested fields, in the order asked for, with their ids.

        Two paths into one struct give one column with both children, in the schema's order.
        """
        kept: dict[int, set[int]] = {}
        for path in columns:
            lineage = self.lineage(path)
            wanted = kept.setdefault(lineage[0].id, set())
            wanted.update(node.id for node in lineage)
            wanted.update(node.id for node in lineage[-1].walk())
        return Schema(tuple(_prune(self._by_id[root], ids) for root, ids in kept.items()), self.metadata)

    @cached_property
    def _by_id(self) -> dict[int, Field]:
        return {node.id: node for node in self.walk() if node.id != NO_PARENT}

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        """The columns by name; the first one of those that share a name."""
        return {column.name: column for column in reversed(self.fields)}


def split_path(path: str) -> list[str]:
    """Split a dotted path into names; a back-quoted name may hold dots.

    Raises `InvalidInput` for an empty name or an unclosed quote.
    """
    names: list[str] = []
    name, quoted = "", False
    for char in path:
        if char == "`":
            quoted = not quoted
        elif char == "." and not quoted:
            names.append(name)
            name = ""
        else:
            name += char
    names.append(name)
    if quoted or not all(names):
        raise InvalidInput(f"column path {path!r} has an empty name or an unclosed back quote")
    return names


def _prune(node: Field, keep: set[int]) -> Field:
    children = tuple(_prune(child, keep) for child in node.children if child.id in keep)
    return node if children == node.children else replace(node, children=children)
