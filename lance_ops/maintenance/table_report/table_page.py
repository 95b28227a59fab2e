"""Write a table's report as one page that stands alone: no script, no other file, light or dark as the reader prefers.

Names and messages come from the table, whose writer is not trusted. Every one passes `_cell` or the charts, which
escape it. The page's own policy forbids scripts and requests, should one ever slip through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import shorten

from lance_ops.charts import escaped, size_text
from lance_ops.maintenance.debt import TableDebt
from lance_ops.maintenance.health import HealthReport
from lance_ops.maintenance.table_report.charted_versions import trend_svg, version_svg
from lance_ops.maintenance.table_report.measured_table import ColumnSize, PastVersion, TableReport

__all__ = ["report_page"]

_MOST_COLUMNS = 500
_MOST_VERSIONS = 20
_MESSAGE_LENGTH = 200

_STYLE = """
:root{color-scheme:light dark;--ground:#f9fafb;--ink:#1f2937;--faint:#d1d5db;--good:#047857;--bad:#b91c1c}
@media(prefers-color-scheme:dark){:root{--ground:#0b0f17;--ink:#e5e7eb;--faint:#374151;--good:#34d399;--bad:#f87171}}
body{font:14px/1.5 system-ui,sans-serif;background:var(--ground);color:var(--ink);max-width:1000px;margin:2em auto;
padding:0 1em}h1{font-size:1.5em;overflow-wrap:anywhere}h2{font-size:1.15em;margin-top:2em}svg{max-width:100%;
height:auto;margin:.5em 0}table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;
padding:4px 12px 4px 0;border-bottom:1px solid var(--faint);overflow-wrap:anywhere;unicode-bidi:isolate}
.right{text-align:right;white-space:nowrap}.good{color:var(--good)}.bad{color:var(--bad)}
"""


def report_page(report: TableReport) -> str:
    """Return the report as an HTML document."""
    title = f"{escaped(report.uri)}, version {report.health.version}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>{''.join(_parts(report))}"
        "</body></html>\n"
    )


def _parts(report: TableReport) -> Iterator[str]:
    yield from _health(report.health)
    if report.gaps:
        yield "<h2>Could not be measured</h2>"
        yield _table((), [(each,) for each in report.gaps])
    if report.past:
        yield "<h2>Versions</h2>"
        yield version_svg(report.uri, report.past, report.branches)
        yield trend_svg(report.uri, report.past)
    if report.debt is not None:
        yield from _debt(report.debt)
    yield from _columns(report.columns)
    yield from _indices(report.health)
    yield from _history(report.past)


def _health(health: HealthReport) -> Iterator[str]:
    verdict, style = ("Healthy: nothing to do", "good") if health.is_healthy else ("Needs attention", "bad")
    yield f'<p class="{style}"><strong>{verdict}</strong></p>'
    facts = [
        ("committed (UTC)", f"{health.timestamp:%Y-%m-%d %H:%M:%S}" if health.timestamp else "unknown"),
        ("rows", f"{health.num_rows:,}, and {health.deleted_ratio:.1%} of the stored rows are deleted"),
        ("fragments", f"{health.num_fragments:,}, of which {health.num_small_fragments:,} are small"),
        ("size", size_text(health.size_bytes)),
        ("versions kept", f"{health.num_versions:,}"),
    ]
    yield _table((), facts)
    if health.findings:
        yield "<h2>Findings</h2>"
        yield _table(
            ("severity", "what", "advice"), [(each.severity.value, each.what, each.advice) for each in health.findings]
        )


def _debt(debt: TableDebt) -> Iterator[str]:
    yield "<h2>Debt</h2>"
    yield f"<p>A read costs {debt.read_amplification:.2f} times as much as it would without debt.</p>"
    if not debt.dues:
        yield '<p class="good">No step would help.</p>'
        return
    yield _table(
        ("step", "owed", "why", "a read or look-up gains>", "rewrites>", "frees at least>"),
        [
            (
                due.key,
                due.owed_text,
                due.why,
                size_text(due.gain_bytes),
                size_text(due.cost_bytes),
                size_text(due.freed_bytes),
            )
            for due in debt.dues
        ],
    )


def _columns(columns: Sequence[ColumnSize]) -> Iterator[str]:
    yield "<h2>Columns</h2>"
    total = max(sum(each.size_bytes or 0 for each in columns), 1)
    rows = [
        (
            each.name,
            each.type,
            "allowed" if each.nullable else "none",
            "unknown" if each.size_bytes is None else size_text(each.size_bytes),
            "" if each.size_bytes is None else f"{each.size_bytes / total:.1%}",
        )
        for each in columns[:_MOST_COLUMNS]
    ]
    yield _table(("name", "type", "nulls", "size>", "share>"), rows)
    if len(columns) > _MOST_COLUMNS:
        yield f"<p>{len(columns) - _MOST_COLUMNS:,} more columns are not shown.</p>"


def _indices(health: HealthReport) -> Iterator[str]:
    if not health.indices:
        return
    yield "<h2>Indices</h2>"
    yield _table(
        ("name", "type", "columns", "covers>", "size>"),
        [
            (each.name, each.type_name, ", ".join(each.fields), f"{each.indexed_ratio:.1%}", size_text(each.size_bytes))
            for each in health.indices
        ],
    )


def _history(past: Sequence[PastVersion]) -> Iterator[str]:
    yield "<h2>Latest versions</h2>"
    yield _table(
        ("version>", "committed (UTC)", "operation", "rows>", "fragments>", "deleted>", "size>", "tags", "message"),
        [
            (
                str(each.version),
                each.moment,
                each.operation,
                f"{each.num_rows:,}",
                f"{each.num_fragments:,}",
                f"{each.num_deleted_rows:,}",
                size_text(each.size_bytes),
                ", ".join(each.tags),
                shorten(each.message, _MESSAGE_LENGTH, placeholder=" …"),
            )
            for each in reversed(past[-_MOST_VERSIONS:])
        ],
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; columns whose name ends in `>` are aligned to the right. Every cell is escaped."""
    right = [each.endswith(">") for each in columns]
    head = "".join(_cell("th", each.removesuffix(">"), right=each.endswith(">")) for each in columns)
    body = "".join(
        f"<tr>{''.join(_cell('td', cell, right=at < len(right) and right[at]) for at, cell in enumerate(row))}</tr>"
        for row in rows
    )
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _cell(element: str, words: str, *, right: bool) -> str:
    style = ' class="right"' if right else ""
    return f"<{element}{style}>{escaped(words)}</{element}>"
