from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_ops.core.errors import UnsupportedFeature
from lance_ops.core.versions import FileVersion
from lance_ops.encodings.choosing.choose import (
    Structure,
    choose_block,
    choose_dictionary,
    choose_levels,
    choose_mini_block,
    choose_structure,
    choose_zipped,
)
from lance_ops.encodings.choosing.options import NO_OPTIONS, EncodingOptions
from lance_ops.encodings.codecs import Lz4, Zstd
from lance_ops.encodings.compressive.byte_stream_split import ByteStreamSplitEncoding
from lance_ops.encodings.compressive.fixed_size_list import FixedSizeListEncoding
from lance_ops.encodings.compressive.flat import FlatEncoding
from lance_ops.encodings.compressive.fsst import FsstEncoding
from lance_ops.encodings.compressive.general import GeneralEncoding
from lance_ops.encodings.compressive.inline_bitpacking import InlineBitpackingEncoding
from lance_ops.encodings.compressive.out_of_line_bitpacking import OutOfLineBitpackingEncoding
from lance_ops.encodings.compressive.packed_struct import PackedStructEncoding
from lance_ops.encodings.compressive.rle import RleEncoding
from lance_ops.encodings.compressive.variable import VariableEncoding
from lance_ops.encodings.compressive.variable_packed_struct import VariablePackedStructEncoding
from lance_ops.encodings.contract import Encoding
from lance_ops.encodings.page_values.values import FixedSizeListValues, FixedWidth, PackedValues, Values, VariableWidth
from tests.encodings.samples import integers_of, place, plain, seeds, strings_of

V2_1, V2_2 = FileVersion.V2_1, FileVersion.V2_2
RANDOM = np.random.default_rng(7)
N = 10_000

unique_strings = [f"user-{i * 7919 % N:06d}@example.org".encode() for i in range(N)]
random_strings = [RANDOM.bytes(20) for _ in range(N)]
wide = integers_of(RANDOM.integers(0, 1 << 62, N), 64)


