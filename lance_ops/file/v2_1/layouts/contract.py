"""The contract of a page layout: how a 2.1 or 2.2 page is read, and what decoding its levels needs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import BoolArray, Uint16Array
from lance_ops.core.records import dataclass
from lance_ops.core.versions import FileVersion
from lance_ops.encodings import CorruptValues, Encoding, EncodingOptions, FixedWidth, Values, check
from lance_ops.file.arrow_values import array_of, copy_array
from lance_ops.file.leaves import Leaf, Step
from lance_ops.file.open_file import LeafPage
from lance_ops.file.page_reading import Extent, RowSelection, Steps, shift_steps
from lance_ops.file.v2_1.layers import Layer
from lance_ops.file.v2_1.levels import Entries, LevelScheme, decode_levels, scheme_of
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = [
    "PAGE_LAYOUT_URL",
    "LeafRows",
    "PageContext",
    "PageLayout",
    "ReadLayout",
    "ToArray",
    "check_entries",
    "levels_of",
    "names_of",
    "read_scheme",
]

PAGE_LAYOUT_URL = "/lance.encodings21.PageLayout"

ToArray: TypeAlias = Callable[[BoolArray | None], pa.Array]


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Some rows of one leaf: the layers around it, outermost first, and its values with their validity."""

    layers: tuple[Layer, ...]
    values: pa.Array

    def copy(self) -> LeafRows:
        """Return the same rows in memory of their own."""
        return LeafRows(tuple(layer.copy() for layer in self.layers), copy_array(self.values))


@dataclass(frozen=True)
class PageChoice:
    """What decides the encoding of a page, besides its values."""

    version: FileVersion
    options: EncodingOptions

    @property
    def large_chunks(self) -> bool:
        """Whether chunk words and sizes are u32."""
        return self.version >= FileVersion.V2_2


@dataclass(frozen=True)
class PageContext:
    """What a page's description does not say: its leaf, its number of elements and where its buffers are."""

    leaf: Leaf
    length: int
    buffers: tuple[Extent, ...]
    size_bytes: int
    """The size of the whole file."""

    def buffer(self, index: int) -> Extent:
        """Return one of the page's buffers; raise `CorruptValues` if there are fewer."""
        check(index < len(self.buffers), f"{len(self.buffers)} buffers where buffer {index} is needed")
        return self.buffers[index]

    def finish(self, num_rows: int, scheme: LevelScheme, entries: Entries, to_array: ToArray) -> LeafRows:
        """Combine the levels and values of rows; `to_array` makes the leaf's array from its validity."""
        layers = decode_levels(scheme, entries, self.leaf.dimensions)
        leaf = layers.pop()
        values = to_array(leaf.validity)
        check(len(values) == leaf.length, f"{len(values)} values where the levels count {leaf.length}")
        found = layers[0].length if layers else len(values)
        check(found == num_rows, f"{found} rows where {num_rows} are wanted")
        return LeafRows(tuple(layers), values)

    def to_array(self, values: Values) -> ToArray:
        """Return a function that makes the leaf's array of these values and a validity."""
        return lambda validity: array_of(values, self.leaf.arrow_type, validity)


ReadLayout: TypeAlias = Callable[[pb.PageLayout, PageContext], "PageLayout"]


class PageLayout(LeafPage):
    """One page, ready to be read; it keeps what it loads once."""

    MESSAGE: ClassVar[str]
    """The field of the page description that holds this layout."""

    @classmethod
    @abstractmethod
    def from_pb(cls, message: Any, context: PageContext, nested: ReadLayout) -> Self:
        """Read the description; `nested` reads a layout inside it. Raises as `layout_from_pb` does."""

    @abstractmethod
    def read(self, rows: RowSelection) -> Steps[LeafRows]:
        """Read rows of the page: at least one."""

    @property
    def decode_key(self) -> Hashable | None:
        """Pages of one leaf with equal keys are decoded by one call; None for a page that is decoded alone.

        Pages with equal decode keys have equal read keys too. The reverse need not hold: pages that are read by one
        call may be decoded one encoding after the other.
        """
        return None

    def decodes_with(self, other: PageLayout) -> bool:
        """Return whether the two pages are decoded by one call."""
        key = self.decode_key
        return key is not None and key == other.decode_key

    @property
    def read_key(self) -> Hashable | None:
        return self.decode_key

    @classmethod
    def read_group(
        cls, pages: Sequence[Self], rows: Sequence[RowSelection], file_starts: Sequence[int] = ()
    ) -> Steps[LeafRows]:
        (page,), (wanted,) = pages, rows
        steps = page.read(wanted)
        return (yield from shift_steps(steps, file_starts[0]) if file_starts else steps)

    @abstractmethod
    def encodings(self) -> Sequence[str]:
        """Name the layout and the encodings in it, outermost first."""


def names_of(encoding: Encoding) -> list[str]:
    """Name an encoding and the encodings nested in it, outermost first."""
    names = [encoding.MESSAGE]
    for attribute in fields(encoding):  # type: ignore[arg-type]  # every encoding is a dataclass
        value = getattr(encoding, attribute.name)
        for nested in value if isinstance(value, tuple) else (value,):
            if isinstance(nested, Encoding):
                names += names_of(nested)
    return names


def read_scheme(layers: Sequence[int], leaf: Leaf) -> LevelScheme:
    """Return the scheme of a page's layers, innermost first, which must be those of the leaf's path."""
    return _read_scheme(tuple(layers), leaf.steps, leaf.is_fieldless)


@lru_cache(maxsize=256)
def _read_scheme(layers: tuple[int, ...], steps: tuple[Step, ...], is_fieldless: bool) -> LevelScheme:
    check(LevelScheme.is_known(layers), f"unknown layers {list(layers)}")
    if is_fieldless and len(layers) == 1 and not any(step.is_list or step.dimension for step in steps):
        # Pages of structs without fields do not list the structs around them.
        layers = (*layers, *[pb.REPDEF_ALL_VALID_ITEM] * (len(steps) - 1))
    scheme = scheme_of(layers)
    check(len(layers) == len(steps), f"{len(layers)} layers where the schema nests {len(steps)}")
    for depth, step in enumerate(reversed(steps)):
        check(scheme.is_list(depth) == step.is_list, f"layer {depth} is a list in only one of page and schema")
    return scheme


def levels_as_values(levels: Uint16Array) -> FixedWidth:
    """Return levels as 16-bit values to encode."""
    return FixedWidth(np.ascontiguousarray(levels, "<u2").view(np.uint8), 16, len(levels))


def check_entries(scheme: LevelScheme, entries: Entries) -> None:
    """Raise `CorruptValues` for a level that the scheme does not have, or if the first entry does not start a row."""
    rep, definition = entries.rep, entries.definition
    check(rep is None or len(rep) == entries.count, "not one repetition level an entry")
    check(definition is None or len(definition) == entries.count, "not one definition level an entry")
    if not entries.count:
        return
    if rep is not None:
        check(rep.max() <= scheme.max_rep, f"a repetition level above {scheme.max_rep}")
        check(rep[0] == scheme.max_rep, "the first entry does not start a row")
    if definition is not None:
        check(definition.max() <= scheme.max_def, f"a definition level above {scheme.max_def}")


def levels_of(values: object) -> Uint16Array:
    """Return decoded levels as numbers."""
    if not isinstance(values, FixedWidth) or values.bits_per_value != 16:
        raise CorruptValues("levels that are not 16-bit numbers")
    return values.as_integers().astype(np.uint16, copy=False)
