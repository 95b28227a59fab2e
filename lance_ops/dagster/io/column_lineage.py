"""Tell where the columns of an output come from.

A dataset or a scan of an asset beneath the same root tells it exactly. A table or a frame does not remember its origin:
of those, a column comes from the columns of its name in the inputs that the step has loaded. A renamed column has no
origin then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import dagster as dg

from lance_ops.api import stored_rows
from lance_ops.dagster.io.recorded_version import current_run

__all__ = ["COLUMN_LINEAGE", "DATASET_SUFFIX", "column_lineage", "note_loaded"]

COLUMN_LINEAGE = "dagster/column_lineage"
DATASET_SUFFIX = ".lance"

_LOADED: WeakKeyDictionary[dg.OpExecutionContext, list[dg.TableColumnDep]] = WeakKeyDictionary()
"""The columns that the steps under way in this process have loaded; those of a step go with its context."""


def note_loaded(asset_key: dg.AssetKey, columns: Sequence[str]) -> None:
    """Remember what the step under way has loaded, for the lineage of its outputs; outside of a step, do nothing."""
    step = current_run()
    if step is not None:
        _LOADED.setdefault(step, []).extend(dg.TableColumnDep(asset_key, column) for column in columns)


def column_lineage(obj: Any, asset_key: dg.AssetKey, columns: Sequence[str], root: str) -> dg.TableColumnLineage | None:
    """Return the origin of the columns of an output, None if no column has one; `root` is that of stored assets."""
    known = _of_stored(obj, root)
    if known is not None:
        return known
    step = current_run()
    loaded = [] if step is None else [each for each in _LOADED.get(step, ()) if each.asset_key != asset_key]
    by_name = {column: [each for each in loaded if each.column_name == column] for column in columns}
    found = {column: origins for column, origins in by_name.items() if origins}
    return dg.TableColumnLineage(found) if found else None


def _of_stored(obj: Any, root: str) -> dg.TableColumnLineage | None:
    """Return the origin of the columns of a dataset or a scan of an asset that is stored beneath the root."""
    rows = stored_rows(obj)
    if rows is None or not rows.version.uri.startswith(f"{root}/"):
        return None
    path = rows.version.uri.removeprefix(f"{root}/").partition(f"{DATASET_SUFFIX}/tree/")[0]
    origin = dg.AssetKey(path.removesuffix(DATASET_SUFFIX).split("/"))
    names = rows.columns or rows.schema.to_arrow().names
    return dg.TableColumnLineage({name: [dg.TableColumnDep(origin, name)] for name in names})
