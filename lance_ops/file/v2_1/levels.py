"""Repetition and definition levels: the nesting of a column, flattened into two numbers an entry.

A path from a column's root to a leaf passes layers: items (structs, the leaf itself), lists, and fixed-size lists of
structs. The levels of one leaf hold all of them:

* definition 0 is a value; going outwards from the leaf, each layer that has nulls (or, for lists, empties) adds a
  level. A level says at which layer the entry ends: there it is null or empty, all layers around it are there.
* repetition r starts new lists at the r innermost list layers; the outermost list's level starts a row, 0 goes on in
  the innermost list.
* a fixed-size list repeats its entry, levels and all, for each of its items, also where it is null or something around
  it ends. So every row starts as often as the sizes around the leaf multiply to; pages count and find rows by that.

Entries that end at a list layer or outside of one own no value ("invisible"); all others own a value slot, null or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from lance_ops import kernels
from lance_ops.core.arrow import new_array, new_bytes
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array, Uint16Array
from lance_ops.encodings import check
from lance_ops.file.v2_1.layers import FixedLists, Items, Layer, Lists
from lance_ops.kernels import read_only
from lance_ops.pb import encodings_v2_1_pb2 as pb

__all__ = [
    "EncodedLevels",
    "Entries",
    "LevelScheme",
    "decode_levels",
    "encode_levels",
    "scheme_of",
]

_ALL_PRESENT = read_only(np.empty(0, np.uint8))
_IN_A_ROW = read_only(np.empty(0, np.int64))


_LIST_KINDS: dict[int, tuple[bool, bool]] = {
    pb.REPDEF_ALL_VALID_LIST: (False, False),
    pb.REPDEF_NULLABLE_LIST: (True, False),
    pb.REPDEF_EMPTYABLE_LIST: (False, True),
    pb.REPDEF_NULL_AND_EMPTY_LIST: (True, True),
}
_LIST_KIND_OF = {flags: kind for kind, flags in _LIST_KINDS.items()}
_ITEM_KINDS: dict[int, bool] = {pb.REPDEF_ALL_VALID_ITEM: False, pb.REPDEF_NULLABLE_ITEM: True}
_ITEM_KIND_OF = {nullable: kind for kind, nullable in _ITEM_KINDS.items()}


@dataclass(frozen=True)
class LevelScheme:
    """What the levels of a page mean: one `RepDefLayer` a layer, innermost first."""

    kinds: tuple[int, ...]

    @cached_property
    def null_levels(self) -> tuple[int, ...]:
        """Per layer the definition level of a null, 0 where there is none."""
        return tuple(null for null, _ in self._levels)

    @cached_property
    def empty_levels(self) -> tuple[int, ...]:
        """Per layer the definition level of an empty list, 0 where there is none."""
        return tuple(empty for _, empty in self._levels)

    @cached_property
    def _levels(self) -> tuple[tuple[int, int], ...]:
        found, level = [], 0
        for kind in self.kinds:
            has_null, has_empty = _LIST_KINDS.get(kind) or (_ITEM_KINDS[kind], False)
            null = level + 1 if has_null else 0
            level += has_null
            empty = level + 1 if has_empty else 0
            level += has_empty
            found.append((null, empty))
        return tuple(found)

    @cached_property
    def max_rep(self) -> int:
        """Number of list layers."""
        return sum(kind in _LIST_KINDS for kind in self.kinds)

    @cached_property
    def max_def(self) -> int:
        """The highest definition level."""
        return max((max(pair) for pair in self._levels), default=0)

    @cached_property
    def max_visible_def(self) -> int:
        """The highest definition level whose entries own a value slot."""
        return self.segment_ends[0]

    @cached_property
    def segment_ends(self) -> tuple[int, ...]:
        """Per layer the highest level of an entry that exists there: levels rise outwards up to the next list."""
        ends, end = [0] * len(self.kinds), self.max_def
        for layer in reversed(range(len(self.kinds))):
            ends[layer] = end
            if self.is_list(layer):
                end = max((max(pair) for pair in self._levels[:layer]), default=0)
        return tuple(ends)

    def has_nulls_from(self, depth: int) -> bool:
        """Return whether a layer of items from `depth` on, below the next list, has nulls."""
        for layer in range(depth, len(self.kinds)):
            if self.is_list(layer):
                return False
            if self.null_levels[layer]:
                return True
        return False

    @property
    def has_invisible(self) -> bool:
        """Whether an entry may own no value slot."""
        return self.max_def > self.max_visible_def

    def is_list(self, layer: int) -> bool:
        """Return whether a layer, counted from the innermost, is one of lists."""
        return self.kinds[layer] in _LIST_KINDS

    @staticmethod
    def is_known(kinds: Sequence[int]) -> bool:
        """Return whether every kind is one that this library can interpret."""
        return all(kind in _LIST_KINDS or kind in _ITEM_KINDS for kind in kinds)


@lru_cache(maxsize=256)
def scheme_of(kinds: tuple[int, ...]) -> LevelScheme:
    """Return the scheme of these layers; most pages have one of a few, whose levels are worked out once."""
    return LevelScheme(kinds)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Some consecutive entries of a page; `rep` None: each starts a row, `definition` None: each is a value."""

    count: int
    rep: Uint16Array | None = None
    definition: Uint16Array | None = None

    def take(self, selection: slice | Int64Array) -> Entries:
        """Return the selected entries."""
        rep = None if self.rep is None else self.rep[selection]
        definition = None if self.definition is None else self.definition[selection]
        if isinstance(selection, slice):
            return Entries(selection.stop - selection.start, rep, definition)
        return Entries(len(selection), rep, definition)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedLevels:
    """The levels of some rows of one leaf, and which of the leaf's slots are visible.

    `num_rows` counts a row for each time it starts; `rep` is None without lists, `definition` None when no entry ends
    early. `slots` are positions in the leaf array, in entry order: a slice if they are consecutive.
    """

    scheme: LevelScheme
    num_rows: int
    num_entries: int
    rep: Uint16Array | None
    definition: Uint16Array | None
    slots: slice | Int64Array

    @property
    def num_values(self) -> int:
        """Number of visible slots."""
        return self.slots.stop - self.slots.start if isinstance(self.slots, slice) else len(self.slots)

    def visible(self) -> BoolArray | None:
        """Return which entries own a value slot; None if all do."""
        if self.definition is None or not self.scheme.has_invisible:
            return None
        return self.definition <= self.scheme.max_visible_def


