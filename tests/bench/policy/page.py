"""Write what the simulation found as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.bench.policy.simulation import STORES, Comparison, Outcome, Store

__all__ = ["page"]

_INTRODUCTION = """\
# Is upkeep worth it?

`python -m tests.bench.policy` writes this page. It runs {days} days of three generated histories under four regimes:

- **never**: no maintenance.
- **nightly**: each evening compacts all that can be compacted, and extends the index.
- **policy**: each evening takes the steps that `lance_ops.maintenance.debt` says are owed, with its defaults. The
  simulation calls the library's own `price_debt` and `plan_compaction` on a manifest without files.
- **best**: the cheapest sequence of evenings in hindsight, by dynamic programming over the days. On each evening
  nothing, everything, or the policy's choice is compacted, with or without the index. Tables with as many fragments
  and with about the same bytes in small, deleted and unindexed rows count as one state.

A day's reads pay for what the evening before left and for what the day wrote. One read is a scan of the whole table
and, if it has an index, one look-up, which scans the rows that the index does not cover. Old versions are left out: no
read notices them.

| seconds for | {stores} |
| --- | {rules} |
{constants}

The local disk's constants are those of [the benchmark of tables](bench-tables.md): one more fragment costs a scan up to
0.1 ms, a scan of 1,000,000 rows of some 30 bytes takes 13 ms, their compaction 108 ms, and a new process that commits
about a second. Those of the object store are assumed: two requests of 30 ms for a fragment
([the delay there](bench-s3.md)), eight at a time; a quarter of the disk's bandwidth for reads, and half for rewrites.

A row has 100 bytes. The histories are the same at each run:

{histories}
"""

_FINDINGS = """\
## What follows

- In {no_dearer} of {num} lines the policy costs no more than both fixed regimes, and in {not_worst} no more than the
  dearer of them.
- At 100 reads a day it is within {near:.1%} of the best.
- Over all lines it rewrites {saved:.0%} fewer bytes than nightly maintenance.
- It is farthest from the best, {worst:.2f} times, with {where}. The policy does not see how often a table is read:
  `payback_reads` and the limits of `health` tell it. Few reads ask for less upkeep, many reads for more.
"""


def page(found: Sequence[Comparison], days: int) -> str:
    """Return the page as Markdown."""
    histories = {each.history.name: each.history.what for each in found}
    constants = {
        "opening a fragment": [store.open_seconds for store in STORES],
        "reading 1 GB": [store.read_byte_seconds * 1e9 for store in STORES],
        "rewriting 1 GB": [store.rewrite_byte_seconds * 1e9 for store in STORES],
        "a run of maintenance": [store.run_seconds for store in STORES],
    }
    return "\n".join(
        [
            _INTRODUCTION.format(
                days=days,
                stores=" | ".join(store.name for store in STORES),
                rules=" | ".join("---" for _ in STORES),
                constants="\n".join(
                    f"| {name} | {' | '.join(f'{value:g}' for value in values)} |" for name, values in constants.items()
                ),
                histories="\n".join(f"- **{name}**: {what}." for name, what in histories.items()),
            ),
            *(line for store in STORES for line in _tables(store, [each for each in found if each.store == store])),
            _findings(found),
        ]
    )


def _tables(store: Store, found: Sequence[Comparison]) -> Iterator[str]:
    yield f"## On {store.name}\n"
    yield "Seconds of reads and maintenance together; of the first three regimes, the cheapest is bold.\n"
    yield "| history | reads a day | never | nightly | policy | best | policy / best |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for each in found:
        regimes = (each.never, each.nightly, each.policy)
        least = min(one.total for one in regimes)
        shown = " | ".join(f"**{one.total:,.1f}**" if one.total == least else f"{one.total:,.1f}" for one in regimes)
        place = f"| {each.history.name} | {each.history.reads_per_day:,}"
        yield f"{place} | {shown} | {each.best.total:,.1f} | {each.distance:.3f} |"
    yield "\nSeconds of reads on an average day, gigabytes rewritten, and runs:\n"
    yield "| history | reads a day | never | nightly | policy | best |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for each in found:
        shown = " | ".join(map(_work, (each.never, each.nightly, each.policy, each.best)))
        yield f"| {each.history.name} | {each.history.reads_per_day:,} | {shown} |"
    yield ""


def _work(outcome: Outcome) -> str:
    a_day = sum(outcome.read_seconds) / len(outcome.read_seconds)
    return f"{a_day:,.2f} s, {outcome.rewritten_bytes / 1e9:,.2f} GB, {outcome.num_runs}"


def _findings(found: Sequence[Comparison]) -> str:
    worst = max(found, key=lambda each: each.distance)
    rewritten = sum(each.policy.rewritten_bytes for each in found)
    return _FINDINGS.format(
        num=len(found),
        no_dearer=sum(each.policy.total <= min(each.never.total, each.nightly.total) for each in found),
        not_worst=sum(each.policy.total <= max(each.never.total, each.nightly.total) for each in found),
        near=max(each.distance for each in found if each.history.reads_per_day == 100) - 1,
        saved=1 - rewritten / sum(each.nightly.rewritten_bytes for each in found),
        worst=worst.distance,
        where=f"{worst.history.name} on {worst.store.name} at {worst.history.reads_per_day:,} reads a day",
    )
