"""What every layout of a 2.1 or 2.2 page offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import pyarrow as pa

from lance_ops.core.ndarrays import BoolArray, Uint16Array
from lance_ops.core.versions import FileVersion
from lance_ops.encodings import CorruptValues, Encoding, EncodingOptions, FixedWidth, Values, check
from lance_ops.file.arrays import array_of, own_copy
from lance_ops.file.container import Extent
from lance_ops.file.leaves import Leaf, Step
from lance_ops.file.rows import Rows
from lance_ops.file.source import Steps, moved
from lance_ops.file.v2_1.layers import Layer
from lance_ops.file.v2_1.levels import Entries, LevelScheme, decode_levels, scheme_of
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = [
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

ToArray: TypeAlias = Callable[[BoolArray | None], pa.Array]


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Some rows of one leaf: the layers around it, outermost first, and its values with their validity."""

    layers: tuple[Layer, ...]
    values: pa.Array

    def copy(self) -> LeafRows:
        """Return the same rows in memory of their own."""
        return LeafRows(tuple(layer.copy() for layer in self.layers), own_copy(self.values))


@dataclass(frozen=True)
class PageChoice:
    """What decides how a page is written besides its values."""

    version: FileVersion
    options: EncodingOptions

    @property
    def large_chunks(self) -> bool:
        """Whether chunk words and sizes are u32."""
        return self.version >= FileVersion.V2_2


@dataclass(frozen=True)
class PageContext:
    """What a page's description does not say: its column, its elements and where its buffers are."""

    leaf: Leaf
    length: int
    buffers: tuple[Extent, ...]
    size_bytes: int
    """Of the whole file."""

    def buffer(self, index: int) -> Extent:
        """Return one of the page's buffers; raise `CorruptValues` if there are fewer."""
        check(index < len(self.buffers), f"{len(self.buffers)} buffers where buffer {index} is needed")
        return self.buffers[index]

    def finish(self, num_rows: int, scheme: LevelScheme, entries: Entries, to_array: ToArray) -> LeafRows:
        """Put the levels and values of the rows together; `to_array` makes the leaf's array from its validity."""
        layers = decode_levels(scheme, entries, self.leaf.dimensions)
        leaf = layers.pop()
        values = to_array(leaf.validity)
        check(len(values) == leaf.length, f"{len(values)} values where the levels count {leaf.length}")
        found = layers[0].length if layers else len(values)
        check(found == num_rows, f"{found} rows where {num_rows} are wanted")
        return LeafRows(tuple(layers), values)

    def to_array(self, values: Values) -> ToArray:
        """Return what makes the leaf's array out of these values."""
        return lambda validity: array_of(values, self.leaf.arrow_type, validity)


ReadLayout: TypeAlias = Callable[[pb.PageLayout, PageContext], "PageLayout"]


class PageLayout(ABC):
    """One page, ready to be read; what it loads once, it keeps."""

    MESSAGE: ClassVar[str]
    """The field of the page description that holds this layout."""

    @classmethod
    @abstractmethod
    def from_pb(cls, message: Any, context: PageContext, nested: ReadLayout) -> Self:
        """Read the description; `nested` reads a layout inside it. Raises as `layout_from_pb` does."""

    @abstractmethod
    def read(self, rows: Rows) -> Steps[LeafRows]:
        """Read rows of the page: at least one."""

    @property
    def kin(self) -> Hashable | None:
        """What pages of one column must agree in to be read as one; None for a page that is read alone."""
        return None

    def is_kin_of(self, other: PageLayout) -> bool:
        """Return whether the two can be read as one."""
        kin = self.kin
        return kin is not None and kin == other.kin

    @property
    def alike(self) -> Hashable | None:
        """What pages must agree in to be read as one where no two are decoded at a time; less than kin, perhaps."""
        return self.kin

    @classmethod
    def read_kin(cls, pages: Sequence[Self], rows: Sequence[Rows], begins: Sequence[int] = ()) -> Steps[LeafRows]:
        """Read rows of pages that follow each other and are kin, as if they were one page; or of one page.

        Pages of several files that are laid end to end come with the places where their files begin.
        """
        (page,), (wanted,) = pages, rows
        steps = page.read(wanted)
        return (yield from moved(steps, begins[0]) if begins else steps)

    @abstractmethod
    def encodings(self) -> Sequence[str]:
        """Name the layout and the encodings in it, outermost first, for people and tests."""


def names_of(encoding: Encoding) -> list[str]:
    """Name an encoding and those nested in it, outermost first."""
    names = [encoding.MESSAGE]
    for attribute in fields(encoding):  # type: ignore[arg-type]  # every encoding is a dataclass
        value = getattr(encoding, attribute.name)
        for nested in value if isinstance(value, tuple) else (value,):
            if isinstance(nested, Encoding):
                names += names_of(nested)
    return names


def read_scheme(layers: Sequence[int], leaf: Leaf) -> LevelScheme:
    """Check a page's layers, innermost first, against the leaf's path."""
    return _read_scheme(tuple(layers), leaf.steps, leaf.is_fieldless)


@lru_cache(maxsize=256)
def _read_scheme(layers: tuple[int, ...], steps: tuple[Step, ...], is_fieldless: bool) -> LevelScheme:
    check(LevelScheme.is_known(layers), f"unknown layers {list(layers)}")
    if is_fieldless and len(layers) == 1 and not any(step.is_list or step.dimension for step in steps):
        layers = (
            *layers,
            *[pb.REPDEF_ALL_VALID_ITEM] * (len(steps) - 1),
        )  # its pages do not speak of structs around
    scheme = scheme_of(layers)
    check(len(layers) == len(steps), f"{len(layers)} layers where the schema nests {len(steps)}")
    for depth, step in enumerate(reversed(steps)):
        check(scheme.is_list(depth) == step.is_list, f"layer {depth} is a list on one side of page and schema only")
    return scheme


def levels_as_values(levels: Uint16Array) -> FixedWidth:
    """Return levels as values to encode."""
    return FixedWidth(np.ascontiguousarray(levels, "<u2").view(np.uint8), 16, len(levels))


def check_entries(scheme: LevelScheme, entries: Entries) -> None:
    """Raise `CorruptValues` for a level the scheme does not have, or entries that do not begin with a row."""
    rep, definition = entries.rep, entries.definition
    check(rep is None or len(rep) == entries.count, "repetition levels are not one an entry")
    check(definition is None or len(definition) == entries.count, "definition levels are not one an entry")
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
