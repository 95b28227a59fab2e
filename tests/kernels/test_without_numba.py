"""The twins of kernels in numpy give the kernels' answers, or leave the answer to the kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lance_ops import kernels
from lance_ops.core.ndarrays import Int64Array, Uint8Array
from lance_ops.encodings import CorruptValues
from lance_ops.encodings.codecs import Lz4
from lance_ops.file import LanceFileReader, LanceFileWriter
from lance_ops.kernels.chunks import cut_chunks, read_headers, write_headers, write_parts
from lance_ops.kernels.dictionary_strings import place_items
from lance_ops.kernels.fastlanes import pack_runs, read_widths, unpack_blocks
from lance_ops.kernels.fsst import fsst_decode, fsst_decode_chunks, fsst_encode, fsst_train
from lance_ops.kernels.hashing import hash_values, is_dictionary_of, number_distinct
from lance_ops.kernels.levels import mark_nulls, renumber_levels
from lance_ops.kernels.read_only_arrays import read_only
from lance_ops.kernels.single_values import locate_values, pick_packed, pick_strings
from lance_ops.kernels.strings import join_strings, split_strings
from lance_ops.kernels.value_statistics import measure_integers
from lance_ops.kernels.without_numba import TWINS

SEEDS = range(40)
WRITERS = {
    "count_children",
    "count_chunk_rows",
    "cut_chunks",
    "end_chunks",
    "expand_lists",
    "fsst_encode",
    "fsst_train",
    "hash_values",
    "is_dictionary_of",
    "mark_nulls",
    "measure_integers",
    "number_distinct",
    "pack_runs",
    "renumber_levels",
    "split_strings",
    "write_headers",
    "write_parts",
}
OF_LEVELS = {"collapse_lists", "count_children", "count_chunk_rows", "end_chunks", "expand_lists", "keep_levels"}
"""`test_levels.py` and `test_chunks.py` compare these."""
OF_INDICES = {"sort_words"}
"""No file needs these; `test_sorting.py` compares them."""


def rows() -> pa.Table:
    rng = np.random.default_rng(5)
    numbers = rng.permutation(5000)
    words = [f"customer-{number}-\u00e9" for number in numbers]
    return pa.table(
        {
            **{f"u{bits}": pa.array(numbers % (1 << min(bits - 1, 12)), f"uint{bits}") for bits in (8, 16, 32, 64)},
            "zero": np.zeros(5000, np.int64),
            "wide": rng.integers(0, 1 << 63, 5000, np.uint64),
            "signed": -numbers,
            "maybe": pa.array([None if number % 3 else number for number in numbers.tolist()]),
            "fsst": words,
            "raw": [rng.bytes(number % 9) for number in numbers.tolist()],
            "large": pa.array(words, pa.large_string()),
            "few": [f"customer {number % 50}" if number % 7 else None for number in numbers.tolist()],
            "lists": [[number, None, number][: number % 4] for number in numbers.tolist()],
        }
    )


def let_twins_answer(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Put the twins in the kernels' places; return a set that gets the names of those that are called."""
    called = set[str]()

    def always(name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            called.add(name)
            answer = TWINS[name](*arguments)
            assert answer is not None, name
            return answer

        return call

    for name in TWINS:
        monkeypatch.setattr(kernels, name, always(name), raising=False)
    return called


def write(path: Path, table: pa.Table) -> bytes:
    with LanceFileWriter(str(path)) as writer:
        writer.write_batch(table)
    return path.read_bytes()


def test_whole_files_are_read_alike_by_twins_and_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, table = str(tmp_path / "rows.lance"), rows()
    with LanceFileWriter(path) as writer:
        writer.write_batch(table)
    called = let_twins_answer(monkeypatch)
    assert LanceFileReader(path).read_all().to_table().combine_chunks() == table
    few = [0, 17, 1023, 1024, 3000, 4999]
    assert LanceFileReader(path).take_rows(few).to_table() == table.take(few)
    assert called == TWINS.keys() - WRITERS - OF_INDICES


def test_whole_files_are_written_alike_by_twins_and_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    structs = pa.array([{"x": number if number % 3 else None} if number % 7 else None for number in range(5000)])
    maybe_words = pa.array([None if number % 3 else f"word {number % 11} of many words" for number in range(5000)])
    table = rows().append_column("structs", structs).append_column("maybe_words", maybe_words)
    written = write(tmp_path / "by kernels", table)
    called = let_twins_answer(monkeypatch)
    assert write(tmp_path / "by twins", table) == written
    assert called == WRITERS


def agree(name: str, kernel: Callable[..., int | None], inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> bool:
    """Call both with the same arrays; a twin that answers must answer and write what the kernel does."""
    arrays = [read_only(each) if isinstance(each, np.ndarray) else each for each in inputs]
    ours, theirs = [each.copy() for each in outputs], [each.copy() for each in outputs]
    found = TWINS[name](*arrays, *ours)
    expected = kernel(*arrays, *theirs)
    if found is not None:
        assert found == expected or expected is None, name
        assert [each.tobytes() for each in ours] == [each.tobytes() for each in theirs], name
    return found is not None


def ranges(rng: np.random.Generator, room: int, least: int) -> tuple[Int64Array, Int64Array]:
    """Return starts and sizes of a few ranges in an array, each at least so long."""
    starts = rng.integers(0, room - least, 3)
    return starts, np.array([rng.integers(least, room - start + 1) for start in starts.tolist()])


def noise(rng: np.random.Generator, size: int, small: float = 0.8) -> Uint8Array:
    """Return bytes of which this share is small, so that some of the numbers that they hold are in bounds."""
    return np.where(rng.random(size) < small, rng.integers(0, 3, size), rng.integers(0, 256, size)).astype(np.uint8)


def no(size: int, kind: Any = np.int64) -> Any:
    return np.zeros(size, kind)


def test_twins_of_malformed_chunks_answer_as_the_kernels_or_leave_it_to_them() -> None:
    answered: dict[str, set[bool]] = {}

    def check(name: str, kernel: Callable[..., int], inputs: tuple[Any, ...], *outputs: Any) -> None:
        answered.setdefault(name, set()).add(agree(name, kernel, inputs, outputs))

    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        data = noise(rng, 400) if seed % 2 else np.eye(400, dtype=np.uint8)[seed] * 3
        starts, sizes = ranges(rng, 400, 40)
        check("read_headers", read_headers, (data, starts, starts + sizes, 1, 2, 4), no(3), no(9), no(9))
        check("read_widths", read_widths, (data, starts, sizes, 4), no(3))
        bits = (8, 16, 32, 64)[seed % 4]
        block, widths = noise(rng, 4000), rng.integers(-1, bits + 1, 3) if seed % 3 else rng.integers(0, 5, 3)
        at, places = rng.integers(0, 3000, 3), rng.integers(0, 1100 if seed % 2 else 1024, 3)
        check("unpack_blocks", unpack_blocks, (block, at, widths, places, bits), no(places.max() + 128 * bits, "u1"))
        check("pick_packed", pick_packed, (block, at, widths, places, bits), no(3, np.uint64))
        offsets = np.sort(rng.integers(36, 60, 9)).astype("<u4")
        if seed % 2:
            offsets[rng.integers(0, 9)] = rng.integers(0, 90)
        strings = np.append(offsets.view(np.uint8), noise(rng, 64))
        strings_at, counts = np.array([0, 12, 24]), np.array([2, 2, 2])
        chunk_of, within = np.array([0, 0, 2]), np.array([0, 1, 1])
        chunks = strings, strings_at, np.full(3, 64), counts
        check("pick_strings", pick_strings, (*chunks, chunk_of, within, 4), no(3), no(3))
        _compare_strings(answered, rng, chunks)
        items = np.cumsum(rng.integers(-1 if seed % 2 else 0, 6, 6)).astype(np.int32)
        chosen, there = rng.integers(0, 6 if seed % 3 else 5, 8).astype(np.uint32), noise(rng, 8)
        check("place_items", place_items, (items, 20, chosen, there[: 8 * (seed % 2)]), no(9, np.int32))
        bounds, wanted = np.cumsum(rng.integers(0, 9, 9)), np.sort(rng.integers(0, 9, 7))
        if bounds[0] == 0 and bounds[-1] > 9:
            check("locate_values", locate_values, (bounds, wanted), no(7), no(7), no(7))
    readers = TWINS.keys() - WRITERS - OF_LEVELS - OF_INDICES
    assert {name for name, ways in answered.items() if True in ways} == readers - {"repeat_items"}
    assert {name for name, ways in answered.items() if False in ways} == readers - {"repeat_items", "locate_values"}


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("counts", [[], [1024], [1024, 1024, 1024], [1024, 7, 1024, 1024, 0, 0, 9]])
@pytest.mark.parametrize("least_width", [0, 3, 5])
def test_blocks_of_few_values_are_overlaid_by_the_next_block(bits: int, counts: list[int], least_width: int) -> None:
    rng = np.random.default_rng(bits)
    block = noise(rng, 4000)
    starts, widths = rng.integers(0, 3000, len(counts)), rng.integers(least_width, 6, len(counts))
    places = bits // 8 * (np.cumsum(counts, dtype=np.int64) - np.array(counts, np.int64))
    room = places.max(initial=0) + 128 * bits
    assert agree("unpack_blocks", unpack_blocks, (block, starts, widths, places, bits), (no(room, "u1"),))


def test_twins_that_write_give_the_kernels_answers() -> None:
    answered: dict[str, set[bool]] = {}

    def check(name: str, kernel: Callable[..., int | None], inputs: tuple[Any, ...], *outputs: Any) -> None:
        answered.setdefault(name, set()).add(agree(name, kernel, inputs, outputs))

    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        num = (0, 1, 5, 3000)[seed % 4]
        bits = (8, 16, 32, 64)[seed // 4 % 4]
        top = int(rng.integers(1, bits + 1))
        integers = (rng.integers(0, 1 << 64, num, np.uint64) >> np.uint64(64 - top)).astype(f"u{bits // 8}")
        integers[: num // 2] = integers[: num // 2] & 3
        blocks = -(-num // 1024)
        check("measure_integers", measure_integers, (integers, 1024), np.zeros(blocks, integers.dtype))
        full = np.full(blocks, 1024, np.int64)
        full[-1:] = num - 1024 * (blocks - 1)
        for counts in (
            full,
            np.array([each for each in (7, 0, num - 7, 0) if 0 <= each <= 1024 and num >= 7], np.int64),
        ):
            for width in (-1, max(top - 2, 0), bits):
                room = len(counts) * (bits // 8 + 128 * bits)
                packed = integers[: int(counts.sum())].view(np.uint8)
                check("pack_runs", pack_runs, (packed, counts, width, bits), no(room, "u1"), no(len(counts)))
        offsets = np.append(3, 3 + np.cumsum(np.minimum(rng.integers(0, 9, num) ** 3 // 5, 90)))
        data = noise(rng, int(offsets[-1]) + seed % 3)
        costs = offsets + 4 * np.arange(num + 1)
        check("cut_chunks", cut_chunks, (costs, 4, int(rng.integers(1, 6000)), 2 ** int(rng.integers(0, 13))), no(num))
        for width in (4, 8):
            counts = np.diff(np.unique(np.append(rng.integers(0, num + 1, 3), [0, num])))
            out, sizes = no(len(data) + width * (num + 3 * len(counts)), "u1"), no(len(counts))
            check("split_strings", split_strings, (data, offsets, counts, width), out, sizes)
        _check_hashes(check, rng, data, offsets)
        _check_chunks_written(check, rng)
        codes, levels = rng.integers(0, 4, num).astype(np.uint16), rng.integers(0, 9, 4).astype(np.uint16)
        renumbered = [codes.copy(), codes.copy()]
        for call, each in zip((TWINS["renumber_levels"], renumber_levels), renumbered, strict=True):
            call(each, read_only(levels))
        assert renumbered[0].tolist() == renumbered[1].tolist()
        present = rng.integers(0, 2, num + 2).astype(np.uint8) | (seed % 5 == 0)
        slots = rng.integers(0, num + 2, num) if seed % 2 else no(0)
        check("mark_nulls", mark_nulls, (present, slots, 2, 1, 3), codes, no(4, "u1"))
    assert answered == {
        name: {True} for name in WRITERS - OF_LEVELS - {"fsst_encode", "fsst_train", "renumber_levels", "write_parts"}
    }


@pytest.mark.parametrize("seed", range(12))
def test_fsst_is_trained_and_encoded_alike_by_twin_and_kernel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    words = [rng.bytes(int(size)) for size in rng.integers(0, 11, 30)]
    values = [b"-".join(words[number] for number in rng.integers(0, 30, each)) for each in rng.integers(0, 5, 1200)]
    if seed % 4 == 0:
        values = [rng.bytes(int(size)) for size in rng.integers(0, 20, (0, 1, 400)[seed // 4])]
    offsets = read_only(np.append(0, np.cumsum([len(value) for value in values], dtype=np.int64)))
    data = read_only(np.frombuffer(b"".join(values), np.uint8))
    tables = [(no(255, np.uint64), no(255)) for _ in range(2)]
    assert TWINS["fsst_train"](data, offsets, *tables[0]) == fsst_train(data, offsets, *tables[1])
    assert [each.tobytes() for each in tables[0]] == [each.tobytes() for each in tables[1]]
    symbols, lengths = (read_only(each) for each in tables[0])
    written = []
    for call in (TWINS["fsst_encode"], fsst_encode):
        out, ends = no(2 * len(data) + 32, np.uint8), no(len(values) + 1)
        call(data, offsets, symbols, lengths, out, ends)
        written.append((ends.tolist(), out[: ends[-1]].tobytes()))
    assert written[0] == written[1]


def test_fsst_of_long_values_is_left_to_the_kernels() -> None:
    data, offsets, table = no(600, np.uint8), np.array([0, 600]), (no(255, np.uint64), no(255))
    assert TWINS["fsst_train"](data, offsets, *table) is None
    assert TWINS["fsst_encode"](data, offsets, *table, no(1300, np.uint8), no(2)) is None


def _check_hashes(check: Callable[..., None], rng: np.random.Generator, data: Uint8Array, offsets: Int64Array) -> None:
    sizes, num = np.diff(offsets), len(offsets) - 1
    for end_bytes in (8, 32, max(len(data), 1)):
        check("hash_values", hash_values, (data, offsets[:-1], sizes, end_bytes), no(num, "u8"))
    words = rng.integers(0, 40, num).astype(np.uint64)
    for room in (0, 10, 40):
        firsts, indices = no(room), no(num, "u4")
        if number_distinct(words, firsts.copy(), indices.copy()) >= 0:
            check("number_distinct", number_distinct, (words,), firsts, indices)
        else:
            assert TWINS["number_distinct"](words, firsts, indices) == -1
    firsts, indices = no(num), no(num, "u4")
    hashes = no(num, "u8")
    hash_values(data, offsets[:-1], sizes, len(data), hashes)
    found = number_distinct(hashes, firsts, indices)
    check("is_dictionary_of", is_dictionary_of, (data, offsets, firsts[:found], indices))
    if num:
        wrong = indices.copy()
        wrong[rng.integers(0, num)] = rng.integers(0, found)
        check("is_dictionary_of", is_dictionary_of, (data, offsets, firsts[:found], wrong))


def _check_chunks_written(check: Callable[..., None], rng: np.random.Generator) -> None:
    num_chunks, num_level_parts, num_buffers = (int(rng.integers(least, 4)) for least in (0, 0, 1))
    width = int(rng.choice([2, 4]))
    counts = 2 ** rng.integers(0, 13, num_chunks)
    counts[-1:] = 77
    sizes = rng.integers(0, 999, (num_level_parts + num_buffers) * num_chunks)
    room, places = int(sizes.sum()) + 99 * (num_chunks + len(sizes)), no(num_chunks)
    header = (counts, counts, sizes, num_level_parts, width)
    check("write_headers", write_headers, header, no(room, "u1"), places, no(num_chunks))
    write_headers(*header, no(room, "u1"), places, no(num_chunks))

    part = sizes[:num_chunks]
    data = noise(rng, int(part.sum()))
    written = [(places.copy(), no(room, "u1")) for _ in range(2)]
    for call, (ends, out) in zip((TWINS["write_parts"], write_parts), written, strict=True):
        call(read_only(data), read_only(part), ends, out)
    assert [each.tobytes() for each in written[0]] == [each.tobytes() for each in written[1]]


def _compare_strings(answered: dict[str, set[bool]], rng: np.random.Generator, chunks: tuple[Any, ...]) -> None:
    """Compare what is decoded: a kernel may write whole words, and so beyond the last string."""
    num_symbols = int(rng.integers(1, 4))
    lengths = np.append(rng.integers(1, 9, num_symbols), no(256 - num_symbols))
    symbols = rng.integers(0, 1 << 63, 256, np.uint64)
    codes = chunks[0].copy()
    if rng.random() < 0.5:
        codes[36:] %= num_symbols
    codes[36:][codes[36:] > 3] = 255
    starts, sizes = ranges(rng, 100, 0)
    of_chunks = (codes, *chunks[1:], 4)
    calls: tuple[tuple[str, Callable[..., int], tuple[Any, ...], int], ...] = (
        ("fsst_decode", fsst_decode, (codes, starts, sizes, symbols, lengths), 3),
        ("fsst_decode_chunks", fsst_decode_chunks, (*of_chunks, symbols, lengths, no(65)), 6),
        ("join_strings", join_strings, of_chunks, 6),
    )
    for name, kernel, inputs, values in calls:
        results = []
        for call in (TWINS[name], kernel):
            arrays = [read_only(each) if isinstance(each, np.ndarray) else each for each in inputs]
            if name == "fsst_decode_chunks":
                arrays[-1] = no(65)  # which the kernel writes to
            out, ends = no(3000, np.uint8), no(values + 1)
            found = call(*arrays, out, ends)
            results.append((found, ends.tolist(), out[: ends[-1]].tobytes()))
        answered.setdefault(name, set()).add(results[0][0] is not None)
        assert results[0][0] is None or results[0] == results[1], name


@pytest.mark.parametrize("blocks", [[b"a" * 999, b"", b"lance" * 7], [b""], []])
def test_lz4_blocks_are_decompressed_by_arrow_only_if_they_are_as_long_as_stated(
    blocks: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, sizes = Lz4().compress(
        np.frombuffer(b"".join(blocks), np.uint8), np.array([len(b) for b in blocks], np.int64)
    )
    starts = np.cumsum(sizes) - sizes
    monkeypatch.setattr(kernels, "lz4_decode", None, raising=False)
    monkeypatch.setattr(kernels, "do_without_numba", lambda size: True, raising=False)
    assert Lz4().decompress(data, starts, sizes)[0].tobytes() == b"".join(blocks)
    monkeypatch.undo()
    monkeypatch.setattr(kernels, "do_without_numba", lambda size: True, raising=False)
    for change in (-1, 1) if any(blocks) else ():
        wrong = data.copy()
        wrong[:4] = np.array([len(blocks[0]) + change], "<u4").view(np.uint8)
        with pytest.raises(CorruptValues, match="LZ4"):
            Lz4().decompress(wrong, starts, sizes)


@pytest.mark.parametrize(("size", "is_short"), [(1 << 20, True), ((1 << 20) + 1, False)])
def test_one_lz4_block_is_decompressed_by_arrow_only_if_it_is_short(
    size: int, is_short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, sizes = Lz4().compress(np.ones(size, np.uint8), np.array([size]))
    by_arrow: list[bool] = []
    decompress_in_place = Lz4._decompress_in_place

    def noting(codec: Lz4, *arguments: Any) -> bool:
        by_arrow.append(True)
        return decompress_in_place(codec, *arguments)

    monkeypatch.setattr(Lz4, "_decompress_in_place", noting)
    monkeypatch.setattr(kernels, "do_without_numba", lambda size: False, raising=False)
    raw, raw_sizes = Lz4().decompress(data, np.zeros(1, np.int64), sizes)
    assert raw_sizes.tolist() == [size] and raw.tobytes() == b"\1" * size
    assert by_arrow == [True] * is_short


_READ = """
import sys
from lance_ops.file import LanceFileReader
for _ in range(int(sys.argv[2])):
    LanceFileReader(sys.argv[1]).take_rows([3, 700])
print("numba" in sys.modules)
"""


@pytest.mark.parametrize(("times", "loaded"), [(1, False), (90, True)])
def test_a_process_loads_numba_after_its_first_calls(tmp_path: Path, times: int, loaded: bool) -> None:
    path = str(tmp_path / "numbers.lance")
    with LanceFileWriter(path) as writer:
        writer.write_batch(rows().select(["u16", "signed", "wide"]))
    run = subprocess.run(
        [sys.executable, "-c", _READ, path, str(times)], env=os.environ, capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [str(loaded)]


_SCAN = """
import sys
from lance_ops.file import LanceFileReader
assert LanceFileReader(sys.argv[1]).read_all().to_table().num_rows == 200_000
print(*({"numba", "pandas"} & sys.modules.keys()))
"""


def test_a_scan_of_some_megabytes_of_numbers_and_strings_loads_no_numba(tmp_path: Path) -> None:
    path, numbers = str(tmp_path / "rows.lance"), np.arange(200_000) * 7919 % 200_003
    with LanceFileWriter(path) as writer:
        names = pc.binary_join_element_wise("customer", pa.array(numbers).cast(pa.string()), "-")
        writer.write_batch(pa.table({"id": numbers, "name": names, "share": numbers / 3}))
    run = subprocess.run([sys.executable, "-c", _SCAN, path], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


_LISTS = """
import sys
import numpy as np, pyarrow as pa
from lance_ops.file import LanceFileReader, LanceFileWriter
size = 40_000
ends = np.arange(0, 32 * size + 1, 32, dtype=np.int32)
floats = pa.Array.from_buffers(pa.float32(), 32 * size, [None, pa.py_buffer(np.arange(32 * size, dtype=np.float32))])
offsets = pa.Array.from_buffers(pa.int32(), size + 1, [None, pa.py_buffer(ends)])
rows = pa.table({"vector": pa.ListArray.from_arrays(offsets, floats)})
with LanceFileWriter(sys.argv[1]) as writer:
    writer.write_batch(rows)
    print("numba" in sys.modules)
for _ in range(20):
    assert LanceFileReader(sys.argv[1]).read_all().to_table() == rows
print("numba" in sys.modules)
"""


def test_lists_without_nulls_are_written_and_read_without_numba(tmp_path: Path) -> None:
    """20 scans of 40,000 lists: room for the offset of each of their 25,600,000 items would be 205 MB."""
    command = [sys.executable, "-c", _LISTS, str(tmp_path / "lists.lance")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]


_TAKE = """
import sys
import numba
from lance_ops import kernels
from lance_ops.file import LanceFileReader
for _ in range(int(sys.argv[2])):
    LanceFileReader(sys.argv[1]).take_rows([3, 700])
print(type(kernels.pick_packed).__name__)
"""


@pytest.mark.parametrize(("times", "kernel"), [(1, "FirstCalls"), (40, "CPUDispatcher")])
def test_a_process_with_numba_loads_each_kernel_after_its_own_first_calls(
    tmp_path: Path, times: int, kernel: str
) -> None:
    path = str(tmp_path / "numbers.lance")
    with LanceFileWriter(path) as writer:
        writer.write_batch(rows().select(["u16", "signed", "wide"]))
    run = subprocess.run([sys.executable, "-c", _TAKE, path, str(times)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [kernel]
