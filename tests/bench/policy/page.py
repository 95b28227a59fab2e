"""Write what the simulation found as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.bench.policy.fleet import FleetComparison
from tests.bench.policy.simulation import STORES, Comparison, Outcome, Store

__all__ = ["page"]

_INTRODUCTION = """\
# Is upkeep worth it?

`python -m tests.bench.policy` writes this page. It runs {days} days of three generated histories, and the days
of recorded ones, under six regimes:

- **never**: no maintenance.
- **nightly**: each evening compacts all that can be compacted, and extends the index.
- **autocomp**: each evening compacts by the rule of AutoComp ([arXiv 2504.04186](https://arxiv.org/abs/2504.04186)),
  adapted as [below](#autocomps-rule).
- **policy**: each evening takes the steps that `lance_ops.maintenance.debt` says are owed, with its defaults. The
  simulation calls the library's own `price_debt` and `plan_compaction` on a manifest without files.
- **told**: the policy with `payback_reads` set to the reads of a day, so that a step must pay back within a day.
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

A row has 100 bytes. The histories are the same at each run; those that were recorded hold the appends and deletes of a
table's versions, without its maintenance (`--record URI NAME`). A table does not record how often it is read, so each
history has 10, 100 and 1,000 reads a day.

{histories}

## AutoComp's rule

AutoComp chooses among the tables of a data lake. A candidate's traits are the number of files that a compaction
removes, and its compute cost: the memory of an executor for the hours that its bytes take. Both are normalised between
the least and the greatest of all candidates. The rank is 0.7 times the reduction less 0.3 times the cost, and the best
candidates are compacted as far as a budget goes. Without a budget a table is compacted if 10% of its files would go.

What the simulation adapts:

- A candidate is a run of neighbouring small fragments in a group of `plan_compaction`, because fragments are merged
  with their neighbours only. So a table has several candidates.
- A fragment below three quarters of the target is small, as in OpenHouse, where AutoComp runs. Larger ones stay.
- The files that a compaction makes are subtracted from those it removes. The paper counts the small files alone.
- Memory and throughput are the same for all candidates, so bytes stand for the compute cost.
- On one table there is no budget: the 10% decide, and all candidates are compacted. The rank decides in
  [the fleets](#fleets-with-one-budget).
- AutoComp knows neither deleted rows nor indices. Deleted rows go when their fragment is compacted, and each of its
  runs extends the index.
"""

_FLEET = """\
## Fleets with one budget

In each of {num_fleets} fleets, {num_tables} tables share a budget of bytes each night, for {days} days. They mix the
generated histories, drawn again, with a tenth, a third or all of the rows, and 10, 100 or 1,000 reads a day, which no
regime sees. None has an index, because AutoComp's rule knows none. The shares of the policy were
designed on fleets 1 and 3, and compared on fleet 2 afterwards.

- **in turn**: one table after the other is compacted whole, if the budget still holds it.
- **autocomp**: the candidates of all tables by their rank, as far as the budget goes.
- **policy**: each table is paid within its share of `lance_ops.maintenance.fleet.allot`, as in `maintain`.

Seconds of reads and maintenance together, gigabytes rewritten, and runs; the cheapest is bold.

| store | fleet | budget a night | never | in turn | autocomp | policy | policy / autocomp |
| --- | --- | --- | --- | --- | --- | --- | --- |
{lines}
"""

_FINDINGS = """\
## What follows

- AutoComp's rule costs less than the policy in {autocomp_cheaper} of {num} lines, and than the policy that is told the
  reads in {cheaper_than_told}. The policy is worst against it with {autocomp_where}:
  {autocomp_worst:.2f} times; told the reads, {told_worst:.2f} times with {told_where}.
- In {no_dearer_than_autocomp} of {num} lines the policy costs no more than AutoComp's rule. That rule is worst against
  the policy with {policy_where}: {policy_best:.2f} times.
- In the fleets AutoComp's rank costs less in {fleet_cheaper} of {fleet_num} lines, by at most {fleet_worst:.1%}. In the
  others the policy costs less, by at most {fleet_best:.1%}.
- In {no_dearer} of {num} lines the policy costs no more than the cheaper of never and nightly,
  and in {not_worst} no more than the dearer of them.
- At 100 reads a day it is within {near:.1%} of the best with generated histories. The recorded tables are small, so
  relative differences tell little: at 100 reads the policy costs at most {a_day:.1f} seconds a day more than the best.
- Over all lines it rewrites {saved:.0%} fewer bytes than nightly maintenance, and {more:.1f} times as many as
  AutoComp's rule.
- With generated histories it is farthest from the best, {worst:.2f} times, with {where}.
  The policy does not see how often a table is read: `payback_reads` and the limits of `health` tell it. Few reads ask
  for less upkeep, many reads for more. A table that is read hundreds of times a day should say so.
"""


def page(found: Sequence[Comparison], fleets: Sequence[FleetComparison], days: int) -> str:
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
            _FLEET.format(
                num_fleets=len({each.number for each in fleets}),
                num_tables=fleets[0].num_tables,
                days=days,
                lines="\n".join(map(_fleet_line, fleets)),
            ),
            _findings(found, fleets),
        ]
    )


def _tables(store: Store, found: Sequence[Comparison]) -> Iterator[str]:
    yield f"## On {store.name}\n"
    yield "Seconds of reads and maintenance together; of all regimes but the best, the cheapest is bold.\n"
    yield "| history | reads a day | never | nightly | autocomp | policy | told | best | policy / best |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for each in found:
        place = f"| {each.history.name} | {each.history.reads_per_day:,}"
        yield f"{place} | {_with_bold(_regimes(each))} | {each.best.total:,.1f} | {each.distance:.3f} |"
    yield "\nSeconds of reads on an average day, gigabytes rewritten, and runs:\n"
    yield "| history | reads a day | never | nightly | autocomp | policy | told | best |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for each in found:
        shown = " | ".join(map(_work, (*_regimes(each), each.best)))
        yield f"| {each.history.name} | {each.history.reads_per_day:,} | {shown} |"
    yield ""


def _regimes(each: Comparison) -> tuple[Outcome, ...]:
    return each.never, each.nightly, each.autocomp, each.policy, each.told


def _with_bold(outcomes: Sequence[Outcome]) -> str:
    """Return the totals as cells; the least is bold."""
    least = min(one.total for one in outcomes)
    return " | ".join(f"**{one.total:,.1f}**" if one.total == least else f"{one.total:,.1f}" for one in outcomes)


def _work(outcome: Outcome) -> str:
    a_day = sum(outcome.read_seconds) / len(outcome.read_seconds)
    return f"{a_day:,.2f} s, {_bytes_and_runs(outcome)}"


def _bytes_and_runs(outcome: Outcome) -> str:
    return f"{outcome.rewritten_bytes / 1e9:,.2f} GB, {outcome.num_runs}"


def _fleet_line(each: FleetComparison) -> str:
    outcomes = (each.never, each.in_turn, each.autocomp, each.policy)
    totals = _with_bold(outcomes).split(" | ")
    shown = " | ".join(f"{total}, {_bytes_and_runs(one)}" for total, one in zip(totals, outcomes, strict=True))
    ratio = each.policy.total / each.autocomp.total
    return f"| {each.store.name} | {each.number} | {each.max_bytes / 1e9:g} GB | {shown} | {ratio:.3f} |"


def _findings(found: Sequence[Comparison], fleets: Sequence[FleetComparison]) -> str:
    generated = [each for each in found if not each.history.is_recorded]
    recorded = [each for each in found if each.history.is_recorded]
    farthest = max(generated, key=lambda each: each.distance)
    against = sorted(found, key=lambda each: each.policy.total / each.autocomp.total)
    told = sorted(found, key=lambda each: each.told.total / each.autocomp.total)
    in_fleets = [each.policy.total / each.autocomp.total for each in fleets]
    rewritten = sum(each.policy.rewritten_bytes for each in found)
    return _FINDINGS.format(
        num=len(found),
        autocomp_cheaper=sum(each.autocomp.total < each.policy.total for each in found),
        cheaper_than_told=sum(each.autocomp.total < each.told.total for each in found),
        told_where=_place(told[-1]),
        told_worst=told[-1].told.total / told[-1].autocomp.total,
        autocomp_where=_place(against[-1]),
        autocomp_worst=against[-1].policy.total / against[-1].autocomp.total,
        no_dearer_than_autocomp=sum(each.policy.total <= each.autocomp.total for each in found),
        policy_where=_place(against[0]),
        policy_best=against[0].autocomp.total / against[0].policy.total,
        fleet_num=len(fleets),
        fleet_cheaper=sum(ratio > 1 for ratio in in_fleets),
        fleet_worst=1 - 1 / max(*in_fleets, 1.0),
        fleet_best=1 - min(*in_fleets, 1.0),
        no_dearer=sum(each.policy.total <= min(each.never.total, each.nightly.total) for each in found),
        not_worst=sum(each.policy.total <= max(each.never.total, each.nightly.total) for each in found),
        near=max(each.distance for each in generated if each.history.reads_per_day == 100) - 1,
        a_day=max((_lost_a_day(each) for each in recorded if each.history.reads_per_day == 100), default=0.0),
        saved=1 - rewritten / sum(each.nightly.rewritten_bytes for each in found),
        more=rewritten / sum(each.autocomp.rewritten_bytes for each in found),
        worst=farthest.distance,
        where=_place(farthest),
    )


def _lost_a_day(each: Comparison) -> float:
    """Return the seconds that the policy costs more than the best on an average day."""
    return (each.policy.total - each.best.total) / len(each.history.days)


def _place(each: Comparison) -> str:
    return f"{each.history.name} on {each.store.name} at {each.history.reads_per_day:,} reads a day"
