from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_ops import kernels
from lance_ops.kernels.read_only_arrays import read_only
from tests.kernels import twins

Table = tuple["np.ndarray[tuple[int], np.dtype[np.uint64]]", "np.ndarray[tuple[int], np.dtype[np.int64]]"]


def table_of(symbols: list[bytes], size: int = 256) -> Table:
    words, lengths = np.zeros(size, np.uint64), np.zeros(size, np.int64)
    for code, symbol in enumerate(symbols):
        words[code], lengths[code] = int.from_bytes(symbol, "little"), len(symbol)
    return read_only(words), read_only(lengths)


def train(strings: list[bytes]) -> list[bytes]:
    words, lengths = np.zeros(255, np.uint64), np.zeros(255, np.int64)
    offsets = np.cumsum([0, *map(len, strings)]).astype(np.int64)
    data = read_only(np.frombuffer(b"".join(strings), np.uint8))
    num_symbols, num_codes = kernels.fsst_train(data, read_only(offsets), words, lengths)
    symbols = [int(words[i]).to_bytes(8, "little")[: lengths[i]] for i in range(num_symbols)]
    assert num_codes == sum(map(len, encode(strings, symbols)))
    return symbols


def encode(strings: list[bytes], symbols: list[bytes]) -> list[bytes]:
    offsets = np.cumsum([0, *map(len, strings)]).astype(np.int64)
    out, ends = np.zeros(2 * int(offsets[-1]) + 32, np.uint8), np.zeros(len(offsets), np.int64)
    data = read_only(np.frombuffer(b"".join(strings), np.uint8))
    kernels.fsst_encode(data, read_only(offsets), *table_of(symbols, 255), out, ends)
    return [out[a:b].tobytes() for a, b in itertools.pairwise(ends)]


def decode(codes: list[bytes], symbols: list[bytes]) -> tuple[int, list[bytes]]:
    sizes = np.array([len(code) for code in codes], np.int64)
    data = read_only(np.frombuffer(b"".join(codes), np.uint8))
    out, ends = np.zeros(8 * len(data) + 8, np.uint8), np.zeros(len(codes) + 1, np.int64)
    starts = read_only(np.cumsum(sizes) - sizes)
    decoded = kernels.fsst_decode(data, starts, read_only(sizes), *table_of(symbols), out, ends)
    return decoded, [out[a:b].tobytes() for a, b in itertools.pairwise(ends[: decoded + 1])]


strings = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.lists(st.sampled_from([b"http://", b"www.", b"lance", b".org/", b"\0", b"\0\0a"]), max_size=8).map(b"".join),
    ),
    max_size=20,
)


@given(strings)
def test_values_encoded_with_a_trained_table_decode_to_themselves(values: list[bytes]) -> None:
    symbols = train(values)
    codes = encode(values, symbols)
    assert [twins.fsst_decode(code, symbols) for code in codes] == values
    assert decode(codes, symbols) == (len(values), values)


@given(strings, st.lists(st.binary(min_size=1, max_size=8), max_size=255, unique=True))
def test_any_table_encodes_any_bytes(values: list[bytes], symbols: list[bytes]) -> None:
    assert decode(encode(values, symbols), symbols) == (len(values), values)


def test_symbols_never_reach_into_the_next_value() -> None:
    symbols = [b"ab", b"abcd", b"a\0"]
    assert encode([b"a", b"bcd", b"a", b"\0", b"ab"], symbols) == [
        b"\xffa",
        b"\xffb\xffc\xffd",
        b"\xffa",
        b"\xff\0",
        b"\0",
    ]


def test_a_trained_table_has_distinct_symbols_of_one_to_eight_bytes_and_shrinks_text() -> None:
    values = [f"https://lance.org/page/{i % 97}?session={i}".encode() for i in range(500)]
    symbols = train(values)
    assert 0 < len(symbols) <= 255
    assert len(set(symbols)) == len(symbols)
    assert all(1 <= len(symbol) <= 8 for symbol in symbols)
    assert sum(map(len, encode(values, symbols))) < 0.4 * sum(map(len, values))


@pytest.mark.parametrize("codes", [b"\x02", b"\x00\xfe", b"\xff", b"\x01\xff"])
def test_decoding_stops_at_a_code_without_a_symbol_or_a_cut_escape(codes: bytes) -> None:
    decoded, values = decode([b"\x00\x01\xffz", codes, b"\x00"], [b"a", b"bcdefghi"])
    assert (decoded, values) == (1, [b"abcdefghiz"])


@given(strings, st.sampled_from([4, 8]), st.integers(1, 5))
def test_decoding_chunks_equals_decoding_their_values(values: list[bytes], width: int, per_chunk: int) -> None:
    symbols = train(values)
    codes = encode(values, symbols)
    groups = [codes[i : i + per_chunk] for i in range(0, len(codes), per_chunk)]
    decoded, found = decode_chunks(
        [chunk_of(group, width) for group in groups], [len(g) for g in groups], width, symbols
    )
    assert (decoded, found) == (len(groups), values)


@pytest.mark.parametrize("offsets", [[0, 4], [12, 11], [8, 99], [8, 1 << 31]])
def test_decoding_stops_at_a_chunk_with_wrong_offsets(offsets: list[int]) -> None:
    chunk = np.array(offsets, "<u4").tobytes() + b"\x00" * 8
    assert decode_chunks([chunk], [1], 4, [b"a"])[0] == 0


@pytest.mark.parametrize("symbols", [[], [b"a"], [b"a"] * 128, [b"a"] * 129, [b"a"] * 255])
@pytest.mark.parametrize("place", range(12))
def test_decoding_chunks_stops_at_a_code_without_a_symbol_at_any_place(symbols: list[bytes], place: int) -> None:
    code = min(len(symbols), 254)
    codes = bytearray(b"\xffz" * 6 if not symbols else [len(symbols) - 1] * 12)
    good, at = bytes(codes), place - place % 2
    codes[at] = code
    decoded, values = decode_chunks([chunk_of([good], 4), chunk_of([bytes(codes)], 4)], [1, 1], 4, symbols)
    assert decoded == (2 if len(symbols) == 255 else 1)
    assert values[0] == twins.fsst_decode(good, symbols)


@pytest.mark.parametrize("before", [0, 1, 7, 8])
def test_decoding_chunks_stops_at_an_escape_that_crosses_values(before: int) -> None:
    codes = [b"\x00" * before + b"\xff", b"\x00" * 9]
    assert decode_chunks([chunk_of(codes, 4)], [2], 4, [b"a"])[0] == 0


def chunk_of(codes: list[bytes], width: int) -> bytes:
    ends = np.cumsum([(len(codes) + 1) * width, *map(len, codes)]).astype(f"<u{width}")
    return ends.tobytes() + b"".join(codes)


def decode_chunks(chunks: list[bytes], counts: list[int], width: int, symbols: list[bytes]) -> tuple[int, list[bytes]]:
    sizes = np.array([len(chunk) for chunk in chunks], np.int64)
    data = read_only(np.frombuffer(b"".join(chunks), np.uint8))
    out, ends = np.zeros(8 * len(data) + 8, np.uint8), np.zeros(sum(counts) + 1, np.int64)
    starts, per_chunk = read_only(np.cumsum(sizes) - sizes), read_only(np.array(counts, np.int64))
    code_ends, where = np.zeros(max(sizes, default=0) + 1, np.int64), (data, starts, read_only(sizes), per_chunk, width)
    decoded = kernels.fsst_decode_chunks(*where, *table_of(symbols), code_ends, out, ends)
    return decoded, [out[a:b].tobytes() for a, b in itertools.pairwise(ends)]
