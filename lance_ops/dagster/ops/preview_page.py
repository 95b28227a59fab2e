"""Show a preview, and sizes before and after, as pages of Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from lance_ops.core.redaction import public_uri, redact
from lance_ops.dagster.markdown import size_text, table
from lance_ops.verbs import Measures, Preview, Section, StoredPlan

__all__ = ["comparison", "preview_page", "sections_page"]

_MOST_CHARACTERS = 200


def preview_page(
    plan: StoredPlan, preview: Preview, past_seconds: Sequence[float], run_id: str, execute_link: str | None = None
) -> str:
    """Return the page of a plan: what it would do, what it costs, and what it was given.

    A later run executes the run's id; the link leads to a launchpad that says so. `past_seconds` are the durations of
    past runs.
    """
    place = f"version {plan.read_version} of {public_uri(plan.uri)}" if plan.read_version else public_uri(plan.uri)
    parts = [
        f"### {preview.summary[:1].upper()}{preview.summary[1:]}",
        f"`{plan.verb.name}`, planned on {place}. {plan.verb.when_moved_by_options.sentence}",
    ]
    if preview.after == preview.before:
        parts.append(f"The newest version keeps {_sizes(preview.before)}.")
    elif preview.after is not None:
        parts.append(comparison(preview.before, preview.after, estimated=True))
    cost = [
        f"reads about {size_text(preview.reads_bytes)}" if preview.reads_bytes else "",
        f"writes about {size_text(preview.writes_bytes)}" if preview.writes_bytes else "",
        _duration(past_seconds),
    ]
    parts.append("; ".join(filter(None, cost)))
    parts += [f"**Warning:** {warning}" for warning in preview.warnings]
    parts.append(sections_page(preview.sections))
    parts.append(_options(plan.given))
    if plan.sources:
        parts.append(f"The plan is refused when one of these has changed: {_shortened(list(plan.sources))}")
    if not preview.does_nothing:
        parts.append(f"To execute these stored options, launch with `execute: {run_id}`.")
        parts += [f"[Open the launchpad with this plan]({execute_link})"] if execute_link else []
    return "\n\n".join(filter(None, parts))


def sections_page(sections: Sequence[Section]) -> str:
    """Return titled tables one after the other."""
    return "\n\n".join(f"**{section.title}**\n\n{table(section.header, section.lines)}" for section in sections)


def comparison(
    before: Measures, after: Measures, own: Mapping[str, tuple[int, int]] | None = None, *, estimated: bool = False
) -> str:
    """Return a table of sizes and of a verb's own measures before and after, and how much they change."""
    lines = [
        _line("rows", before.rows, after.rows),
        _line("deleted rows still stored", before.deleted_rows, after.deleted_rows),
        _line("fragments", before.fragments, after.fragments),
        (
            "bytes of data files",
            size_text(before.size_bytes),
            size_text(after.size_bytes),
            _signed(after.size_bytes - before.size_bytes, size_text(abs(after.size_bytes - before.size_bytes))),
        ),
        *(_line(name, *counts) for name, counts in (own or {}).items()),
    ]
    return table(["", "before", "after (estimate)" if estimated else "after", "change"], lines)


def _line(what: str, before: int, after: int) -> tuple[str, str, str, str]:
    return what, f"{before:,}", f"{after:,}", _signed(after - before, f"{abs(after - before):,}")


def _signed(change: int, shown: str) -> str:
    return "" if not change else f"{'+' if change > 0 else '−'}{shown}"


def _duration(seconds: Sequence[float]) -> str:
    """Return how long past runs took: the median, and the shortest and the longest if there are several."""
    if not seconds:
        return ""
    among = f" ({len(seconds)} runs, {min(seconds):.1f} to {max(seconds):.1f} s)" if len(seconds) > 1 else ""
    return f"took {median(seconds):.1f} s in past runs{among}"


def _options(given: Mapping[str, Any]) -> str:
    lines = [(name, _shortened(value)) for name, value in given.items()]
    return f"**Options**\n\n{table(('option', 'value'), lines)}" if lines else ""


def _shortened(value: object) -> str:
    """Return an option's value as text without secrets, and only its beginning if it is long."""
    match value:
        case Mapping():
            text = "; ".join(f"{key}: {each}" for key, each in value.items())
        case list() | tuple():
            text = ", ".join(map(str, value))
        case _:
            text = str(value)
    text = redact(text)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def _sizes(measures: Measures) -> str:
    return f"{measures.rows:,} rows in {measures.fragments:,} fragments of {size_text(measures.size_bytes)}"
