"""The results as values: samples of a cell, ratios, and their JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles
from typing import Any

__all__ = [
    "OPERATIONS",
    "OWN_FILES",
    "PARQUET",
    "READING",
    "RIVALS",
    "SAME_FILES",
    "TABLE",
    "VERSIONS",
    "WRITING",
    "Cell",
    "Rival",
    "Run",
    "Sample",
    "geometric_mean",
]

READING = ("take", "projection", "scan")
WRITING = ("write", "write_durable")
OPERATIONS = ("scan", "projection", "take", *WRITING, "size")
TABLE = "table"
"""The operation of a case that is one itself: a commit, a compaction."""
VERSIONS = ("2.0", "2.1", "2.2")


@dataclass(frozen=True)
class Rival:
    """A comparison of the subject `theirs` with the subject `ours`."""

    title: str
    theirs: str
    ours: str = "ours"


# A subject is a contender together with the writer of the files that it reads.
# "ours@pylance" is this library on the reference's bytes.
OWN_FILES = Rival("pylance, each on its own files", "pylance")
SAME_FILES = Rival("pylance, both on pylance's files", "pylance", "ours@pylance")
PARQUET = Rival("Parquet (pyarrow)", "parquet")
RIVALS = (OWN_FILES, SAME_FILES, PARQUET)


@dataclass(frozen=True)
class Sample:
    """One timed operation."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class Cell:
    """One operation on one case in one version: each subject's samples in order, or the reason why it has none."""

    case: str
    version: str
    operation: str
    samples: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    def ratio(self, rival: Rival, measure: str = "seconds") -> float | None:
        """Return the median over the pairs of theirs divided by ours, or None. Above 1, ours is better."""
        if self.operation == "size":
            ours, theirs = self.sizes.get(rival.ours), self.sizes.get(rival.theirs)
            return theirs / ours if ours and theirs else None
        ratios = self._ratios(rival, measure)
        return median(ratios) if ratios else None

    def ratio_quartiles(self, rival: Rival, measure: str = "seconds") -> tuple[float, float] | None:
        """Return the quartiles of the pairs' ratios, or None."""
        return _quartiles(self._ratios(rival, measure))

    def error(self, rival: Rival) -> str | None:
        """Return why a ratio is missing."""
        return self.errors.get(rival.ours) or self.errors.get(rival.theirs)

    def applies(self, rival: Rival) -> bool:
        """Whether the comparison makes sense: a subject that reads the other's files has written nothing to compare."""
        return rival.ours == "ours" or self.operation in READING

    def typical(self, subject: str, measure: str = "seconds") -> float | None:
        """Return the median of one subject's samples."""
        samples = self.samples.get(subject, ())
        return median(getattr(sample, measure) for sample in samples) if samples else None

    def typical_quartiles(self, subject: str, measure: str = "seconds") -> tuple[float, float] | None:
        """Return the quartiles of one subject's samples, or None."""
        return _quartiles([getattr(sample, measure) for sample in self.samples.get(subject, ())])

    def to_json(self) -> dict[str, Any]:
        """Return the cell with its ratios, medians and number of samples."""
        measures = ("seconds", "cpu_seconds", "peak_bytes")
        return {
            "case": self.case,
            "version": self.version,
            "operation": self.operation,
            "ratios": {
                f"{rival.theirs}/{rival.ours}": {m: _rounded(self.ratio(rival, m)) for m in measures}
                if self.operation != "size"
                else {"size_bytes": _rounded(self.ratio(rival))}
                for rival in RIVALS
                if self.applies(rival) and self.ratio(rival) is not None
            },
            "medians": {name: {m: _rounded(self.typical(name, m)) for m in measures} for name in self.samples},
            "num_samples": {name: len(samples) for name, samples in self.samples.items()},
            "size_bytes": dict(self.sizes),
            "errors": dict(self.errors),
        }

    def _ratios(self, rival: Rival, measure: str) -> list[float]:
        pairs = zip(self.samples.get(rival.theirs, ()), self.samples.get(rival.ours, ()), strict=False)
        return [getattr(theirs, measure) / max(getattr(ours, measure), 1e-9) for theirs, ours in pairs]


@dataclass(frozen=True)
class Run:
    """A whole run: where and when it was made, and its cells."""

    setting: Mapping[str, Any]
    cells: tuple[Cell, ...]

    def cell(self, case: str, version: str, operation: str) -> Cell | None:
        """Return one cell."""
        return next((c for c in self.cells if (c.case, c.version, c.operation) == (case, version, operation)), None)

    @property
    def of_files(self) -> Run:
        """The cells about files."""
        return Run(self.setting, tuple(cell for cell in self.cells if cell.operation != TABLE))

    @property
    def of_tables(self) -> tuple[Cell, ...]:
        """The cells about tables."""
        return tuple(cell for cell in self.cells if cell.operation == TABLE)

    def ratios(self, rival: Rival, operation: str, version: str | None = None, measure: str = "seconds") -> list[float]:
        """Return all ratios of an operation, in one version or in all versions."""
        chosen = (c for c in self.cells if c.operation == operation and version in (None, c.version))
        found = (cell.ratio(rival, measure) for cell in chosen if cell.applies(rival))
        return [ratio for ratio in found if ratio is not None]

    def to_json(self) -> dict[str, Any]:
        """Return the run for `json.dump`."""
        means = {
            f"{rival.theirs}/{rival.ours}": {
                operation: _rounded(geometric_mean(self.ratios(rival, operation))) for operation in OPERATIONS
            }
            for rival in RIVALS
        }
        means[f"{OWN_FILES.theirs}/{OWN_FILES.ours}"][TABLE] = _rounded(geometric_mean(self.ratios(OWN_FILES, TABLE)))
        return {
            "setting": dict(self.setting),
            "rivals": [asdict(rival) for rival in RIVALS],
            "geometric_means": means,
            "cells": [cell.to_json() for cell in self.cells],
        }


def geometric_mean(ratios: Iterable[float]) -> float | None:
    """Return the geometric mean; None if there are no ratios."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def _quartiles(values: Sequence[float]) -> tuple[float, float] | None:
    if len(values) < 2:
        return (values[0], values[0]) if values else None
    first, _, third = quantiles(values, n=4, method="inclusive")
    return first, third


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
