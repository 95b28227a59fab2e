"""Repetition and definition levels: the nesting of a column, flattened into two numbers for each entry.

The path from a column's root to a leaf passes layers: items (structs, and the leaf itself), lists, and fixed-size lists
of structs. The levels of one leaf encode all of them:

* Definition 0 is a value. Going outwards from the leaf, each layer that has nulls adds a level, and each list layer
  that has empty lists adds another. A level names the layer at which the entry ends: there it is null or empty, and
  all layers around exist.
* Repetition r starts new lists at the r innermost list layers. The highest level starts a row; 0 continues the
  innermost list.
* A fixed-size list repeats its entry, with its levels, for each of its items, even if the list is null or the entry
  ends in a layer around it. So each row starts as many times as the product of the fixed sizes around the leaf; pages
  count rows this way.

An entry that ends at a list layer, or outside it, has no value slot ("invisible"). Every other entry has a value slot,
null or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lance_ops import kernels
from lance_ops.core.arrow import new_array, new_bytes
from lance_ops.core.cached_property import cached_property
from lance_ops.core.ndarrays import BoolArray, Int64Array, Uint8Array, Uint16Array
from lance_ops.core.records import dataclass
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
_CONSECUTIVE = read_only(np.empty(0, np.int64))


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
    """The meaning of a page's levels: one `RepDefLayer` for each layer, innermost first."""

    kinds: tuple[int, ...]

    @cached_property
    def null_levels(self) -> tuple[int, ...]:
        """For each layer the definition level of a null, 0 if the layer has no nulls."""
        return tuple(null for null, _ in self._levels)

    @cached_property
    def empty_levels(self) -> tuple[int, ...]:
        """For each layer the definition level of an empty list, 0 if the layer has none."""
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
        """The highest definition level whose entries have a value slot."""
        return self.segment_ends[0]

    @cached_property
    def segment_ends(self) -> tuple[int, ...]:
        """For each layer the highest level of entries that exist there: levels rise outwards up to the next list."""
        ends, end = [0] * len(self.kinds), self.max_def
        for layer in reversed(range(len(self.kinds))):
            ends[layer] = end
            if self.is_list(layer):
                end = max((max(pair) for pair in self._levels[:layer]), default=0)
        return tuple(ends)

    def has_nulls_from(self, depth: int) -> bool:
        """Return whether a layer of items has nulls, from `depth` outwards up to the next list."""
        for layer in range(depth, len(self.kinds)):
            if self.is_list(layer):
                return False
            if self.null_levels[layer]:
                return True
        return False

    @property
    def has_invisible(self) -> bool:
        """Whether some entries have no value slot."""
        return self.max_def > self.max_visible_def

    def is_list(self, layer: int) -> bool:
        """Return whether a layer, counted from the innermost, is a list layer."""
        return self.kinds[layer] in _LIST_KINDS

    @staticmethod
    def is_known(kinds: Sequence[int]) -> bool:
        """Return whether this library supports every kind of layer."""
        return all(kind in _LIST_KINDS or kind in _ITEM_KINDS for kind in kinds)


@lru_cache(maxsize=256)
def scheme_of(kinds: tuple[int, ...]) -> LevelScheme:
    """Return the scheme of these layers. Most pages share a few schemes, whose properties are computed once."""
    return LevelScheme(kinds)


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Entries of a page. `rep` None: each entry starts a row. `definition` None: each entry is a value."""

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
    """The levels of some rows of one leaf, and the visible slots of the leaf's array.

    `num_rows` counts a row once for each of its starts. `rep` is None without lists, `definition` is None if every
    entry is a value. `slots` are positions in the leaf's array, in the order of entries: a slice if consecutive.
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
        """Return which entries have a value slot; None if all have one."""
        if self.definition is None or not self.scheme.has_invisible:
            return None
        return self.definition <= self.scheme.max_visible_def


def encode_levels(layers: Sequence[Layer]) -> EncodedLevels:
    """Flatten layers, outermost first. The scheme has only the levels that the data needs."""
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
                kernels.mark_nulls(read_only(present), _CONSECUTIVE, 0, 0, code, codes, occurs)
        if isinstance(layer, FixedLists):
            codes = None if codes is None else np.repeat(codes, layer.dimension)
            num_slots *= layer.dimension
    scheme, definition = _number(layers, codes, occurs)
    return EncodedLevels(scheme, num_slots, num_slots, None, definition, slice(0, num_slots))


@lru_cache(maxsize=256)
def _all_present(num_layers: int, num_slots: int) -> EncodedLevels:
    """Return the levels of values without nulls and lists, as most columns have: only a number of entries."""
    scheme = scheme_of((pb.REPDEF_ALL_VALID_ITEM,) * num_layers)
    return EncodedLevels(scheme, num_slots, num_slots, None, None, slice(0, num_slots))


