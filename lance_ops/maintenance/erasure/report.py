"""The report of an erasure: what was removed, and the proof; as JSON, which is also the record, and as a page.

    _lance_ops/erasures/{id}.json, {id}.html

Neither holds an erased value. `subject` is a keyed digest of the filter, with the id as the key.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field, replace
from typing import Any

from lance_ops.core.records import dataclass
from lance_ops.refs import ERASURES_DIR
from lance_ops.store import Store

__all__ = ["ErasedBranch", "ErasureReport", "ExaminedFile", "ReportDraft"]

_MOST_FILES_ON_PAGE = 1000
_NOT_EXAMINED = (
    "shallow clones that read this dataset",
    "copies, backups and noncurrent versions of a bucket's objects",
    "raw files that could be ingested again",
    "objects elsewhere that blob columns point to",
)


@dataclass(frozen=True)
class ExaminedFile:
    """A remaining file: its path beneath the root, its size and content hash, and how it was examined.

    The file may hold an erased value: `examined` and `ErasureReport.unproven` say so.
    """

    path: str
    size_bytes: int
    sha256: str
    examined: str


@dataclass(frozen=True)
class ErasedBranch:
    """The newest version of a branch after the erasure, and the older ones that were proven to hold no such row.

    In the record of an erasure that is not finished, `version` is the first one that the erasure may commit.
    """

    version: int
    clean_versions: tuple[int, ...] = ()


@dataclass(frozen=True)
class ErasureReport:
    """What an erasure did; `unproven` names what may still hold the rows, and `is_proven` that nothing does.

    `committed_versions` has the last version that the erasure committed on each branch that it rewrote. `also_held_by`
    has the roots of other datasets, such as a clone's source, whose files stored the rows: they were left alone. If
    only young files without a version are not proven, or versions that running work keeps, the report
    `waits_for_writers`: they may commit or remove the files, and end.
    """

    id: str
    uri: str
    reason: str
    subject: str
    begun_at: str
    finished_at: str = ""
    erased_rows: int = 0
    rows_appended_meanwhile: int = 0
    rewritten_fragments: int = 0
    rebuilt_indices: tuple[str, ...] = ()
    removed_versions: tuple[str, ...] = ()
    removed_tags: tuple[str, ...] = ()
    branches: Mapping[str, ErasedBranch] = field(default_factory=dict)
    committed_versions: Mapping[str, int] = field(default_factory=dict)
    also_held_by: tuple[str, ...] = ()
    searched_fragments: int = 0
    searched_values: int = 0
    files: tuple[ExaminedFile, ...] = ()
    unproven: tuple[str, ...] = ()
    waits_for_writers: bool = False

    @property
    def is_proven(self) -> bool:
        """Whether the erasure is finished and no remaining file may hold the rows."""
        return bool(self.finished_at) and not self.unproven

    @property
    def json_path(self) -> str:
        """The path of the record, relative to the dataset's root."""
        return f"{ERASURES_DIR}/{self.id}.json"

    @property
    def html_path(self) -> str:
        """The path of the page, relative to the dataset's root."""
        return f"{ERASURES_DIR}/{self.id}.html"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values for JSON."""
        return {**asdict(self), "is_proven": self.is_proven, "not_examined": _NOT_EXAMINED}

    def save(self, store: Store) -> None:
        """Write the record, and the page once the erasure is finished, into the root of the main branch."""
        store.put(self.json_path, json.dumps(self.to_dict(), indent=1).encode())
        if self.finished_at:
            store.put(self.html_path, self.to_html().encode())

    def summary(self) -> dict[str, str]:
        """Return the facts for people, without the files."""
        return {
            "dataset": self.uri,
            "reason": self.reason,
            "erased rows": f"{self.erased_rows:,}",
            "of these, appended meanwhile": f"{self.rows_appended_meanwhile:,}",
            "rewritten fragments": f"{self.rewritten_fragments:,}",
            "rebuilt indices": ", ".join(self.rebuilt_indices) or "none",
            "removed versions": ", ".join(self.removed_versions) or "none",
            "removed tags": ", ".join(self.removed_tags) or "none",
            "remaining versions": "; ".join(
                f"{name}: {', '.join(map(str, (*sorted(branch.clean_versions), branch.version)))}"
                for name, branch in self.branches.items()
            ),
            "fragments searched row by row": f"{self.searched_fragments:,}",
            "values searched in the bytes of all files": f"{self.searched_values:,}",
            "remaining files": f"{len(self.files):,}",
            "not examined": "; ".join(_NOT_EXAMINED),
            **({"other datasets that store the rows": ", ".join(self.also_held_by)} if self.also_held_by else {}),
            "begun": self.begun_at,
            "finished": self.finished_at,
            "subject (HMAC-SHA-256, key is the id)": self.subject,
        }

    def to_html(self) -> str:
        """Return the report as a page that stands alone."""
        verdict = (
            "Proven: no remaining file beneath the dataset's root holds the rows" if self.is_proven else "NOT proven"
        )
        facts = "".join(_row("th", name, value) for name, value in self.summary().items())
        unproven = "".join(f"<li>{html.escape(each)}</li>" for each in self.unproven)
        shown = self.files[:_MOST_FILES_ON_PAGE]
        files = "".join(_row("td", f.path, f"{f.size_bytes:,}", f.sha256, f.examined) for f in shown)
        more = f"<p>The JSON report lists all {len(self.files):,} files.</p>" if len(self.files) > len(shown) else ""
        return (
            '<!doctype html><meta charset="utf-8"><title>Erasure</title>'
            "<style>body{font:14px sans-serif;margin:2em}th{text-align:left}td,th{padding:2px 12px 2px 0}</style>"
            f"<h1>Erasure {html.escape(self.id)}</h1><h2>{verdict}</h2>"
            f"<table>{facts}</table>{f'<h2>Not proven</h2><ul>{unproven}</ul>' if unproven else ''}"
            f"<h2>Remaining files</h2><table>{_row('th', 'file', 'bytes', 'SHA-256', 'examined')}{files}</table>{more}"
        )

    def with_values(self, **changes: Any) -> ErasureReport:
        """Return the report with other values."""
        return replace(self, **changes)


class ReportDraft:
    """The report of an erasure under way. A step adds what it did at once, because the next step may fail."""

    def __init__(self, report: ErasureReport) -> None:
        self.report = report

    def add_counts(self, **counts: int) -> None:
        """Add to the report's counts, by their names."""
        changed = {name: getattr(self.report, name) + count for name, count in counts.items()}
        self.report = self.report.with_values(**changed)

    def add_names(self, **names: Iterable[str]) -> None:
        """Add to the report's lists of removed versions and tags, by their names; a list has each name once."""
        changed = {name: tuple(dict.fromkeys([*getattr(self.report, name), *more])) for name, more in names.items()}
        self.report = self.report.with_values(**changed)

    def add_rebuilt_index(self, name: str) -> None:
        """Add the name of an index that was built anew; the report has the names in alphabetical order."""
        rebuilt = tuple(sorted({*self.report.rebuilt_indices, name}))
        self.report = self.report.with_values(rebuilt_indices=rebuilt)

    def set_committed(self, branch: str, version: int) -> None:
        """Set the last version that the erasure committed on a branch."""
        committed = {**self.report.committed_versions, branch: version}
        self.report = self.report.with_values(committed_versions=committed)


def _row(first: str, *cells: str) -> str:
    head, *rest = (html.escape(cell) for cell in cells)
    return f"<tr><{first}>{head}</{first}>{''.join(f'<td>{cell}</td>' for cell in rest)}</tr>"
