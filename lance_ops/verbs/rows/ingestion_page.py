"""Tell people what an ingestion did with batches."""

from __future__ import annotations

from lance_ops.maintenance.ingest import IngestResult
from lance_ops.verbs.contract import Facts, Section
from lance_ops.verbs.sections import shortened_section

__all__ = ["ingestion_facts", "ingestion_problem", "ingestion_sections"]


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