def _encode_with_lists(layers: Sequence[Layer]) -> EncodedLevels:
    num_rows = layers[0].length
    codes, occurs = np.zeros(num_rows, np.uint16), _no_occurrences(layers)
    slots, first_slot, num_slots, ended = _CONSECUTIVE, 0, num_rows, 0
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
    """Return the slots of the items of fixed-size lists; those of missing lists stay negative."""
    items: Int64Array = (slots[:, None] * size + np.arange(size)).reshape(-1)
    return items


# The numbers of levels are known only at the end. Until then, an entry that ends at a layer has a code of its depth.
def _no_occurrences(layers: Sequence[Layer]) -> Uint8Array:
    return np.zeros(2 * len(layers) + 1, dtype=np.uint8)


def _null_code(depth: int) -> int:
    return 2 * depth + 1


def _empty_code(depth: int) -> int:
    return 2 * depth + 2


def _number(
    layers: Sequence[Layer], codes: Uint16Array | None, occurs: Uint8Array
) -> tuple[LevelScheme, Uint16Array | None]:
    """Replace codes by levels, from the innermost layer on; only codes that occur get a level."""
    kinds: list[int] = []
    levels = np.zeros(2 * len(layers) + 1, dtype=np.uint16)
    level = 0
    for depth in reversed(range(len(layers))):
        null, empty = bool(occurs[_null_code(depth)]), bool(occurs[_empty_code(depth)])
        # The reference counts values in a null struct as null. Without a level for these nulls, it misreads pages of
        # lists, and its filters find values there.
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
    """Return whether a struct around a layer, inside the next list, is null anywhere."""
    for outer in reversed(range(depth)):
        if isinstance(layers[outer], Lists):
            return False
        if occurs[_null_code(outer)]:
            return True
    return False


def decode_levels(scheme: LevelScheme, entries: Entries, dimensions: Sequence[int]) -> list[Layer]:
    """Rebuild layers, outermost first, from the levels of whole rows.

    `dimensions` has, outermost first, the size of fixed-size lists and 0 for every other layer. The caller has checked
    that no level is above the scheme's, that the first entry starts a row, and that the scheme's innermost layer is a
    layer of items. Raises `CorruptValues` for incomplete fixed-size lists.
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
    """Return the levels of the entries that exist in the segment of layers from `depth` on, and their number.

    The levels are None if no layer of the segment has nulls, since they are not needed then.
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
    """Return a layer of lists, and the entries that remain for the layers around: those that start a list."""
    needed = any(scheme.is_list(outer) or scheme.null_levels[outer] for outer in range(depth + 1, len(scheme.kinds)))
    if entries.definition is None:
        return _collapse_items(list_level, entries, needed=needed)
    count, definition, null = entries.count, entries.definition, scheme.null_levels[depth]
    rep = np.full(count, list_level, np.uint16) if entries.rep is None else entries.rep
    kept = count if needed else 0
    left_rep, left_definition = new_array(kept, np.uint16), new_array(kept, np.uint16)
    offsets, present = new_array(count + 1, np.int64), new_bytes(count)
    ends = scheme.segment_ends[depth - 1], scheme.segment_ends[depth]
    levels = list_level, *ends, null or scheme.max_def + 1, scheme.empty_levels[depth]
    num_entries, num_lists = kernels.collapse_lists(
        read_only(rep), read_only(definition), *levels, left_rep, left_definition, offsets, present
    )
    validity = present[:num_lists].view(np.bool_) if null else None
    left = Entries(
        num_entries,
        left_rep[:num_entries] if kept and entries.rep is not None else None,
        left_definition[:num_entries] if kept else None,
    )
    return Lists(offsets[: num_lists + 1], validity), left


def _collapse_items(list_level: int, entries: Entries, *, needed: bool) -> tuple[Lists, Entries]:
    """Do what `_collapse` does for entries that are all items; numpy is as quick at it as a kernel."""
    if entries.rep is None:
        return Lists(np.arange(entries.count + 1), None), entries
    starts = np.flatnonzero(entries.rep >= list_level)
    left = Entries(len(starts), entries.rep[starts] if needed else None)
    return Lists(np.append(starts, entries.count), None), left


def _collapse_fixed(scheme: LevelScheme, depth: int, dimension: int, entries: Entries) -> Entries:
    """Return one entry for each fixed-size list, whose items must have equal levels."""
    count, rep, definition = entries.count // dimension, entries.rep, entries.definition
    check(count * dimension == entries.count, "levels that end inside a fixed-size list")
    if rep is not None:
        check(_items_agree(rep, dimension), "a list that begins inside a fixed-size list")
        rep = rep[::dimension]
    if definition is not None:
        if scheme.has_invisible:
            check(
                _items_agree(definition <= scheme.segment_ends[depth], dimension),
                "a fixed-size list that exists only in part",
            )
        definition = definition[::dimension]
    return Entries(count, rep, definition)


def _items_agree(values: npt.NDArray[np.generic], dimension: int) -> bool:
    """Return whether the values of each group of `dimension` are equal."""
    groups = values.reshape(-1, dimension)
    return bool((groups == groups[:, :1]).all())
