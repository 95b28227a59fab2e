"""The page on scale: what a manifest of many fragments costs, what one fragment asks for, and what comes first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyroaring import BitMap

from tests.bench.scale.recorded import FragmentCosts
from tests.bench.scale.simulation import Cluster, Outcome, Store, Work, simulate

__all__ = ["bitmap_bytes", "page", "works"]

_PREFIXES = (1, 8, 64)

_MEASURES = (
    ("manifest, MB", "manifest_bytes", 1e6),
    ("encode, s", "encode_s", 1),
    ("decode every fragment, s", "decode_s", 1),
    ("open, s", "open_s", 1),
    ("open, peak MB", "open_peak_bytes", 1e6),
    ("count rows, s", "count_s", 1),
    ("receive all outcomes of a job, s", "receive_s", 1),
    ("commit all of them at once, s", "commit_s", 1),
    ("and its peak, MB", "commit_peak_bytes", 1e6),
    ("append one more, s", "append_s", 1),
    ("plan a scan, s", "plan_scan_s", 1),
    ("and its peak, MB", "plan_scan_peak_bytes", 1e6),
    ("plan a compaction 10 to 1, s", "plan_compaction_s", 1),
    ("and its peak, MB", "plan_compaction_peak_bytes", 1e6),
    ("its tasks, MB", "all_task_bytes", 1e6),
    ("outcomes of a job, MB", "all_outcome_bytes", 1e6),
    ("plan a DELETE, s", "plan_delete_s", 1),
    ("receive and commit what it deletes, s", "delete_s", 1),
    ("and its peak, MB", "delete_peak_bytes", 1e6),
    ("tasks that write its deletion files", "deletion_tasks", 1),
    ("and what they are sent, MB", "deletion_sent_bytes", 1e6),
)

_DELETED_ROWS = 1_000
"""The rows of each fragment that the simulated DELETE deletes, which are far from each other."""
_TIMES_HELD = 3
"""A driver holds the rows of a DELETE as outcomes of tasks, as bitmaps, and in the tasks that write the files."""

_PREFACE = """\
# Scale: 100 TB, 1,000 executors, a million fragments

