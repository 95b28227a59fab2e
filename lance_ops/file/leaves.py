"""The leaves of a schema, which are the columns of a 2.1 or 2.2 file, in pre-order.

A packed struct, and a struct that describes blobs, is one leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, overload

import pyarrow as pa

from lance_ops.core.cached_property import cached_property
from lance_ops.core.records import dataclass
from lance_ops.core.schema import NO_PARENT, Field, Schema
from lance_ops.encodings import EncodingOptions

__all__ = ["Leaf", "LeafNumbers", "Step", "is_leaf", "is_packed", "leaves_of", "leaves_of_field", "number_leaves"]

_PACKED_KEYS = ("lance-encoding:packed", "packed")
_LISTS = ("list", "list.struct", "large_list", "large_list.struct", "map")


@dataclass(frozen=True, slots=True)
class Step:
    """One layer on the path from a root to a leaf; `dimension` is the size of a fixed-size list, otherwise 0."""

    is_list: bool = False
    dimension: int = 0


_ITEM = Step()


@dataclass(frozen=True)
class Leaf:
    """A leaf: its field, and the layers from its root down to the leaf itself."""

    field: Field
    steps: tuple[Step, ...]

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the values, extension types as their storage."""
        return self.field.arrow_type

    @property
    def is_fieldless(self) -> bool:
        """Whether the leaf is a struct without fields, whose pages store only how many there are."""
        return self.field.logical_type == "struct" and not self.field.children

    @cached_property
    def elements_per_row(self) -> int:
        """How many elements a page counts for a row: the product of all fixed-size lists' sizes around the leaf."""
        product = 1
        for step in self.steps:
            product *= step.dimension or 1
        return product

    @cached_property
    def options(self) -> EncodingOptions:
        """The encoding options in the field's metadata; raises `InvalidInput` for options with unknown values."""
        return EncodingOptions.from_metadata(self.field.metadata)

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """For each layer, outermost first, the size of fixed-size lists, and 0 for others."""
        return tuple(step.dimension for step in self.steps)


def is_leaf(field: Field) -> bool:
    """Return whether a field is stored as a single column of its own."""
    return not field.children or is_packed(field) or field.is_blob_v2


def is_packed(field: Field) -> bool:
    """Return whether a struct is stored row by row, in one column. Its children may lack ids."""
    if field.logical_type != "struct" or not field.children:
        return False
    marked = any(field.metadata.get(key, "").lower() == "true" for key in _PACKED_KEYS)
    return marked or field.children[0].id == NO_PARENT


@lru_cache(maxsize=64)
def leaves_of(schema: Schema) -> tuple[Leaf, ...]:
    """Return the leaves of a schema in the order of its columns."""
    return tuple(leaf for root in schema.fields for leaf in leaves_of_field(root))


class LeafNumbers(NamedTuple):
    """The leaves of a schema in the order of its columns, the ids of their fields, and the column of each id."""

    leaves: Sequence[Leaf]
    field_ids: tuple[int, ...]
    index_of: Mapping[int, int]


@lru_cache(maxsize=64)
def number_leaves(schema: Schema) -> LeafNumbers:
    """Return the columns of a file with this schema; files with the same schema share the result."""
    leaves: Sequence[Leaf]
    if any(field.children for field in schema.fields):
        leaves = leaves_of(schema)
        field_ids = tuple([leaf.field.id for leaf in leaves])
    else:
        leaves = _RootLeaves(schema.fields)
        field_ids = tuple([field.id for field in schema.fields])
    return LeafNumbers(leaves, field_ids, {field_id: index for index, field_id in enumerate(field_ids)})


class _RootLeaves(Sequence[Leaf]):
    """The leaves of top-level fields without children; each is made when it is first asked for.

    A file of thousands of columns is opened to read a few of them.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._made: list[Leaf | None] = [None] * len(fields)

    def __len__(self) -> int:
        return len(self._fields)

    @overload
    def __getitem__(self, index: int) -> Leaf: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Leaf]: ...
    def __getitem__(self, index: int | slice) -> Leaf | Sequence[Leaf]:
        if isinstance(index, slice):
            return [self[at] for at in range(len(self))[index]]
        leaf = self._made[index]
        if leaf is None:
            (leaf,) = leaves_of_field(self._fields[index])
            self._made[index] = leaf
        return leaf


@lru_cache(maxsize=4096)
def leaves_of_field(field: Field) -> tuple[Leaf, ...]:
    """Return the leaves of a top-level field; files of one table share them and their cached properties."""
    return tuple(_leaves(field, ()))


def _leaves(field: Field, outer: Sequence[Step]) -> Iterator[Leaf]:
    steps = (*outer, _step(field))
    if is_leaf(field):
        yield Leaf(field, steps)
        return
    for child in field.children:
        yield from _leaves(child, steps)


def _step(field: Field) -> Step:
    if field.logical_type in _LISTS:
        return Step(is_list=True)
    if field.children and field.logical_type.startswith("fixed_size_list:"):
        return Step(dimension=int(field.logical_type.rpartition(":")[2]))
    return _ITEM
