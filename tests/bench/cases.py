"""The measured data: tables of three columns of one kind each, with the same bytes in every run.

There are three columns, so that a projection leaves some out. The sizes make a scan take milliseconds, well
above the clock's grain, and a whole run takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["ALL_CASES", "PROJECTED", "Case", "cases_named"]

COLUMNS = ("a", "b", "c")
PROJECTED = "b"

Generate = Callable[[np.random.Generator, int], pa.Array]


@dataclass(frozen=True)
class Case:
    """One kind of data; `columns` overrides the kind for columns that differ."""

    name: str
    num_rows: int
    generate: Generate
    columns: Mapping[str, Generate] | None = None

    def table(self, scale: float) -> pa.Table:
        """Return the case's rows, `scale` times as many as by default."""
        num_rows = max(1, round(self.num_rows * scale))
        makers = self.columns or dict.fromkeys(COLUMNS, self.generate)
        return pa.table(
            {name: make(np.random.default_rng(seed), num_rows) for seed, (name, make) in enumerate(makers.items())}
        )


def cases_named(names: str) -> tuple[Case, ...]:
    """Return the cases of a list separated by commas or spaces; all of them if it is empty."""
    known = {case.name: case for case in ALL_CASES}
    wanted = names.replace(",", " ").split()
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise SystemExit(f"no case is called {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(known[name] for name in wanted) or ALL_CASES


def _sequential(rng: np.random.Generator, num_rows: int) -> pa.Array:
    start = int(rng.integers(1 << 40))
    return pa.array(np.arange(start, start + num_rows))


def _small(rng: np.random.Generator, num_rows: int) -> pa.Array:
    return pa.array(rng.integers(0, 100, num_rows))


def _random(rng: np.random.Generator, num_rows: int) -> pa.Array:
    return pa.array(rng.integers(-(1 << 63), (1 << 63) - 1, num_rows))


def _runs(rng: np.random.Generator, num_rows: int) -> pa.Array:
    values = np.repeat(rng.integers(0, 1 << 40, num_rows // 50 + 1), rng.integers(1, 200, num_rows // 50 + 1))
    return pa.array(np.resize(values, num_rows))


def _floats(rng: np.random.Generator, num_rows: int) -> pa.Array:
    return pa.array(rng.normal(size=num_rows))


def _nullable(rng: np.random.Generator, num_rows: int) -> pa.Array:
    return pa.array(rng.integers(0, 1 << 20, num_rows), mask=rng.random(num_rows) < 0.2)


def _unique_strings(rng: np.random.Generator, num_rows: int) -> pa.Array:
    numbers = pa.array(rng.integers(1 << 40, 1 << 50, num_rows)).cast(pa.string())
    return pc.binary_join_element_wise("customer", numbers, "-")


def _low_cardinality(rng: np.random.Generator, num_rows: int) -> pa.Array:
    return _vocabulary(rng, 100).take(pa.array(rng.integers(0, 100, num_rows)))


def _long_strings(rng: np.random.Generator, num_rows: int) -> pa.Array:
    words = rng.integers(50, 200, num_rows)
    offsets = np.concatenate([[0], np.cumsum(words)]).astype(np.int32)
    chosen = _vocabulary(rng, 2000).take(pa.array(rng.zipf(1.3, int(offsets[-1])) % 2000))
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), chosen), " ")


def _vocabulary(rng: np.random.Generator, num_words: int) -> pa.Array:
    letters = np.frombuffer(b"etaoinshrdlucmfw", dtype=np.uint8)
    return pa.array([rng.choice(letters, rng.integers(3, 12)).tobytes().decode() for _ in range(num_words)])


def _lists(rng: np.random.Generator, num_rows: int) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 9, num_rows))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rng.integers(0, 1000, offsets[-1], dtype=np.int32)))


def _structs(rng: np.random.Generator, num_rows: int) -> pa.Array:
    fields = {"x": _small(rng, num_rows), "y": _floats(rng, num_rows), "name": _low_cardinality(rng, num_rows)}
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def _vectors(dimension: int) -> Generate:
    def generate(rng: np.random.Generator, num_rows: int) -> pa.Array:
        values = rng.standard_normal(num_rows * dimension, dtype=np.float32)
        return pa.FixedSizeListArray.from_arrays(pa.array(values), dimension)

    return generate


def _blobs(rng: np.random.Generator, num_rows: int) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(rng.integers(40_000, 60_000, num_rows))])
    data = pa.py_buffer(rng.bytes(int(offsets[-1])))
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), num_rows, [None, pa.py_buffer(offsets), data])


ALL_CASES = (
    Case("ints_sequential", 1_000_000, _sequential),
    Case("ints_small", 1_000_000, _small),
    Case("ints_random", 1_000_000, _random),
    Case("ints_runs", 1_000_000, _runs),
    Case("floats", 1_000_000, _floats),
    Case("strings_unique", 300_000, _unique_strings),
    Case("strings_low_cardinality", 300_000, _low_cardinality),
    Case("strings_long", 10_000, _long_strings),
    Case("nullable", 1_000_000, _nullable),
    Case("lists", 300_000, _lists),
    Case("structs", 300_000, _structs),
    Case("vectors_128", 16_000, _vectors(128)),
    Case("vectors_768", 4_000, _vectors(768)),
    # Blobs beside their keys, as tables of documents have them: the projection asks for the keys.
    Case("blobs", 1_000, _blobs, {"a": _blobs, "b": _sequential}),
)
