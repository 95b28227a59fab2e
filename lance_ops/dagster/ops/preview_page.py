"""Show a preview, and sizes before and after, as pages of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from lance_ops.dagster.markdown import size_text, table
from lance_ops.verbs import Measures, Preview, Section

__all__ = ["comparison", "preview_page", "sections_page"]


def preview_page(preview: Preview, past_seconds: float | None, run_id: str, execute_link: str | None = None) -> str:
    """Return the page of a preview. A later run executes the run's id; the link leads to a launchpad that says so."""
    parts = [f"### {preview.summary[:1].upper()}{preview.summary[1:]}"]
    if preview.after == preview.before:
        parts.append(f"The newest version keeps {_sizes(preview.before)}.")
    elif preview.after is not None:
        parts.append(comparison(preview.before, preview.after, estimated=True))
    cost = [
        f"reads about {size_text(preview.reads_bytes)}" if preview.reads_bytes else "",
        f"writes about {size_text(preview.writes_bytes)}" if preview.writes_bytes else "",
        f"took {past_seconds:.1f} s in past runs" if past_seconds is not None else "",
    ]
    parts.append("; ".join(filter(None, cost)))
    parts += [f"⚠ {warning}" for warning in preview.warnings]
    parts.append(sections_page(preview.sections))
    if not preview.does_nothing:
        parts.append(f"To execute these stored options, launch with `execute: {run_id}`.")
        parts += [f"[Open the launchpad with this plan]({execute_link})"] if execute_link else []
    return "\n\n".join(filter(None, parts))


def sections_page(sections: Sequence[Section]) -> str:
    """Return titled tables one after the other."""
    return "\n\n".join(f"**{section.title}**\n\n{table(section.header, section.lines)}" for section in sections)


def comparison(before: Measures, after: Measures, *, estimated: bool = False) -> str:
    """Return a table of sizes before and after."""
    lines = [
        ("rows", f"{before.rows:,}", f"{after.rows:,}"),
        ("deleted rows still stored", f"{before.deleted_rows:,}", f"{after.deleted_rows:,}"),
        ("fragments", f"{before.fragments:,}", f"{after.fragments:,}"),
        ("bytes of data files", size_text(before.size_bytes), size_text(after.size_bytes)),
    ]
    return table(["", "before", "after (estimate)" if estimated else "after"], lines)


def _sizes(measures: Measures) -> str:
    return f"{measures.rows:,} rows in {measures.fragments:,} fragments of {size_text(measures.size_bytes)}"