def mini_block(values: Values, **options: Any) -> Encoding:
    return choose_mini_block(values, EncodingOptions(**options), V2_2)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (FixedWidth(np.zeros(100, np.uint8), 1, 800), FlatEncoding(1)),
        (integers_of(RANDOM.integers(0, 256, N), 8), FlatEncoding(8)),
        (integers_of(RANDOM.integers(0, 1000, N), 32), InlineBitpackingEncoding(32)),
        (integers_of(np.arange(N), 64), InlineBitpackingEncoding(64)),
        (integers_of(RANDOM.integers(-5, 5, N), 32), FlatEncoding(32)),
        (integers_of(np.repeat(RANDOM.integers(0, 1 << 60, N // 50), 50), 64), RleEncoding(64)),
        (integers_of(np.repeat(np.arange(N // 2), 2), 16), InlineBitpackingEncoding(16)),
        (FixedWidth(np.zeros(16 * 10, np.uint8), 128, 10), FlatEncoding(128)),
        (integers_of([], 64), FlatEncoding(64)),
        (integers_of([3], 64), FlatEncoding(64)),
        (strings_of([b"few", b"strings"]), VariableEncoding(32)),
        (strings_of(random_strings), VariableEncoding(32)),
        (strings_of([]), VariableEncoding(32)),
        (strings_of([b""] * N, 64), VariableEncoding(64)),
        (FixedSizeListValues(integers_of(range(6), 32), 3), FixedSizeListEncoding(3, False, FlatEncoding(32))),
        (PackedValues((integers_of([1], 8), integers_of([2], 64))), PackedStructEncoding((8, 64))),
    ],
)
def test_the_smallest_encoding_is_chosen_unless_it_hardly_saves_anything(values: Values, expected: Encoding) -> None:
    assert mini_block(values) == expected


def test_strings_with_much_in_common_get_a_symbol_table_in_both_layouts() -> None:
    values = strings_of(unique_strings)
    assert isinstance(mini_block(values), FsstEncoding)
    assert isinstance(choose_zipped(values, NO_OPTIONS, V2_2), FsstEncoding)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"compression": "none"}, FlatEncoding(64)),
        ({"rle_threshold": 1.0}, RleEncoding(64)),
        ({"rle_threshold": 0.0}, InlineBitpackingEncoding(64)),
        ({"compression": "zstd", "byte_stream_split": "on", "compression_level": 5}, None),
        ({"compression": "lz4"}, None),
    ],
)
def test_a_fields_options_override_the_values(options: dict[str, object], expected: Encoding | None) -> None:
    values = integers_of(np.repeat(np.arange(N // 50), 50) * 1000, 64)
    chosen = mini_block(values, **options)
    if expected is not None:
        assert chosen == expected
    else:
        assert isinstance(chosen, GeneralEncoding)
        assert chosen.codec == (Lz4() if options["compression"] == "lz4" else Zstd(5))


def test_byte_streams_are_split_only_where_a_codec_follows() -> None:
    walk = np.cumsum(RANDOM.random(N)).astype(np.float64)
    values = FixedWidth(walk.view(np.uint8), 64, N)
    assert mini_block(values, compression="zstd") == GeneralEncoding(Zstd(), ByteStreamSplitEncoding(64))
    assert not isinstance(mini_block(values), GeneralEncoding)
    without = mini_block(values, compression="zstd", byte_stream_split="off")
    assert without != GeneralEncoding(Zstd(), ByteStreamSplitEncoding(64))


def test_a_codec_that_saves_nothing_is_left_out() -> None:
    assert mini_block(strings_of(random_strings), compression="zstd") == VariableEncoding(32)
    assert mini_block(strings_of([b"a"] * 10), compression="zstd") == VariableEncoding(32)
    assert mini_block(strings_of(unique_strings), compression="zstd") == GeneralEncoding(Zstd(), VariableEncoding(32))


@pytest.mark.parametrize(
    ("values", "version", "num_entries"),
    [
        (strings_of([f"colour {i % 9}".encode() for i in range(N)]), V2_1, 9),
        (strings_of([f"colour {i % 9}".encode() for i in range(N)], 64), V2_2, 9),
        (strings_of([b"x" * 500 + bytes([i % 3]) for i in range(200)]), V2_2, 3),
        (integers_of(RANDOM.integers(0, 40, N) << 50, 64), V2_2, 40),
        (integers_of(RANDOM.integers(0, 40, N) << 50, 64), V2_1, None),
        (FixedWidth(np.tile(np.arange(32, dtype=np.uint8), 500), 128, 1000), V2_2, 2),
        (integers_of(RANDOM.integers(0, 40, N), 32), V2_2, None),
        (integers_of(np.arange(N) % 100, 64), V2_2, None),
        (strings_of(unique_strings), V2_2, None),
        (strings_of([b"a", b"b"] * 40), V2_2, None),
        (FixedSizeListValues(integers_of(np.zeros(N), 32), 2), V2_2, None),
    ],
)
def test_a_dictionary_is_made_where_it_saves_space_and_the_version_allows_it(
    values: Values, version: FileVersion, num_entries: int | None
) -> None:
    made = choose_dictionary(values, NO_OPTIONS, version)
    assert (made.entries.num_values if made else None) == num_entries
    if made is not None:
        entries = [plain(made.entries.slice(i, i + 1)) for i in range(made.entries.num_values)]
        sampled = range(0, values.num_values, 37)
        indices = made.indices.as_integers()
        assert [entries[indices[i]] for i in sampled] == [plain(values.slice(i, i + 1)) for i in sampled]


@pytest.mark.parametrize(
    "options",
    [
        EncodingOptions(compression="none"),
        EncodingOptions(compression="fsst"),
        EncodingOptions(structural_encoding="fullzip"),
        EncodingOptions(dict_divisor=5000),
        EncodingOptions(dict_size_ratio=0.0001),
    ],
)
def test_a_fields_options_can_do_without_a_dictionary(options: EncodingOptions) -> None:
    values = strings_of([f"colour {i % 9}".encode() for i in range(N)])
    assert choose_dictionary(values, NO_OPTIONS, V2_2) is not None
    assert choose_dictionary(values, options, V2_2) is None


@pytest.mark.parametrize(
    ("values", "structure"),
    [
        (strings_of([b"x" * 255]), Structure.MINI_BLOCK),
        (strings_of([b"x" * 256]), Structure.FULL_ZIP),
        (strings_of([]), Structure.MINI_BLOCK),
        (FixedSizeListValues(integers_of(range(63), 32), 63), Structure.MINI_BLOCK),
        (FixedSizeListValues(integers_of(range(64), 32), 64), Structure.FULL_ZIP),
        (FixedWidth(np.zeros(1000, np.uint8), 8000, 1), Structure.FULL_ZIP),
        (PackedValues((integers_of([1], 8),)), Structure.MINI_BLOCK),
        (PackedValues((integers_of([1], 8), strings_of([b"a"]))), Structure.FULL_ZIP),
    ],
)
def test_a_large_value_makes_a_full_zip_page(values: Values, structure: Structure) -> None:
    assert choose_structure(values) is structure


def test_a_field_can_ask_for_a_layout() -> None:
    values = strings_of([b"short"])
    assert choose_structure(values, EncodingOptions(structural_encoding="fullzip")) is Structure.FULL_ZIP
    assert choose_structure(values, EncodingOptions(structural_encoding="miniblock")) is Structure.MINI_BLOCK


def test_huge_documents_are_compressed_one_by_one_and_noise_is_not() -> None:
    assert choose_zipped(strings_of([b"some text " * 9000] * 3), NO_OPTIONS, V2_2) == (
        GeneralEncoding(Zstd(), VariableEncoding(32))
    )
    assert choose_zipped(strings_of([RANDOM.bytes(90_000)]), NO_OPTIONS, V2_2) == VariableEncoding(32)


def test_packed_rows_encode_each_child_and_need_2_2() -> None:
    lists = FixedSizeListValues(integers_of(range(4), 32), 2)
    values = PackedValues((integers_of([1, 2], 16), strings_of([b"a", b"b"], 64), lists))
    chosen = choose_zipped(values, NO_OPTIONS, V2_2)
    assert isinstance(chosen, VariablePackedStructEncoding)
    assert [(child.bits, child.is_variable) for child in chosen.children] == [(16, False), (64, True), (64, False)]
    with pytest.raises(UnsupportedFeature, match=r"file version 2\.1"):
        choose_zipped(values, NO_OPTIONS, V2_1)
    with pytest.raises(UnsupportedFeature, match="booleans"):
        choose_zipped(PackedValues((FixedWidth(np.zeros(1, np.uint8), 1, 1), strings_of([b"a"]))), NO_OPTIONS, V2_2)


def test_entries_are_compressed_where_the_version_allows_it_and_it_helps() -> None:
    repetitive, noise = strings_of([b"a long and a long and a long entry" * 3]), strings_of(random_strings[:9])
    assert choose_block(repetitive, NO_OPTIONS, V2_2) == GeneralEncoding(Lz4(), VariableEncoding(32))
    assert choose_block(repetitive, NO_OPTIONS, V2_1) == VariableEncoding(32)
    assert choose_block(noise, NO_OPTIONS, V2_2) == VariableEncoding(32)
    zstd = EncodingOptions(dict_values_compression="zstd")
    assert choose_block(repetitive, zstd, V2_2) == GeneralEncoding(Zstd(), VariableEncoding(32))
    assert choose_block(repetitive, EncodingOptions(dict_values_compression="none"), V2_2) == VariableEncoding(32)


def test_levels_are_packed_or_in_runs_and_runs_need_2_2() -> None:
    counts = np.array([1024, 1024, 100])
    mixed, sparse = RANDOM.integers(0, 2, 2148), np.arange(2148) == 77
    packed = OutOfLineBitpackingEncoding(16, 1)
    assert choose_levels(integers_of(mixed, 16), counts, V2_2) == packed
    assert choose_levels(integers_of(sparse, 16), counts, V2_2) == RleEncoding(16)
    assert choose_levels(integers_of(sparse, 16), counts, V2_1) == packed
    assert choose_levels(integers_of(mixed * 5, 16), counts, V2_1) == OutOfLineBitpackingEncoding(16, 3)
    few = np.array([3])
    assert choose_levels(integers_of([0, 0, 1], 16), few, V2_1) == FlatEncoding(16)


@given(seeds, st.integers(0, 64), st.sampled_from([8, 16, 32, 64]), st.integers(1, 60), st.sampled_from([0, 3, N]))
@settings(max_examples=60)
def test_the_encoding_chosen_for_integers_is_never_much_larger_than_the_best(
    seed: int, width: int, bits: int, run: int, count: int
) -> None:
    random = np.random.default_rng(seed)
    words = np.frombuffer(random.bytes(8 * (count // run + 1)), np.uint64) & np.uint64((1 << width) - 1)
    values = integers_of(np.repeat(words, run)[:count], bits)
    chosen = mini_block(values)
    assert plain(chosen.decode_chunks(place(chosen.encode_chunks(values)))) == plain(values)
    least = min(size_of(encoding, values) for encoding in (FlatEncoding(bits), RleEncoding(bits)))
    assert size_of(chosen, values) <= max(least, 64) * 1.1


def size_of(encoding: Encoding, values: FixedWidth | VariableWidth) -> int:
    return sum(int(sizes.sum()) for sizes in encoding.encode_chunks(values).sizes)


def test_the_same_values_make_the_same_choice() -> None:
    values = strings_of(unique_strings)
    assert mini_block(values) == mini_block(values)
