"""Clean up after a commit if the table's configuration asks for it. The keys are the reference's:

    lance.auto_cleanup.interval             number of versions between two clean-ups
    lance.auto_cleanup.older_than           age from which versions are removed, such as `14days`
    lance.auto_cleanup.retain_versions      number of newest versions to keep
    lance.auto_cleanup.delete_rate_limit    deletions a second
    lance.auto_cleanup.delete_concurrency   concurrent deletions

A version is removed if both `older_than` and `retain_versions` allow it. Clean-up keeps tagged versions, files of
writers that may still commit, and the version before the new one, which readers may use. With the interval alone, it
removes versions older than two weeks (the reference then removes all but two versions). Errors are logged, because the
commit is done.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from lance_ops.core.errors import InvalidInput
from lance_ops.maintenance import cleanup
from lance_ops.maintenance.cleanup.cleanup_options import DEFAULT_AGE, CleanupOptions
from lance_ops.maintenance.cleanup.durations import format_duration, parse_duration
from lance_ops.snapshot import AUTO_CLEANUP_INTERVAL, Snapshot

__all__ = [
    "auto_cleanup_config",
    "clean_up_if_due",
    "configured_options",
]

_PREFIX = "lance.auto_cleanup."
_INTERVAL = AUTO_CLEANUP_INTERVAL
_OLDER_THAN, _RETAIN = f"{_PREFIX}older_than", f"{_PREFIX}retain_versions"
_RATE_LIMIT, _CONCURRENCY = f"{_PREFIX}delete_rate_limit", f"{_PREFIX}delete_concurrency"
_DEFAULT_INTERVAL = 20
_MIN_RETAINED = 2

_log = logging.getLogger(__name__)


def auto_cleanup_config(
    interval: int = _DEFAULT_INTERVAL, older_than_seconds: int = int(DEFAULT_AGE.total_seconds())
) -> dict[str, str]:
    """Return the configuration that removes, every `interval` versions, versions older than `older_than_seconds`."""
    if interval < 0:
        raise InvalidInput(f"the interval of clean-ups must not be negative: {interval}")
    return {_INTERVAL: str(interval), _OLDER_THAN: format_duration(timedelta(seconds=older_than_seconds))}


def clean_up_if_due(before: int, made: Snapshot) -> None:
    """Clean up if the interval has passed since `before`, the version that the commits were planned on.

    One verb may have committed several versions. If the clean-up fails, a warning is logged: the commit is a success.
    """
    config = made.manifest.config
    if made.version <= before or _INTERVAL not in config:
        return
    try:
        interval = _number(config, _INTERVAL)
        assert interval is not None
        if interval and made.version // interval == before // interval:
            return
        cleanup.cleanup_old_versions(made, configured_options(config))
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller's version exists
        _log.warning("%s at version %d: the automatic clean-up failed: %s", made.uri, made.version, error)


def configured_options(config: Mapping[str, str]) -> CleanupOptions:
    """Return the clean-up options in a table's configuration; raise `InvalidInput` with the key of a bad value."""
    older_than, retained = config.get(_OLDER_THAN), _number(config, _RETAIN)
    if older_than is not None:
        try:
            age: timedelta | None = parse_duration(older_than)
        except InvalidInput as error:
            raise InvalidInput(f"{_OLDER_THAN}: {error}") from error
    else:
        age = None if retained is not None else DEFAULT_AGE
    if retained == 0:
        raise InvalidInput(f"{_RETAIN} must be at least 1, not 0")
    return CleanupOptions(
        age,
        max(_MIN_RETAINED, retained or 0),
        error_if_tagged_old_versions=False,
        delete_rate_limit=_number(config, _RATE_LIMIT),
        delete_concurrency=_number(config, _CONCURRENCY),
    )


def _number(config: Mapping[str, str], key: str) -> int | None:
    text = config.get(key)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()):
        raise InvalidInput(f"{key} must be a number, not {text!r}")
    return int(text)
