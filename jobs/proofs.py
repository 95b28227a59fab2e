"""Check the result of the demo: each proof is a claim, the expected value, and the value found."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from lance_ops.api import LanceDataset, dataset

__all__ = ["Expected", "Proof", "prove"]

_KEYS = ["time_hour", "carrier", "flight", "origin"]
"""The columns that identify a flight."""


@dataclass(frozen=True)
class Proof:
    """A claim and whether it held."""

    claim: str
    held: bool
    found: str


@dataclass(frozen=True)
class Expected:
    """The content that the dataset must have after the raw files and the steps taken."""

    landing: Path
    arrived_since: str
    """The raw file that landed after the erasure."""
    erased_tailnum: str
    asked_tailnum: str
    tag: str
    index: str
    recorded_versions: tuple[int, ...]

    def surviving(self) -> pa.Table:
        """Return the raw rows that were not erased."""
        before = [str(path) for path in self.landing.iterdir() if path.name != self.arrived_since]
        present = _read(before)
        erased = pc.equal(present["tailnum"], self.erased_tailnum)
        kept = present.filter(pc.invert(pc.fill_null(erased, False)))
        return pa.concat_tables([kept, _read([str(self.landing / self.arrived_since)])])


def prove(uri: str, expected: Expected) -> Iterator[Proof]:
    """Read the dataset with this library, and with the reference if it is installed."""
    surviving = expected.surviving()
    mine = dataset(uri)
    lookup = f"tailnum = '{expected.asked_tailnum}'"
    answer = mine.to_table(filter=lookup)
    versions = tuple(range(1, mine.version + 1))
    yield Proof(
        "Dagster recorded every version, each once",
        expected.recorded_versions == versions,
        f"{len(expected.recorded_versions)} of {len(versions)}",
    )
    yield _equal("rows counted", surviving.num_rows, mine.count_rows())
    yield _same("every column of every row equals the raw files'", surviving, mine.to_table())
    flights = _of_aircraft(surviving, expected.asked_tailnum)
    yield _same(f"{lookup} through the index gives the raw files' flights", flights, answer)
    plan = mine.scanner(filter=lookup).explain_plan()
    yield Proof("its plan uses the index", expected.index in plan, _node(plan, "ScalarIndexQuery"))
    erased = f"tailnum = '{expected.erased_tailnum}'"
    arrived = _of_aircraft(surviving, expected.erased_tailnum).num_rows
    yield _equal(f"{erased} is gone, but for what arrived since", arrived, mine.count_rows(erased))
    before = dataset(uri, version=expected.tag)
    num_before = before.count_rows(erased)
    claim = f"version {before.version}, tagged {expected.tag}, still has it"
    yield Proof(claim, num_before > arrived, f"{num_before:,} rows")
    if find_spec("lance") is not None:
        yield from _prove_with_reference(uri, expected, mine, before)


def _prove_with_reference(uri: str, expected: Expected, mine: LanceDataset, before: LanceDataset) -> Iterator[Proof]:
    reference = import_module("lance")  # the oracle, if it is installed; it is not a dependency
    theirs = reference.dataset(uri)
    theirs.validate()
    yield _equal("pylance validates and opens the same version", mine.version, theirs.version)
    yield _same("pylance reads the same rows", mine.to_table(), theirs.to_table())
    lookup = f"tailnum = '{expected.asked_tailnum}'"
    yield _same("pylance finds the same flights", mine.to_table(filter=lookup), theirs.to_table(filter=lookup))
    plan = theirs.scanner(filter=lookup).explain_plan()
    yield Proof("pylance's plan uses our index", expected.index in plan, _node(plan, "ScalarIndexQuery"))
    yield _same(
        f"pylance reads the tag {expected.tag} alike",
        before.to_table(),
        reference.dataset(uri, version=expected.tag).to_table(),
    )
    with TemporaryDirectory(prefix="lance-ops-demo-") as scratch:
        copy = str(shutil.copytree(uri, Path(scratch) / "copy.lance"))
        reference.write_dataset(before.to_table(limit=1000), copy, mode="append")
        reference.dataset(copy).delete("distance > 2000")
        dataset(copy).validate()
        yield _same(
            "what pylance appends to a copy and deletes from it is read here",
            reference.dataset(copy).to_table(),
            dataset(copy).to_table(),
        )


def _read(paths: Sequence[str]) -> pa.Table:
    return pyarrow.dataset.dataset(list(paths), format="parquet").to_table()


def _of_aircraft(flights: pa.Table, tailnum: str) -> pa.Table:
    return flights.filter(pc.equal(flights["tailnum"], tailnum))


def _node(plan: str, name: str) -> str:
    """Return the line of a plan that describes a node."""
    return next((line.strip() for line in plan.splitlines() if name in line), "no such node")


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
