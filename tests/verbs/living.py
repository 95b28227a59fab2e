"""The life of a plan, for tests: previewed, stored, read again, executed on the newest version; and what it left."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from lance_ops.api import LanceDataset, dataset
from lance_ops.verbs import Executed, Preview, StoredPlan, Verb, execute_plan, make_plan
from tests.verbs.examples import Example

__all__ = ["expected_after", "found_after", "live", "section"]


def live(verb: Verb, data: LanceDataset) -> tuple[Preview, Executed]:
    """Preview a verb, store its plan, read it again, and execute it."""
    version = data.version
    plan, preview = make_plan(verb, data)
    assert dataset(data.uri).version == version, "a preview changes nothing"
    return preview, execute_plan(StoredPlan.from_json(plan.to_json()), dataset(data.uri))


@cache
def expected_after(example: Example) -> dict[str, Any]:
    """Have an example live in Python, on a table of its own; return what `found_after` returns."""
    with TemporaryDirectory() as folder:
        data = example.begin(f"{folder}/twin.lance", Path(folder))
        live(example.make(folder), data)
        return found_after(data.uri, Path(folder))


def found_after(uri: str, folder: Path) -> dict[str, Any]:
    """Return all that an example may change in a table, and the rows of the clone in its folder if there is one."""
    data = dataset(uri)
    clone = folder / "copy.lance"
    return {
        "rows": _rows(data),
        "schema": data.schema,
        "versions": [each["version"] for each in data.versions()],
        "tags": {name: tag["version"] for name, tag in data.tags.list().items()},
        "branches": {name: branch["parent_version"] for name, branch in data.branches.list().items()},
        "indices": {each.name: (each.field_names, each.num_rows_indexed) for each in data.describe_indices()},
        "clone": _rows(dataset(str(clone))) if clone.exists() else None,
    }


def _rows(data: LanceDataset) -> pa.Table:
    """Return all rows, whatever their order: tasks may commit theirs in any."""
    return data.to_table().sort_by("x")


def section(preview: Preview, title: str) -> dict[str, tuple[str, ...]]:
    """Return a section's columns by title."""
    found = next(each for each in preview.sections if each.title == title)
    return dict(zip(found.header, zip(*found.lines, strict=True), strict=True))