def encode_levels(layers: Sequence[Layer]) -> EncodedLevels:
    """Flatten layers, outermost first. Kinds of layers are those that the data needs: no level that no entry has."""
    all_present = True
    for layer in layers:
        if isinstance(layer, Lists):
            return _encode_with_lists(layers)
        all_present = all_present and layer.validity is None
    if not all_present:
        return _encode_items(layers)
    leaf = layers[-1]
    return _all_present(len(layers), leaf.length * leaf.dimension if isinstance(leaf, FixedLists) else leaf.length)


def _encode_items(layers: Sequence[Layer]) -> EncodedLevels:
    codes: Uint16Array | None = None
    occurs = _no_occurrences(layers)
    num_slots = layers[0].length
    for depth, layer in enumerate(layers):
        if layer.validity is not None:
            present, code = layer.validity.view(np.uint8), _null_code(depth)
            if codes is None:
                codes = (present ^ 1).astype(np.uint16)
                codes *= code
                occurs[code] = not present.all()
            else:
                kernels.mark_nulls(read_only(present), _IN_A_ROW, 0, 0, code, codes, occurs)
        if isinstance(layer, FixedLists):
            codes = None if codes is None else np.repeat(codes, layer.dimension)
            num_slots *= layer.dimension
    scheme, definition = _number(layers, codes, occurs)
    return EncodedLevels(scheme, num_slots, num_slots, None, definition, slice(0, num_slots))


@lru_cache(maxsize=256)
def _all_present(num_layers: int, num_slots: int) -> EncodedLevels:
    """Return the levels of values without nulls in no lists: nothing but a number, and most columns' of a file."""
    scheme = scheme_of((pb.REPDEF_ALL_VALID_ITEM,) * num_layers)
    return EncodedLevels(scheme, num_slots, num_slots, None, None, slice(0, num_slots))


