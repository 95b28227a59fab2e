"""Lance fields and schemas, and the Arrow schema they stand for.

A Lance schema is a tree of fields, each with an id that never changes while the field lives: data files name their
columns by these ids. The logical type is a string (`int32`, `timestamp:us:UTC`, `fixed_size_list:float:8`, …; see
`logical_types`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from lance_ops.core.arrow import EXTENSION_METADATA, EXTENSION_NAME, serialized_extension
from lance_ops.core.blob_types import (
    BLOB_KEY,
    BLOB_V2,
    DESCRIPTOR,
    DESCRIPTOR_METADATA,
    POSITION_AND_SIZE,
    check_blob_v2,
)
from lance_ops.core.errors import InvalidInput, SchemaMismatch
from lance_ops.core.json import ARROW_JSON, JSON_MARK, holds_json, text_schema
from lance_ops.core.schema.logical_types import arrow_type_of, child_fields_of, logical_type_of

__all__ = ["NO_PARENT", "Dictionary", "Field", "Schema", "split_path"]

NO_PARENT = -1


@dataclass(frozen=True)
class Dictionary:
    """The values of a dictionary column of file version 0.1, which stand apart from its keys.

    `offset` is where the file that holds the field has them, `length` their number; `values` is None until they are
    read. In fields of later versions there are none, and both numbers are 0.
    """

    offset: int = field(compare=False)
    length: int
    values: pa.Array | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Field:
    """One node of a schema's tree.

    `metadata` values are bytes on the wire; they are held as text, undecodable bytes as surrogate escapes, so that
    nothing is lost. `dictionary` is for file version 0.1. `unknown` holds wire fields this library does not know, to
    be written back as they came.
    """

    id: int
    parent_id: int
    name: str
    logical_type: str
    nullable: bool = True
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    children: tuple[Field, ...] = ()
    unenforced_primary_key: bool = False
    extension_name: str = ""
    dictionary: Dictionary | None = None
    unknown: bytes = b""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.id, self.parent_id, self.name, self.logical_type, self.nullable, self.children))

    def __getstate__(self) -> dict[str, Any]:
        return _without_hash(self.__dict__)

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the values in files: extension types as their storage, blobs of version 2 described."""
        if self.is_blob_v2:
            return DESCRIPTOR
        return arrow_type_of(self.logical_type, [child.storage_field for child in self.children], self.name)

    @cached_property
    def storage_field(self) -> pa.Field:
        """The Arrow field of `arrow_type`, whose extension type, if any, is left as metadata."""
        metadata = DESCRIPTOR_METADATA if self.is_blob_v2 else self.metadata
        nullable = self.nullable or pa.types.is_null(self.arrow_type)  # Arrow knows no others
        return pa.field(self.name, self.arrow_type, nullable, _encode_metadata(metadata))

    @property
    def is_blob_v2(self) -> bool:
        """Whether the values are blobs that files describe by kind, position, size, id and URI."""
        return self.logical_type == "struct" and BLOB_V2 in (self.extension_name, self.metadata.get(EXTENSION_NAME))

    @property
    def is_blob_v1(self) -> bool:
        """Whether the values are blobs in their data file."""
        return self.logical_type in ("binary", "large_binary") and self.metadata.get(BLOB_KEY, "").lower() == "true"

    @cached_property
    def holds_json(self) -> bool:
        """Whether the values are JSON or have some below them."""
        return holds_json(self.storage_field)

    @cached_property
    def holds_blobs_v2(self) -> bool:
        """Whether the field is `lance.blob.v2` or has one below it."""
        return self.is_blob_v2 or any(child.holds_blobs_v2 for child in self.children)

    @property
    def is_dictionary(self) -> bool:
        """Whether files hold keys, and the values apart from them."""
        return self.logical_type.startswith("dict:")

    def stored(self) -> Field:
        """Return the field as a data file's own schema has it: blobs of version 2, at any depth, as descriptors."""
        if self.is_blob_v2:
            return replace(self._struct_of(DESCRIPTOR, NO_PARENT), metadata=DESCRIPTOR_METADATA, extension_name="")
        children = tuple(child.stored() for child in self.children)
        return self if children == self.children else replace(self, children=children)

    def described(self) -> Field:
        """Return the field as scans show it: blobs, at any depth, as what says where they are."""
        if self.is_blob_v2:
            return replace(self._struct_of(DESCRIPTOR, self.id), metadata=DESCRIPTOR_METADATA, extension_name="")
        if self.is_blob_v1:
            return self._struct_of(POSITION_AND_SIZE, self.id)
        children = tuple(child.described() for child in self.children)
        return self if children == self.children else replace(self, children=children)

    def to_arrow(self) -> pa.Field:
        """Return the Arrow field as a user sees it: see `Schema.to_arrow`."""
        return Schema((self,)).to_arrow().field(0) if self._has_extensions else self.storage_field

    @cached_property
    def _has_extensions(self) -> bool:
        # which types are known may change; whether a field names one does not
        return EXTENSION_NAME in self.metadata or any(child._has_extensions for child in self.children)

    def _struct_of(self, arrow_type: pa.StructType, parent_id: int) -> Field:
        """Return the field as a struct whose children have no ids: they are nobody's columns."""
        children = tuple(
            Field(NO_PARENT, parent_id, child.name, logical_type_of(child.type, child.name), child.nullable)
            for child in arrow_type
        )
        return replace(self, logical_type="struct", children=children)

    def _logical_field(self) -> pa.Field:
        children = [child._logical_field() for child in self.children]
        arrow_type = arrow_type_of(self.logical_type, children, self.name)
        return pa.field(self.name, arrow_type, self.nullable, _encode_metadata(self.metadata))

    def walk(self) -> Iterator[Field]:
        """Yield this field and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Field]:
        """Yield the fields below (or this one) that have no children."""
        return (node for node in self.walk() if not node.children)

    def child(self, name: str) -> Field | None:
        """Return the child of that name."""
        return next((child for child in self.children if child.name == name), None)


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
        return _without_hash(self.__dict__)

    @classmethod
    def from_arrow(cls, schema: pa.Schema, first_id: int = 0) -> Schema:
        """Give every field of an Arrow schema an id, counted in pre-order from `first_id`.

        Raises `UnsupportedFeature` for Arrow types that Lance has no logical type for.
        """
        names = schema.names
        if len(set(names)) != len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise SchemaMismatch(f"columns named twice: {', '.join(twice)}; give every column its own name")
        counter = iter(range(first_id, 1 << 31))
        fields = tuple(_from_arrow(column, NO_PARENT, counter) for column in schema)
        return cls(fields, _decode_metadata(schema.metadata))

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema that users see: known extension types, JSON as text, blobs as their values."""
        if not self._has_extensions:
            return self._storage
        fields = [column._logical_field() for column in self.fields]
        return text_schema(_restore_extensions(pa.schema(fields, _encode_metadata(self.metadata))))

    def to_arrow_restored(self) -> pa.Schema:
        """Return the storage schema with extension types known to this process restored."""
        return _restore_extensions(self._storage) if self._has_extensions else self._storage

    @cached_property
    def described(self) -> Schema:
        """The schema that scans show: blobs, at any depth, as what says where they are."""
        fields = tuple(column.described() for column in self.fields)
        return self if fields == self.fields else Schema(fields, self.metadata)

    def to_arrow_storage(self) -> pa.Schema:
        """Return the Arrow schema with extension types left as metadata on their storage types."""
        return self._storage

    @cached_property
    def _storage(self) -> pa.Schema:
        return pa.schema([column.storage_field for column in self.fields], _encode_metadata(self.metadata))

    @cached_property
    def _has_extensions(self) -> bool:
        return any(column._has_extensions for column in self.fields)

    @cached_property
    def has_dictionaries(self) -> bool:
        """Whether any field, at any depth, is a dictionary column."""
        return any(node.is_dictionary for node in self.walk())

    @property
    def names(self) -> list[str]:
        """Names of the top-level columns, in order."""
        return [column.name for column in self.fields]

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

        Raises `InvalidInput` naming the columns there are.
        """
        return self.lineage(path)[-1]

    def lineage(self, path: str) -> list[Field]:
        """Return the fields on the way to the one at a path, the column first; see `field`."""
        exact = next((column for column in self.fields if column.name == path), None)
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

        Two paths into one struct make one column with both children, in the schema's order.
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


def _without_hash(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a copy for another process takes along: hashes are others there."""
    return {name: value for name, value in state.items() if name != "_hash"}


