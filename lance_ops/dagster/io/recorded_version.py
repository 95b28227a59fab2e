"""Find the version of an upstream asset that a run reads: the one that Dagster recorded, not the newest."""

from __future__ import annotations

import dagster as dg

__all__ = ["VERSION", "current_run", "recorded_version"]

VERSION = "lance/version"
_URI = "dagster/uri"
_PAGE = 50


def current_run() -> dg.OpExecutionContext | None:
    """Return the context of the step that runs here, or None, as when somebody loads an asset in a notebook."""
    try:
        return dg.OpExecutionContext.get()
    except dg.DagsterInvariantViolationError:
        return None


def recorded_version(instance: dg.DagsterInstance, asset_key: dg.AssetKey, uri: str, *, on_branch: bool) -> int | None:
    """Return the version that the asset's event recorded, None without an event of the dataset at `uri`.

    It is the last event of this very run, else the last one before the run began, so that all steps of a run read the
    same version while others write. Outside of a run it is the last event. An event without a URI, such as one of a
    declared dataset's head, tells of the main branch.
    """
    step = current_run()
    began = None
    if step is not None:
        record = instance.get_run_record_by_id(step.run_id)
        began = None if record is None else record.start_time or record.create_timestamp.timestamp()
    cursor = None
    while True:
        page = instance.fetch_materializations(asset_key, limit=_PAGE, cursor=cursor)
        for event in page.records:
            if step is None or event.run_id == step.run_id or began is None or event.timestamp <= began:
                return _version_of(event.asset_materialization, uri, on_branch)
        if not page.has_more:
            return None
        cursor = page.cursor


def _version_of(event: dg.AssetMaterialization | None, uri: str, on_branch: bool) -> int | None:
    """Return the event's version, unless the event tells of another place, such as another branch."""
    if event is None or VERSION not in event.metadata:
        return None
    place = event.metadata.get(_URI)
    if on_branch if place is None else place.value != uri:
        return None
    version = event.metadata[VERSION].value
    return version if isinstance(version, int) else None