`python -m tests.bench.scale` writes this page. The first two tables are measured; the third is simulated from them
(`tests/bench/scale/simulation.py`): {cores:,} cores on {executors:,} executors with 10 Gbit/s each, {tasks:,} tasks,
and a store that grants each prefix 5,500 GET and 3,500 PUT requests a second, as S3 states. Measured seconds are CPU
seconds of one core, and a peak is the memory of a process that does this one step, 0.2 GB of it for the libraries.
"""


def works(manifest: Mapping[str, float], one: FragmentCosts, fragments: int, fragment_bytes: float) -> list[Work]:
    """Return the verbs to simulate. A fragment costs in proportion to its bytes."""
    times = fragment_bytes / one.size_bytes
    commit_s = manifest["receive_s"] + manifest["commit_s"]
    written = manifest["commit_peak_bytes"] + fragments * manifest["outcome_bytes"]
    planned = manifest["plan_scan_peak_bytes"]
    read, write = (times * cpu_s for cpu_s in (one.read_cpu_s, one.write_cpu_s))
    column = times * one.column_cpu_s, times * one.column_bytes
    gets, puts, some = (max(1.0, times * count) for count in (one.read_gets, one.write_puts, one.column_gets))
    compaction = manifest["plan_compaction_peak_bytes"] + written / 10
    return [
        Work("write", fragments, write, 0, puts, fragment_bytes, 0, commit_s, written),
        Work("scan of all columns", fragments, read, gets, 0, fragment_bytes, manifest["plan_scan_s"], 0, planned),
        Work("scan of one column of 8", fragments, column[0], some, 0, column[1], manifest["plan_scan_s"], 0, planned),
        Work(
            "compaction 10 to 1",
            fragments,
            read + write,
            gets,
            puts,
            2 * fragment_bytes,
            manifest["plan_compaction_s"],
            commit_s,
            compaction,
        ),
        Work(
            f"delete of {_DELETED_ROWS:,} rows a fragment",
            fragments,
            column[0],
            some,
            1,
            column[1],
            manifest["plan_delete_s"],
            manifest["delete_s"],
            manifest["delete_peak_bytes"] + _TIMES_HELD * fragments * bitmap_bytes(round(times * one.num_rows)),
        ),
    ]


def bitmap_bytes(num_rows: int) -> int:
    """Return what the bitmap of the rows takes that the simulated DELETE deletes of a fragment."""
    return len(BitMap(range(0, num_rows, max(1, num_rows // _DELETED_ROWS))).serialize())


def page(
    setting: Mapping[str, str],
    manifests: Mapping[int, Mapping[str, float]],
    one: FragmentCosts,
    whole_bytes: float,
    merge: Sequence[str],
    index: Sequence[str],
) -> str:
    """Return the page in Markdown; the largest manifest is the one that is simulated.

    `merge` and `index` are the lines that the scripts about their drivers print.
    """
    fragments, cluster = max(manifests), Cluster()
    verbs = works(manifests[fragments], one, fragments, whole_bytes / fragments)
    lines = [
        _PREFACE.format(cores=cluster.all_cores, executors=cluster.executors, tasks=cluster.all_tasks),
        " · ".join(f"{name}: {value}" for name, value in setting.items()),
        "",
        *_first_limits(verbs, cluster, fragments),
        "",
        "## A manifest of many fragments",
        "",
        *_table("", *(f"{count:,}" for count in manifests)),
        *_manifest_rows(manifests),
        "",
        "Each fragment has one data file. A manifest is decoded fragment by fragment, on first use; its bytes stay in",
        "memory. A job's outcomes are what tasks report to the driver, which commits them as one version. From 512",
        "changed fragments on, tasks also write the deletion files, those of at most 128 fragments in each, so the",
        "driver makes no request for each fragment. A DELETE is measured with ten rows of each fragment. Its driver",
        f"holds bitmaps of all deleted rows {_TIMES_HELD} times at its peak: two bytes for each scattered row, and",
        f"a few for each run of neighbours. {_DELETED_ROWS:,} scattered rows of a fragment with {one.num_rows:,} take",
        f"{bitmap_bytes(one.num_rows):,} bytes once. If a DELETE is more than a driver can hold, split its condition.",
        "",
        "## The driver of a merge",
        "",
        "A merge of 100,000,000 keys, each of which updates a row, into a table of 100,000 fragments. Plan, joining of",
        "outcomes and commit are real; tasks are stand-ins that report what such tasks report",
        "(`python -m tests.bench.merge_driver`). The memory is the peak of the process until then.",
        "",
        "```text",
        *merge,
        "```",
        "",
        "## The driver of an index",
        "",
        "A B-tree on 100,000,000 keys of a table of 100,000 fragments. All of it is real; the tasks run in one other",
        "process (`python -m tests.bench.index_driver`).",
        "",
        "```text",
        *index,
        "```",
        "",
        f"## One fragment of {one.size_bytes / 1e6:.0f} MB on an object store",
        "",
        *_table("", "requests", "CPU s"),
        _row("write", f"{one.write_puts} PUT and POST", f"{one.write_cpu_s:.2f}"),
        _row("read all columns", f"{one.read_gets} GET", f"{one.read_cpu_s:.2f}"),
        _row("read one column", f"{one.column_gets} GET", f"{one.column_cpu_s:.2f}"),
        "",
        f"## Simulated: {whole_bytes / 1e12:.0f} TB in {fragments:,} fragments",
        "",
        *_table("", "prefixes", "plan, s", "tasks, s", "commit, s", "GET a second", "PUT a second", "first limit"),
        *_simulated(verbs, cluster),
        "",
        "A write has its rows at hand; what an ingestion reads comes on top. Names of data files begin with 24 random",
        "bits, so a store that splits its prefixes under load can do so; a new table begins with one. Until then",
        "requests are refused (503). The client repeats them for a while, then Spark repeats the task, at most four",
        "times: begin such a job with fewer executors, or ask the store's operator to split the prefix before.",
        "",
    ]
    return "\n".join(lines)


def _first_limits(verbs: Sequence[Work], cluster: Cluster, fragments: int) -> Iterator[str]:
    held = max(verbs, key=lambda work: work.driver_bytes)
    most = f"{held.driver_bytes / 1e9:.1f} GB for {fragments:,} fragments ({held.name})"
    yield f"- **The driver holds** at most {most}: the manifest, the plan, and what tasks report; never rows."
    for work in verbs:
        one, many = (simulate(work, cluster, Store(prefixes)) for prefixes in (_PREFIXES[0], _PREFIXES[-1]))
        yield (
            f"- **{work.name}**: {one.limit} come first on one prefix ({one.total_s:,.0f} s), {many.limit} on "
            f"{_PREFIXES[-1]} ({many.total_s:,.0f} s, {_serial(many):.0%} of it in the driver alone)."
        )


def _serial(outcome: Outcome) -> float:
    return (outcome.plan_s + outcome.commit_s) / outcome.total_s


def _manifest_rows(manifests: Mapping[int, Mapping[str, float]]) -> Iterator[str]:
    for title, name, unit in _MEASURES:
        cells = []
        for count, found in manifests.items():
            more = {
                "all_task_bytes": found["task_bytes"] * found["compaction_tasks"],
                "all_outcome_bytes": found["outcome_bytes"] * count,
            }
            cells.append(f"{({**found, **more})[name] / unit:,.3g}")
        yield _row(title, *cells)


def _simulated(verbs: Sequence[Work], cluster: Cluster) -> Iterator[str]:
    for work in verbs:
        for prefixes in _PREFIXES:
            each = simulate(work, cluster, Store(prefixes))
            times = (f"{seconds:,.0f}" for seconds in (each.plan_s, each.tasks_s, each.commit_s))
            yield _row(work.name, str(prefixes), *times, f"{each.gets_s:,.0f}", f"{each.puts_s:,.0f}", each.limit)


def _table(*headings: str) -> Iterator[str]:
    yield _row(*headings)
    yield _row(*["---"] * len(headings))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