def _encode_with_lists(layers: Sequence[Layer]) -> EncodedLevels:
    num_rows = layers[0].length
    codes, occurs = np.zeros(num_rows, np.uint16), _no_occurrences(layers)
    slots, first_slot, num_slots, ended = _IN_A_ROW, 0, num_rows, 0
    level = sum(isinstance(layer, Lists) for layer in layers)
    rep = np.full(num_rows, level, dtype=np.uint16)
    for depth, layer in enumerate(layers):
        present = _ALL_PRESENT if layer.validity is None else read_only(layer.validity.view(np.uint8))
        if not isinstance(layer, Lists):
            if layer.validity is not None:
                kernels.mark_nulls(present, read_only(slots), first_slot, ended, _null_code(depth), codes, occurs)
            if isinstance(layer, FixedLists):
                size = layer.dimension
                rep, codes, slots = np.repeat(rep, size), np.repeat(codes, size), _repeat_slots(slots, size)
                num_rows, first_slot, num_slots = num_rows * size, first_slot * size, num_slots * size
            continue
        level -= 1
        outer = read_only(codes), read_only(slots), first_slot, ended
        outer_rep, offsets = read_only(rep), read_only(layer.offsets)
        num_entries, num_slots, first_slot, is_run = kernels.count_children(offsets, present, *outer)
        rep, codes = new_array(num_entries, np.uint16), new_array(num_entries, np.uint16)
        slots = new_array(0 if is_run else num_entries, np.int64)
        ended = _empty_code(depth)
        endings = level, _null_code(depth), ended
        kernels.expand_lists(offsets, present, outer_rep, *outer, *endings, rep, codes, slots, occurs)
    scheme, definition = _number(layers, codes, occurs)
    visible = slots[slots >= 0] if len(slots) else slice(first_slot, first_slot + num_slots)
    return EncodedLevels(scheme, num_rows, len(rep), rep, definition, visible)


def _repeat_slots(slots: Int64Array, size: int) -> Int64Array:
    """Return the slots of the items of fixed-size lists; those of lists that are not there stay negative."""
    items: Int64Array = (slots[:, None] * size + np.arange(size)).reshape(-1)
    return items


# While levels are built their final numbers are not known: an entry that ends at the layer of a depth has a code.
def _no_occurrences(layers: Sequence[Layer]) -> Uint8Array:
    return np.zeros(2 * len(layers) + 1, dtype=np.uint8)


def _null_code(depth: int) -> int:
    return 2 * depth + 1


def _empty_code(depth: int) -> int:
    return 2 * depth + 2


def _number(
    layers: Sequence[Layer], codes: Uint16Array | None, occurs: Uint8Array
) -> tuple[LevelScheme, Uint16Array | None]:
    """Replace codes by levels, innermost layer first, giving levels only to what occurs."""
    kinds: list[int] = []
    levels = np.zeros(2 * len(layers) + 1, dtype=np.uint16)
    level = 0
    for depth in reversed(range(len(layers))):
        null, empty = bool(occurs[_null_code(depth)]), bool(occurs[_empty_code(depth)])
        # The reference counts what is in a null struct as null: without a level for that it misreads pages of lists,
        # and finds a value when it filters by a field.
        null = null or _is_in_null_struct(layers, occurs, depth)
        kinds.append(_LIST_KIND_OF[null, empty] if isinstance(layers[depth], Lists) else _ITEM_KIND_OF[null])
        if null:
            level += 1
            levels[_null_code(depth)] = level
        if empty:
            level += 1
            levels[_empty_code(depth)] = level
    scheme = scheme_of(tuple(kinds))
    if codes is None or not level:
        return scheme, None
    used = np.flatnonzero(occurs)
    if (levels[used] != used).any():
        kernels.renumber_levels(codes, levels)
    return scheme, codes


def _is_in_null_struct(layers: Sequence[Layer], occurs: Uint8Array, depth: int) -> bool:
    """Return whether a struct around a layer, inside of the next list, is ever null."""
    for outer in reversed(range(depth)):
        if isinstance(layers[outer], Lists):
            return False
        if occurs[_null_code(outer)]:
            return True
    return False


