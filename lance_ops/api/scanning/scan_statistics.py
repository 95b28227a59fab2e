"""Report what a scan did: as `ScanStatistics` to the caller's callback, or as figures in the text of a plan."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TypeVar

from lance_ops.core.records import dataclass
from lance_ops.reading import ScanTrace, Step, traced

__all__ = ["ScanStatistics", "annotate_plan", "report_statistics"]

T = TypeVar("T")
_LOG = logging.getLogger("lance_ops")


@dataclass(frozen=True)
class ScanStatistics:
    """What one scan did, under the reference's names. An I/O operation is one request, or one range of a mapped file.

    `all_counts` has rows, blocks and fragments; `all_times` the nanoseconds of steps, which overlap.
    """

    iops: int
    requests: int
    bytes_read: int
    indices_loaded: int
    index_cache_hits: int
    index_cache_misses: int
    all_counts: dict[str, int] = field(default_factory=dict)
    all_times: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: ScanTrace) -> ScanStatistics:
        """Return the figures of a scan that has ended."""
        index, read = trace.index.io.stats(), trace.read.io.stats()
        operations = index.read_iops + read.read_iops
        return cls(
            iops=operations,
            requests=operations,
            bytes_read=index.read_bytes + read.read_bytes,
            indices_loaded=trace.indices_loaded,
            index_cache_hits=trace.indices_cached,
            index_cache_misses=trace.indices_loaded,
            all_counts={
                "rows_scanned": trace.rows_scanned,
                "rows_returned": trace.read.num_rows,
                "ranges_scanned": trace.blocks_scanned,
                "fragments_scanned": trace.fragments_scanned,
            },
            all_times={"index_search_time": trace.index.elapsed_ns, "read_time": trace.read.elapsed_ns},
        )


def report_statistics(found: Iterator[T], callback: Callable[[ScanStatistics], object]) -> Iterator[T]:
    """Yield what a scan finds, and pass its statistics to the callback when the scan has ended.

    A caller that stops before the end gets no statistics. An error of the callback is logged, and not raised.
    """
    trace = ScanTrace()
    yield from traced(found, trace)
    try:
        callback(ScanStatistics.of(trace))
    except Exception:  # noqa: BLE001 # the caller's function must not end the scan
        _LOG.exception("the callback for the statistics of a scan failed")


def annotate_plan(plan: str, trace: ScanTrace) -> str:
    """Return the text of a plan, with the figures of each step on the line of that step."""
    steps = {"LanceRead": trace.read, "ScalarIndexQuery": trace.index}
    return "\n".join(_annotated(line, steps.get(line.strip().partition(":")[0]), trace) for line in plan.splitlines())


def _annotated(line: str, step: Step | None, trace: ScanTrace) -> str:
    if step is None:
        return line
    io = step.io.stats()
    metrics = f"output_rows={step.num_rows}, bytes_read={io.read_bytes}, iops={io.read_iops}, requests={io.read_iops}"
    if step is trace.read:
        metrics += f", rows_scanned={trace.rows_scanned}, ranges_scanned={trace.blocks_scanned}"
    else:
        metrics += f", indices_loaded={trace.indices_loaded}, index_cache_hits={trace.indices_cached}"
    name, _, rest = line.partition(":")
    return f"{name}: elapsed={step.elapsed_ns / 1e6:.3f}ms,{rest}, metrics=[{metrics}]"
