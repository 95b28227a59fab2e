"""A field of a Lance schema: its id, its logical type, and the Arrow field that it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
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
from lance_ops.core.cached_property import cached_property
from lance_ops.core.errors import InvalidInput, LanceOpsError, SchemaMismatch
from lance_ops.core.json import ARROW_JSON, JSON_MARK, holds_json, text_schema
from lance_ops.core.records import dataclass
from lance_ops.core.schema.logical_types import BFLOAT16, arrow_type_of, child_fields_of, logical_type_of
from lance_ops.core.schema.primary_key import declares_primary_key

__all__ = [
    "NO_PARENT",
    "Dictionary",
    "Field",
    "decode_metadata",
    "encode_metadata",
    "field_from_arrow",
    "restore_extensions",
    "user_schema",
    "without_hash",
]

NO_PARENT = -1

_NAMED = ("id", "name", "_hash", "storage_field", "_nameless")
"""What differs between a field and its renamed twin, or is computed from that."""


_new_object, _set_attribute = object.__new__, object.__setattr__


@dataclass(frozen=True)
class Dictionary:
    """The values of a 0.1 dictionary column, which are stored apart from its keys.

    `offset` is their position in the file that holds the field, and `length` is their number. `values` is None until
    they are read. Fields of later versions have no values here; both numbers are then 0.
    """

    offset: int = field(compare=False)
    length: int
    values: pa.Array | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Field:
    """One node of a schema's tree.

    `metadata` values are bytes on the wire. Here they are text, with undecodable bytes as surrogate escapes, so that
    nothing is lost. `dictionary` is for file version 0.1. `unknown` holds wire fields that this library does not know;
    they are written back unchanged.
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
        return without_hash(self.__dict__)

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the values in files: the storage of an extension type, the descriptor of a v2 blob."""
        if self.is_blob_v2:
            return DESCRIPTOR
        return arrow_type_of(self.logical_type, [child.storage_field for child in self.children], self.name)

    @cached_property
    def storage_field(self) -> pa.Field:
        """The Arrow field of `arrow_type`; an extension type is metadata on it."""
        return pa.field(self.name, *self.storage_kind)

    @cached_property
    def storage_kind(self) -> tuple[pa.DataType, bool, dict[bytes, bytes] | None]:
        """What `storage_field` has beside its name: its type, whether it is nullable, and its metadata."""
        metadata = DESCRIPTOR_METADATA if self.is_blob_v2 else self.metadata
        nullable = self.nullable or pa.types.is_null(self.arrow_type)  # Arrow has no null type that is not nullable
        return self.arrow_type, nullable, encode_metadata(metadata)

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
        """Whether the field or one below it holds JSON."""
        return holds_json(self.storage_field)

    @cached_property
    def holds_blobs_v2(self) -> bool:
        """Whether the field is `lance.blob.v2` or has one below it."""
        return self.is_blob_v2 or any(child.holds_blobs_v2 for child in self.children)

    @property
    def is_dictionary(self) -> bool:
        """Whether this is a dictionary column: files store keys, and values apart from them."""
        return self.logical_type.startswith("dict:")

    def renamed(self, field_id: int, name: str) -> Field:
        """Return this field, which has no children, under another id and name; both share the Arrow type.

        A wide table has thousands of fields that differ in nothing else: to construct each would take several times as
        long as to copy the state of one.
        """
        twin = _new_object(Field)
        state = self._nameless.copy()
        state["id"], state["name"] = field_id, name
        _set_attribute(twin, "__dict__", state)
        return twin

    @cached_property
    def _nameless(self) -> dict[str, Any]:
        """The state that does not depend on the field's id and name."""
        with suppress(LanceOpsError):  # an unknown type is named when its column is read
            _ = self.storage_kind
        _ = self.names_extensions, self.holds_blobs_v2
        return {name: value for name, value in vars(self).items() if name not in _NAMED}

    def stored(self) -> Field:
        """Return the field as in a data file's schema: v2 blobs, at any depth, are descriptors."""
        if self.is_blob_v2:
            return replace(self._struct_of(DESCRIPTOR, NO_PARENT), metadata=DESCRIPTOR_METADATA, extension_name="")
        children = tuple(child.stored() for child in self.children)
        return self if children == self.children else replace(self, children=children)

    def described(self) -> Field:
        """Return the field as scans return it: blobs, at any depth, are descriptors or positions and sizes."""
        if self.is_blob_v2:
            return replace(self._struct_of(DESCRIPTOR, self.id), metadata=DESCRIPTOR_METADATA, extension_name="")
        if self.is_blob_v1:
            return self._struct_of(POSITION_AND_SIZE, self.id)
        children = tuple(child.described() for child in self.children)
        return self if children == self.children else replace(self, children=children)

    def to_arrow(self) -> pa.Field:
        """Return the Arrow field as a user sees it: see `Schema.to_arrow`."""
        return user_schema((self,)).field(0) if self.names_extensions else self.storage_field

    @cached_property
    def names_extensions(self) -> bool:
        """Whether the field or one below it has an extension type, named in its metadata or its logical type."""
        # the process may register more extension types, but a field's metadata does not change
        named = EXTENSION_NAME in self.metadata or BFLOAT16 in self.logical_type
        return named or any(child.names_extensions for child in self.children)

    def _struct_of(self, arrow_type: pa.StructType, parent_id: int) -> Field:
        """Return the field as a struct whose children have no ids, because they are not columns of the schema."""
        children = tuple(
            Field(NO_PARENT, parent_id, child.name, logical_type_of(child.type, child.name), child.nullable)
            for child in arrow_type
        )
        return replace(self, logical_type="struct", children=children)

    def logical_field(self) -> pa.Field:
        """Return the Arrow field with blobs as their values; extension types are metadata on it."""
        children = [child.logical_field() for child in self.children]
        arrow_type = arrow_type_of(self.logical_type, children, self.name)
        return pa.field(self.name, arrow_type, self.nullable, encode_metadata(self.metadata))

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


