"""Tags, branches and clones of versions, and the pins and announced removals that protect versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.refs.announced_removals import (
        REMOVALS_DIR,
        UNVERIFIED_AGE,
        announced_removal,
        check_version_is_kept,
        is_mark_expired,
    )
    from lance_ops.refs.branch_file import Branch, list_branches, replace_branch_metadata
    from lance_ops.refs.branch_locations import (
        branch_of,
        branch_uri,
        open_branch,
        reference_store,
        tagged_version,
        writable_reference_store,
    )
    from lance_ops.refs.branches import branch_remains, create_branch, delete_branch, has_branch_remains
    from lance_ops.refs.clone import commit_shallow_clone, deep_clone, shallow_clone
    from lance_ops.refs.dataset_removal import drop_dataset
    from lance_ops.refs.erasure_records import (
        ERASURES_DIR,
        check_restores_no_erased_rows,
        erasure_before,
        list_erasures,
    )
    from lance_ops.refs.tags import (
        Tag,
        create_tag,
        delete_tag,
        list_tag_names,
        list_tags,
        read_tag,
        replace_tag_metadata,
        update_tag,
    )
    from lance_ops.refs.version_pins import (
        PINS_DIR,
        PinnedVersions,
        is_pin_of_work,
        keeping_version,
        naming_pins_by_work,
        pinned,
        pinned_if_at_risk,
        pinned_with_later,
    )

__all__ = [
    "ERASURES_DIR",
    "PINS_DIR",
    "REMOVALS_DIR",
    "UNVERIFIED_AGE",
    "Branch",
    "PinnedVersions",
    "Tag",
    "announced_removal",
    "branch_of",
    "branch_remains",
    "branch_uri",
    "check_restores_no_erased_rows",
    "check_version_is_kept",
    "commit_shallow_clone",
    "create_branch",
    "create_tag",
    "deep_clone",
    "delete_branch",
    "delete_tag",
    "drop_dataset",
    "erasure_before",
    "has_branch_remains",
    "is_mark_expired",
    "is_pin_of_work",
    "keeping_version",
    "list_branches",
    "list_erasures",
    "list_tag_names",
    "list_tags",
    "naming_pins_by_work",
    "open_branch",
    "pinned",
    "pinned_if_at_risk",
    "pinned_with_later",
    "read_tag",
    "reference_store",
    "replace_branch_metadata",
    "replace_tag_metadata",
    "shallow_clone",
    "tagged_version",
    "update_tag",
    "writable_reference_store",
]

_MODULES = {
    "ERASURES_DIR": "erasure_records",
    "check_restores_no_erased_rows": "erasure_records",
    "erasure_before": "erasure_records",
    "list_erasures": "erasure_records",
    "PINS_DIR": "version_pins",
    "PinnedVersions": "version_pins",
    "REMOVALS_DIR": "announced_removals",
    "UNVERIFIED_AGE": "announced_removals",
    "Branch": "branch_file",
    "Tag": "tags",
    "announced_removal": "announced_removals",
    "branch_of": "branch_locations",
    "branch_uri": "branch_locations",
    "check_version_is_kept": "announced_removals",
    "is_mark_expired": "announced_removals",
    "commit_shallow_clone": "clone",
    "branch_remains": "branches",
    "has_branch_remains": "branches",
    "create_branch": "branches",
    "create_tag": "tags",
    "deep_clone": "clone",
    "delete_branch": "branches",
    "delete_tag": "tags",
    "drop_dataset": "dataset_removal",
    "list_branches": "branch_file",
    "list_tag_names": "tags",
    "list_tags": "tags",
    "open_branch": "branch_locations",
    "is_pin_of_work": "version_pins",
    "keeping_version": "version_pins",
    "pinned": "version_pins",
    "pinned_if_at_risk": "version_pins",
    "pinned_with_later": "version_pins",
    "naming_pins_by_work": "version_pins",
    "read_tag": "tags",
    "reference_store": "branch_locations",
    "replace_branch_metadata": "branch_file",
    "replace_tag_metadata": "tags",
    "shallow_clone": "clone",
    "tagged_version": "branch_locations",
    "update_tag": "tags",
    "writable_reference_store": "branch_locations",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
