"""Remove old versions and the files that no retained version names, on request or by the table's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.maintenance.cleanup.auto_cleanup import auto_cleanup_config, clean_up_if_due
    from lance_ops.maintenance.cleanup.cleanup import (
        CleanupExplanation,
        CleanupStats,
        cleanup_old_versions,
        explain_cleanup_old_versions,
        explain_with_bounds,
    )
    from lance_ops.maintenance.cleanup.cleanup_options import (
        MOST_DAYS,
        AutoCleanupConfig,
        CleanupBounds,
        CleanupOptions,
    )
    from lance_ops.maintenance.cleanup.cleanup_plan import begin_held_versions
    from lance_ops.maintenance.cleanup.durations import format_duration, parse_duration
    from lance_ops.maintenance.cleanup.named_files import NamedFiles
    from lance_ops.maintenance.cleanup.shared_work import CleanupTasks

__all__ = [
    "MOST_DAYS",
    "AutoCleanupConfig",
    "CleanupBounds",
    "CleanupExplanation",
    "CleanupOptions",
    "CleanupStats",
    "CleanupTasks",
    "NamedFiles",
    "auto_cleanup_config",
    "begin_held_versions",
    "clean_up_if_due",
    "cleanup_old_versions",
    "explain_cleanup_old_versions",
    "explain_with_bounds",
    "format_duration",
    "parse_duration",
]

_MODULES = {
    "MOST_DAYS": "cleanup_options",
    "AutoCleanupConfig": "cleanup_options",
    "CleanupBounds": "cleanup_options",
    "CleanupExplanation": "cleanup",
    "CleanupOptions": "cleanup_options",
    "CleanupStats": "cleanup",
    "CleanupTasks": "shared_work",
    "NamedFiles": "named_files",
    "auto_cleanup_config": "auto_cleanup",
    "begin_held_versions": "cleanup_plan",
    "clean_up_if_due": "auto_cleanup",
    "cleanup_old_versions": "cleanup",
    "explain_cleanup_old_versions": "cleanup",
    "explain_with_bounds": "cleanup",
    "format_duration": "durations",
    "parse_duration": "durations",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