def decode_levels(scheme: LevelScheme, entries: Entries, dimensions: Sequence[int]) -> list[Layer]:
    """Rebuild layers, outermost first, from the levels of whole rows.

    `dimensions` gives, outermost first, the size of fixed-size lists and 0 for every other layer. The caller has
    checked that no level exceeds the scheme's, that the first entry starts a row, and that the scheme's innermost layer
    is one of items. Raises `CorruptValues` for fixed-size lists that are not whole.
    """
    layers: list[Layer] = []
    list_level = 0
    existing, length = entries.definition, entries.count
    if scheme.has_invisible:
        existing, length = _existing(scheme, 0, entries)
    for depth, kind in enumerate(scheme.kinds):
        if kind in _ITEM_KINDS:
            null = scheme.null_levels[depth]
            dimension = dimensions[len(dimensions) - 1 - depth]
            if dimension:
                entries = _collapse_fixed(scheme, depth, dimension, entries)
                existing = None if existing is None else existing[::dimension]
                length //= dimension
            validity = existing < null if existing is not None and null else None
            layers.append(FixedLists(length, dimension, validity) if dimension else Items(length, validity))
            continue
        list_level += 1
        lists, entries = _collapse(scheme, depth, list_level, entries)
        layers.append(lists)
        existing, length = _existing(scheme, depth + 1, entries)
    layers.reverse()
    return layers


def _existing(scheme: LevelScheme, depth: int, entries: Entries) -> tuple[Uint16Array | None, int]:
    """Return the levels of those entries that exist in the segment of layers from `depth` on, and how many they are.

    None where no layer of the segment has nulls, so that nobody asks for the levels.
    """
    definition = entries.definition
    if definition is None or depth == len(scheme.kinds):
        return None, entries.count
    end = scheme.segment_ends[depth - 1] if scheme.is_list(depth) else scheme.segment_ends[depth]
    if not scheme.has_nulls_from(depth):
        return None, int(np.count_nonzero(definition <= end))
    kept = new_array(entries.count, np.uint16)
    count = kernels.keep_levels(read_only(definition), end, kept) if entries.count else 0
    return kept[:count], count


def _collapse(scheme: LevelScheme, depth: int, list_level: int, entries: Entries) -> tuple[Lists, Entries]:
    """Return a layer of lists, and what is left of the entries for the layers around: those that start a list."""
    count, null, empty = entries.count, scheme.null_levels[depth], scheme.empty_levels[depth]
    rep = np.full(count, list_level, np.uint16) if entries.rep is None else entries.rep
    definition = np.empty(0, np.uint16) if entries.definition is None else entries.definition
    asked = any(scheme.is_list(outer) or scheme.null_levels[outer] for outer in range(depth + 1, len(scheme.kinds)))
    kept = count if asked or not len(definition) else 0
    left_rep, left_definition = new_array(kept, np.uint16), new_array(min(kept, len(definition)), np.uint16)
    offsets, present = new_array(count + 1, np.int64), new_bytes(len(definition))
    levels = list_level, scheme.segment_ends[depth - 1], scheme.segment_ends[depth], null or scheme.max_def + 1, empty
    num_entries, num_lists = kernels.collapse_lists(
        read_only(rep), read_only(definition), *levels, left_rep, left_definition, offsets, present
    )
    validity = present[:num_lists].view(np.bool_) if null and len(definition) else None
    left = Entries(
        num_entries,
        left_rep[:num_entries] if kept and entries.rep is not None else None,
        left_definition[:num_entries] if kept and entries.definition is not None else None,
    )
    return Lists(offsets[: num_lists + 1], validity), left


def _collapse_fixed(scheme: LevelScheme, depth: int, dimension: int, entries: Entries) -> Entries:
    """Return what is left of the entries around fixed-size lists: one for each list, of as many that agree."""
    count, rep, definition = entries.count // dimension, entries.rep, entries.definition
    check(count * dimension == entries.count, "levels that end inside a fixed-size list")
    if rep is not None:
        check(_agree(rep, dimension), "a list that begins inside a fixed-size list")
        rep = rep[::dimension]
    if definition is not None:
        if scheme.has_invisible:
            check(
                _agree(definition <= scheme.segment_ends[depth], dimension), "a fixed-size list that is there in part"
            )
        definition = definition[::dimension]
    return Entries(count, rep, definition)


def _agree(values: npt.NDArray[np.generic], dimension: int) -> bool:
    """Return whether each so many values are equal."""
    groups = values.reshape(-1, dimension)
    return bool((groups == groups[:, :1]).all())