def _from_arrow(column: pa.Field, parent_id: int, counter: Iterator[int]) -> Field:
    metadata = dict(_decode_metadata(column.metadata))
    arrow_type = column.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        metadata[EXTENSION_NAME] = arrow_type.extension_name
        metadata[EXTENSION_METADATA] = serialized_extension(arrow_type)
        arrow_type = arrow_type.storage_type
    field_id = next(counter)
    if _is_json(metadata.get(EXTENSION_NAME), arrow_type):
        metadata |= {EXTENSION_NAME: JSON_MARK, EXTENSION_METADATA: metadata.get(EXTENSION_METADATA, "")}
        return Field(field_id, parent_id, column.name, "json", column.nullable, metadata)
    extension_name = ""
    if metadata.get(EXTENSION_NAME) == BLOB_V2:
        check_blob_v2(arrow_type, column.name)
        extension_name = BLOB_V2
    children = tuple(_from_arrow(child, field_id, counter) for child in child_fields_of(arrow_type))
    logical_type = logical_type_of(arrow_type, column.name)
    return Field(
        field_id,
        parent_id,
        column.name,
        logical_type,
        column.nullable,
        metadata,
        children,
        extension_name=extension_name,
    )


def _is_json(extension_name: str | None, storage: pa.DataType) -> bool:
    """Return whether a field is Arrow's JSON, as text, or JSON as it is stored."""
    return extension_name == ARROW_JSON or (extension_name == JSON_MARK and pa.types.is_large_binary(storage))


def _prune(node: Field, keep: set[int]) -> Field:
    return replace(node, children=tuple(_prune(child, keep) for child in node.children if child.id in keep))


def _restore_extensions(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the extension types that this process knows.

    Raises `SchemaMismatch` where one of them refuses what its column is stored as, as that of a damaged file.
    """
    try:
        return pa.ipc.read_schema(schema.serialize())
    except Exception as error:  # a type comes from anywhere, and raises what its author thought of
        raise SchemaMismatch(f"a column's extension type does not take how the column is stored: {error}") from error


def _walk_arrow(fields: Iterable[pa.Field]) -> Iterator[pa.Field]:
    for column in fields:
        yield column
        yield from _walk_arrow(child_fields_of(column.type))


def _encode_metadata(metadata: Mapping[str, str]) -> dict[bytes, bytes] | None:
    if not metadata:
        return None
    return {key.encode(): value.encode("utf-8", "surrogateescape") for key, value in metadata.items()}


def _decode_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {
        key.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for key, value in (metadata or {}).items()
    }