def user_schema(fields: Iterable[Field], metadata: Mapping[str, str] | None = None) -> pa.Schema:
    """Return the Arrow schema that users see: known extension types, JSON as text, blobs as their values."""
    return text_schema(
        restore_extensions(pa.schema([node.logical_field() for node in fields], encode_metadata(metadata)))
    )


def without_hash(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object's state without its cached hash, which differs in another process."""
    return {name: value for name, value in state.items() if name != "_hash"}


def field_from_arrow(column: pa.Field, parent_id: int, counter: Iterator[int]) -> Field:
    """Return the field for an Arrow field, with ids from `counter` in pre-order."""
    metadata = dict(decode_metadata(column.metadata))
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
    children = tuple(field_from_arrow(child, field_id, counter) for child in child_fields_of(arrow_type))
    logical_type = logical_type_of(arrow_type, column.name)
    return Field(
        field_id,
        parent_id,
        column.name,
        logical_type,
        column.nullable,
        metadata,
        children,
        unenforced_primary_key=declares_primary_key(metadata),
        extension_name=extension_name,
    )


def _is_json(extension_name: str | None, storage: pa.DataType) -> bool:
    """Return whether a field is Arrow's JSON, as text, or JSON as it is stored."""
    return extension_name == ARROW_JSON or (extension_name == JSON_MARK and pa.types.is_large_binary(storage))


def restore_extensions(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the extension types that this process knows.

    Raises `SchemaMismatch` if an extension type refuses its column's storage type, as in a damaged file.
    """
    try:
        return pa.ipc.read_schema(schema.serialize())
    except Exception as error:  # an extension type is foreign code and may raise anything
        raise SchemaMismatch(f"a column's extension type refuses the column's storage type: {error}") from error


def encode_metadata(metadata: Mapping[str, str] | None) -> dict[bytes, bytes] | None:
    """Return metadata as Arrow holds it; None for none."""
    if not metadata:
        return None
    return {key.encode(): value.encode("utf-8", "surrogateescape") for key, value in metadata.items()}


def decode_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return Arrow's metadata as text; undecodable bytes of a value become surrogate escapes.

    Raises `InvalidInput` for a key that is not UTF-8, which the format cannot hold.
    """
    try:
        return {key.decode(): value.decode("utf-8", "surrogateescape") for key, value in (metadata or {}).items()}
    except UnicodeDecodeError as error:
        raise InvalidInput(f"metadata key {error.object!r} is not UTF-8: encode it, for example as base64") from error
