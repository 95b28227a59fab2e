"""Call a function with the rows of each fragment in tasks of Spark: rows never cross into the JVM.

def total(batches: pa.RecordBatchReader) -> float:
    return sum(pc.sum(batch["delay"]).as_py() or 0 for batch in batches)

sum(map_fragments(dataset, total, columns=["delay"], filter="delay > 60").values())
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import pyarrow as pa

from lance_ops.api import LanceDataset
from lance_ops.api.scanning import Columns, Filter
from lance_ops.core.errors import WrongType
from lance_ops.core.records import dataclass
from lance_ops.reading import ScanRequest, bind_filter, plan_scan
from lance_ops.runners import Job, Runner
from lance_ops.snapshot import SnapshotReference
from lance_ops.spark.on_spark import OnSpark
from lance_ops.spark.partitioning import group_evenly
from lance_ops.spark.session import get_or_create

__all__ = ["map_fragments"]

R = TypeVar("R")

_MOST_TASKS = 1 << 14


def map_fragments(
    dataset: LanceDataset,
    fn: Callable[[pa.RecordBatchReader], R],
    columns: Columns = None,
    filter: Filter = None,  # noqa: A002 - the name that scans give it
    *,
    runner: Runner | None = None,
) -> dict[int, R]:
    """Call `fn` with the matching rows of each fragment; return its outcomes by fragment id, in the order of rows.

    `columns` and `filter` are as in `LanceDataset.scanner`. `fn` is called where the task runs, once for each fragment
    that may have a matching row, with a stream of batches, and returns something small that can be pickled. A task that
    Spark repeats calls it again. The runner is `OnSpark` of this process's session by default. Raises what `fn` raises,
    and as a scan does. Raises `WrongType` for another dataset than this library's, and for a `fn` that is no function.
    """
    if not isinstance(dataset, LanceDataset):
        raise WrongType(
            f"map_fragments takes a dataset that lance_ops.dataset(uri) has opened, not {type(dataset).__name__}"
        )
    if not callable(fn):
        raise WrongType(f"map_fragments takes a function of a RecordBatchReader as fn, not {fn!r}")
    snapshot = dataset.snapshot
    request = ScanRequest(snapshot.schema.project([]), None if filter is None else bind_filter(snapshot, filter))
    rows: dict[int, int] = {}  # an index may leave several blocks of a fragment
    for block, _ in plan_scan(snapshot, request).blocks.parts:
        rows[block.fragment.id] = rows.get(block.fragment.id, 0) + len(block)
    dataset.scanner(columns, filter)  # so that a mistake is raised here, before a task starts
    tasks = group_evenly(rows, _MOST_TASKS)
    work = _FragmentWork(SnapshotReference.of(snapshot), fn, columns, filter)
    weights = tuple(sum(rows[fragment_id] for fragment_id in task) for task in tasks)
    job = Job.on("map fragments of", snapshot.uri, snapshot.version, weights, unit="rows")
    outcomes = (runner or OnSpark(get_or_create())).map(work, tasks, job)
    return {fragment_id: outcome for part in outcomes for fragment_id, outcome in part.items()}


@dataclass(frozen=True)
class _FragmentWork(Generic[R]):
    """What each task does with its fragments; it opens the version where it runs."""

    snapshot: SnapshotReference
    fn: Callable[[pa.RecordBatchReader], R]
    columns: Columns
    filter: Filter

    def __call__(self, fragment_ids: tuple[int, ...]) -> dict[int, R]:
        opened = LanceDataset.of(self.snapshot.open(), None)
        outcomes = {}
        for fragment_id in fragment_ids:
            fragment = opened.get_fragment(fragment_id)
            assert fragment is not None
            scanner = opened.scanner(self.columns, self.filter, fragments=[fragment], batch_readahead=2)
            outcomes[fragment_id] = self.fn(scanner.to_reader())
        return outcomes
