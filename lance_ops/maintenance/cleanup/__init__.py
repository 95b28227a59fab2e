"""Remove old versions and the files that no retained version names, on request or by the table's configuration."""

from lance_ops.maintenance.cleanup.auto_cleanup import AutoCleanupConfig, auto_cleanup_config, clean_up_if_due
from lance_ops.maintenance.cleanup.cleanup import (
    CleanupExplanation,
    CleanupOptions,
    CleanupStats,
    cleanup_old_versions,
    explain_cleanup_old_versions,
)

__all__ = [
    "AutoCleanupConfig",
    "CleanupExplanation",
    "CleanupOptions",
    "CleanupStats",
    "auto_cleanup_config",
    "clean_up_if_due",
    "cleanup_old_versions",
    "explain_cleanup_old_versions",
]
