"""What the demo proves at its end: each proof is a sentence, what was expected, and what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from lance_ops.api import LanceDataset, dataset

__all__ = ["Expected", "Proof", "prove"]

_KEYS = ["time_hour", "carrier", "flight", "origin"]
"""They tell one flight from another."""


@dataclass(frozen=True)
class Proof:
    """A claim and whether it held."""

    claim: str
    held: bool
    found: str


@dataclass(frozen=True)
class Expected:
    """What the raw files and the steps taken say must be in the dataset."""

    landing: Path
    erased_tailnum: str
    asked_tailnum: str
    tag: str
    index: str

    def raw(self) -> pa.Table:
        """Read every raw file."""
        return pyarrow.dataset.dataset(self.landing, format="parquet").to_table()

    def surviving(self) -> pa.Table:
        """Return the raw rows that were not erased."""
        erased = pc.equal(self.raw()["tailnum"], self.erased_tailnum)
        return self.raw().filter(pc.invert(pc.fill_null(erased, False)))


def prove(uri: str, expected: Expected) -> Iterator[Proof]:
    """Read the dataset by this library, and by the reference implementation where it is installed."""
    surviving = expected.surviving()
    mine = dataset(uri)
    lookup = f"tailnum = '{expected.asked_tailnum}'"
    answer = mine.to_table(filter=lookup)
    yield _equal("rows counted", surviving.num_rows, mine.count_rows())
    yield _same("every column of every row equals the raw files'", surviving, mine.to_table())
    yield _same(f"{lookup} through the index gives the raw files' flights", _flights_of(surviving, expected), answer)
    plan = mine.scanner(filter=lookup).explain_plan()
    yield Proof("its plan uses the index", expected.index in plan, " ".join(plan.split()))
    erased = f"tailnum = '{expected.erased_tailnum}'"
    before = dataset(uri, version=expected.tag)
    raw = expected.raw()
    in_raw = raw.filter(pc.equal(raw["tailnum"], expected.erased_tailnum)).num_rows
    yield _equal(f"{erased} is gone", 0, mine.count_rows(erased))
    yield Proof(
        f"version {before.version}, tagged {expected.tag}, still has it",
        0 < before.count_rows(erased) <= in_raw,
        f"{before.count_rows(erased):,} rows",
    )
    if find_spec("lance") is not None:
        yield from _prove_with_reference(uri, expected, mine, before)


def _prove_with_reference(uri: str, expected: Expected, mine: LanceDataset, before: LanceDataset) -> Iterator[Proof]:
    reference = import_module("lance")  # the oracle, where it is installed; never a dependency
    theirs = reference.dataset(uri)
    theirs.validate()
    yield _equal("pylance validates and opens the same version", mine.version, theirs.version)
    yield _same("pylance reads the same rows", mine.to_table(), theirs.to_table())
    lookup = f"tailnum = '{expected.asked_tailnum}'"
    yield _same("pylance finds the same flights", mine.to_table(filter=lookup), theirs.to_table(filter=lookup))
    plan = theirs.scanner(filter=lookup).explain_plan()
    yield Proof("pylance's plan uses our index", "ScalarIndexQuery" in plan, " ".join(plan.split())[:100])
    yield _same(
        f"pylance reads the tag {expected.tag} alike",
        before.to_table(),
        reference.dataset(uri, version=expected.tag).to_table(),
    )


def _flights_of(flights: pa.Table, expected: Expected) -> pa.Table:
    return flights.filter(pc.equal(flights["tailnum"], expected.asked_tailnum))


def _equal(claim: str, expected: int, found: int) -> Proof:
    return Proof(claim, expected == found, f"{found:,}" if expected == found else f"{found:,}, not {expected:,}")


def _same(claim: str, expected: pa.Table, found: pa.Table) -> Proof:
    if expected.num_rows != found.num_rows or set(expected.column_names) != set(found.column_names):
        return Proof(claim, held=False, found=f"{found.shape}, not {expected.shape}")
    order = [(key, "ascending") for key in _KEYS]
    left = expected.sort_by(order).combine_chunks()
    right = found.select(expected.column_names).sort_by(order).combine_chunks()
    differing = [name for name in expected.column_names if not left[name].equals(right[name])]
    found_text = f"{found.num_rows:,} rows" if not differing else f"columns {differing} differ"
    return Proof(claim, not differing, found_text)
