"""Tags, branches and clones of versions, and the pins and announced removals that protect versions."""

from lance_ops.refs.announced_removals import REMOVALS_DIR, UNVERIFIED_AGE, announced_removal, check_version_is_kept
from lance_ops.refs.branch_file import Branch, list_branches, replace_branch_metadata
from lance_ops.refs.branch_locations import (
    branch_of,
    branch_uri,
    open_branch,
    reference_store,
    tagged_version,
    writable_reference_store,
)
from lance_ops.refs.branches import create_branch, delete_branch
from lance_ops.refs.clone import commit_shallow_clone, deep_clone, shallow_clone
from lance_ops.refs.dataset_removal import drop_dataset
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
from lance_ops.refs.version_pins import PINS_DIR, pinned, pinned_version

__all__ = [
    "PINS_DIR",
    "REMOVALS_DIR",
    "UNVERIFIED_AGE",
    "Branch",
    "Tag",
    "announced_removal",
    "branch_of",
    "branch_uri",
    "check_version_is_kept",
    "commit_shallow_clone",
    "create_branch",
    "create_tag",
    "deep_clone",
    "delete_branch",
    "delete_tag",
    "drop_dataset",
    "list_branches",
    "list_tag_names",
    "list_tags",
    "open_branch",
    "pinned",
    "pinned_version",
    "read_tag",
    "reference_store",
    "replace_branch_metadata",
    "replace_tag_metadata",
    "shallow_clone",
    "tagged_version",
    "update_tag",
    "writable_reference_store",
]
