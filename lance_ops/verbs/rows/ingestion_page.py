"""Tell people what an ingestion would do to columns, and what it did with batches."""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.core.schema import Schema
from lance_ops.maintenance.ingest import IngestResult
from lance_ops.verbs.contract import Facts, Section

__all__ = [
    "MOST_LINES",
    "column_changes",
    "ingestion_facts",
    "ingestion_problem",
    "ingestion_sections",
    "shortened_section",
]

MOST_LINES = 50
"""How many lines of a section are shown."""


def shortened_section(title: str, header: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> Section:
    """Return a section of the first lines; its title says so if there are more."""
    shown = title if len(lines) <= MOST_LINES else f"{title} (the first {MOST_LINES} of {len(lines):,})"
    return Section(shown, header, tuple(lines[:MOST_LINES]))


def column_changes(before: Schema | None, after: Schema) -> list[tuple[str, ...]]:
    """Return each column with its type and what changes of it, those with a change first."""
    known = {} if before is None else {each.name: str(each.arrow_type) for each in before.fields}
    lines = []
    for each in after.fields:
        kind = str(each.arrow_type)
        change = "new" if each.name not in known else f"{known[each.name]} before" if known[each.name] != kind else ""
        lines.append((each.name, kind, change))
    gone = [(name, kind, "removed") for name, kind in known.items() if name not in after.names]
    return sorted([*lines, *gone], key=lambda line: not line[2])


def ingestion_facts(done: IngestResult) -> Facts:
    """Return the numbers of batches and rows."""
    facts: dict[str, int] = {
        "ingested_batches": len(done.ingested),
        "skipped_batches": len(done.skipped),
        "ingested_rows": done.num_rows,
    }
    if done.replaced:
        facts["replaced_batches"] = len(done.replaced)
    if done.refused:
        facts["refused_batches"] = len(done.refused)
    if done.merged is not None:
        facts |= {"inserted_rows": done.merged.inserted, "updated_rows": done.merged.updated}
    return facts


def ingestion_sections(done: IngestResult) -> tuple[Section, ...]:
    """Return the batches with their rows, and those that were set aside with the reasons."""
    rows = [(key, f"{count:,}") for key, count in done.rows_by_batch.items()]
    refused = list(done.refused.items())
    parts = (("Batches set aside", ("batch", "reason"), refused), ("Ingested batches", ("batch", "rows"), rows))
    return tuple(shortened_section(what, head, lines) for what, head, lines in parts if lines)


def ingestion_problem(done: IngestResult, num_batches: int) -> str:
    """Return which batches were set aside and why; "" if none was."""
    if not done.refused:
        return ""
    named = "; ".join(f"{key}: {reason}" for key, reason in [*done.refused.items()][:5])
    return f"{len(done.refused)} of {num_batches} batches are set aside, the others are in the table: {named}"
