"""Convert a schema to and from the flat list of `Field` messages in manifests and file descriptors.

The list is in pre-order. Each field names its parent by id; the parent of a root is -1. Fields with id -1 are the
children of a blob descriptor, not columns; they belong to the last field before them that has an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from google.protobuf.unknown_fields import UnknownFieldSet

from lance_ops.core.errors import CorruptFile, InvalidInput, UnsupportedFeature
from lance_ops.core.schema import MAX_DEPTH, NO_PARENT, Dictionary, Field, Schema, depth_of
from lance_ops.pb import file_pb2
from lance_ops.wire.plain_fields import read_plain_columns
from lance_ops.wire.unknown import restore_unknown, unknown_fields

__all__ = [
    "MOST_SHARED",
    "field_metadata_from_pb",
    "metadata_to_pb",
    "schema_from_pb",
    "schema_to_pb",
    "wide_schema_from_pb",
]

MOST_SHARED = 1000
"""The roots of the widest schema whose fields are shared with other schemas; wider ones would evict them all."""

_VARIABLE_TYPES = ("string", "binary", "large_string", "large_binary", "json")


def schema_to_pb(schema: Schema) -> list[file_pb2.Field]:
    """Flatten a schema into messages; its metadata goes through `metadata_to_pb`."""
    return [_to_pb(node) for node in schema.walk()]


def schema_from_pb(fields: Iterable[file_pb2.Field], metadata: Mapping[str, bytes], path: str) -> Schema:
    """Build the tree from the flat list.

    Raises `CorruptFile` if a parent is missing or a field nests in itself, and `UnsupportedFeature` for a field that
    nests too deeply.
    """
    messages = list(fields)
    ids = [message.id for message in messages]
    parent_ids = [message.parent_id for message in messages]
    if parent_ids.count(NO_PARENT) == len(messages) and NO_PARENT not in ids:
        roots = _leaves(messages, path)
    else:
        roots = _trees(messages, ids, parent_ids, path)
    if len(roots) <= MOST_SHARED:
        roots = [_shared(root) for root in roots]
    return Schema(tuple(roots), field_metadata_from_pb(metadata))


def wide_schema_from_pb(fields: Sequence[bytes], metadata: Mapping[str, bytes], path: str) -> Schema | None:
    """Return the schema of many encoded fields, which are made when one of them is first asked for.

    Returns None for fields that `schema_from_pb` must read, as if some are below others. Raises as it does.
    """
    columns = read_plain_columns(fields, lambda message: _checked(_from_pb(message, ()), path))
    return None if columns is None else Schema.of_plain_columns(columns, field_metadata_from_pb(metadata))


def _trees(messages: Sequence[file_pb2.Field], ids: Sequence[int], parent_ids: Sequence[int], path: str) -> list[Field]:
    """Return the roots of fields that may be below others; raise as `schema_from_pb` does."""
    children: dict[int, list[file_pb2.Field]] = {}
    known = {NO_PARENT}
    above = NO_PARENT
    for message, field_id, parent_id in zip(messages, ids, parent_ids, strict=True):
        if parent_id not in known:
            raise CorruptFile(path, "schema", f"field {message.name!r} comes before its parent {parent_id}")
        known.add(field_id)
        if field_id != NO_PARENT:
            above = field_id
        children.setdefault(above if field_id == NO_PARENT else parent_id, []).append(message)

    built = 0

    def build(message: file_pb2.Field, depth: int) -> Field:
        nonlocal built
        built += 1
        if built > len(messages):  # only a repeated id can make a cycle
            raise CorruptFile(path, "schema", f"field {message.name!r} nests below itself")
        if depth > MAX_DEPTH:
            raise _too_deep(message.name, path)
        below = () if message.id == NO_PARENT else children.get(message.id, ())
        return _from_pb(message, tuple(build(child, depth + 1) for child in below))

    roots = children.get(NO_PARENT, [])
    alone = iter(_leaves([message for message in roots if message.id not in children], path))
    return [next(alone) if message.id not in children else _checked(build(message, 0), path) for message in roots]


def _leaves(messages: Iterable[file_pb2.Field], path: str) -> list[Field]:
    """Return fields without children; those that differ in nothing but id and name share one Arrow type.

    Raises as `_checked` does.
    """
    fields, samples = [], dict[tuple[object, ...], Field]()
    for message in messages:
        if message.metadata or message.HasField("dictionary") or len(UnknownFieldSet(message)):
            fields.append(_checked(_from_pb(message, ()), path))
            continue
        primary_key, extension = message.unenforced_primary_key, message.extension_name
        kind = message.parent_id, message.logical_type, message.nullable, primary_key, extension
        sample = samples.get(kind)
        if sample is None:
            sample = samples[kind] = _checked(_from_pb(message, ()), path)
        fields.append(sample.renamed(message.id, message.name))
    return fields


def _shared(root: Field) -> Field:
    """Return an equal field that an earlier schema has, if there is one.

    The schemas of a table and of its files then have the same fields. Caches find them by identity, and each derives
    its Arrow type once. Fields with dictionaries are not shared, since they may hold their values.
    """
    if root.dictionary is not None or (root.children and any(node.dictionary is not None for node in root.walk())):
        return root
    _first_equal(root)  # another thread may add an equal field meanwhile: the second call finds whichever was added
    return _first_equal(root)


@lru_cache(maxsize=4096)
def _first_equal(root: Field) -> Field:
    return root


def _checked(root: Field, path: str) -> Field:
    """Return a field; an unknown type raises only when its column is read.

    Raises `CorruptFile` for a malformed logical type, and `UnsupportedFeature` for one that nests too deeply.
    """
    try:
        depth = depth_of(root.arrow_type)
    except InvalidInput as error:
        raise CorruptFile(path, "schema", str(error)) from error
    except UnsupportedFeature:
        return root
    if depth > MAX_DEPTH:  # fixed-size lists of numbers nest in one field
        raise _too_deep(root.name, path)
    return root


def _too_deep(name: str, path: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"field {name!r}, which nests more than {MAX_DEPTH} levels,", path)


def metadata_to_pb(metadata: Mapping[str, str]) -> dict[str, bytes]:
    """Return metadata with its values as bytes; surrogate escapes become the bytes they stand for."""
    return {key: value.encode("utf-8", "surrogateescape") for key, value in metadata.items()}


def field_metadata_from_pb(metadata: Mapping[str, bytes]) -> dict[str, str]:
    """Return metadata with its values as text; undecodable bytes become surrogate escapes."""
    if not metadata:
        return {}
    return {key: value.decode("utf-8", "surrogateescape") for key, value in metadata.items()}


def _to_pb(node: Field) -> file_pb2.Field:
    message = file_pb2.Field(
        name=node.name,
        id=node.id,
        parent_id=node.parent_id,
        logical_type=node.logical_type,
        nullable=node.nullable,
        metadata=metadata_to_pb(node.metadata) if node.metadata else None,  # an empty map takes as long as the rest
        unenforced_primary_key=node.unenforced_primary_key,
        encoding=_encoding(node.logical_type),
        extension_name=node.extension_name,
    )
    if node.dictionary is not None:
        message.dictionary.offset, message.dictionary.length = node.dictionary.offset, node.dictionary.length
    restore_unknown(message, node.unknown)
    return message


def _from_pb(message: file_pb2.Field, children: tuple[Field, ...]) -> Field:
    return Field(
        id=message.id,
        parent_id=message.parent_id,
        name=message.name,
        logical_type=message.logical_type,
        nullable=message.nullable,
        metadata=field_metadata_from_pb(message.metadata),
        children=children,
        unenforced_primary_key=message.unenforced_primary_key,
        extension_name=message.extension_name,
        dictionary=(
            Dictionary(message.dictionary.offset, message.dictionary.length) if message.HasField("dictionary") else None
        ),
        unknown=unknown_fields(message),
    )


def _encoding(logical_type: str) -> file_pb2.Encoding:
    """Return the legacy encoding, which readers of 0.1 files use; other readers ignore it."""
    kind = logical_type.partition(":")[0]
    if kind in ("struct", "null"):
        return file_pb2.NONE
    if kind == "dict":
        return file_pb2.DICTIONARY
    return file_pb2.VAR_BINARY if kind in _VARIABLE_TYPES else file_pb2.PLAIN
