"""The life of a plan, for tests: previewed, stored, read again, and executed on the newest version."""

from __future__ import annotations

from lance_ops.api import LanceDataset, dataset
from lance_ops.verbs import Executed, Preview, StoredPlan, Verb, execute_plan, make_plan

__all__ = ["live", "section"]


def live(verb: Verb, data: LanceDataset) -> tuple[Preview, Executed]:
    """Preview a verb, store its plan, read it again, and execute it."""
    version = data.version
    plan, preview = make_plan(verb, data)
    assert dataset(data.uri).version == version, "a preview changes nothing"
    return preview, execute_plan(StoredPlan.from_json(plan.to_json()), dataset(data.uri))


def section(preview: Preview, title: str) -> dict[str, tuple[str, ...]]:
    """Return a section's columns by title."""
    found = next(each for each in preview.sections if each.title == title)
    return dict(zip(found.header, zip(*found.lines, strict=True), strict=True))
