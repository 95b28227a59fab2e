"""Names for versions and places to hold them: tags, branches, pins, removals, clones."""

from lance_ops.refs.branch_file import Branch, list_branches, replace_branch_metadata
from lance_ops.refs.branch_paths import branch_of, checkout, references_of, tagged_version, uri_of_line
from lance_ops.refs.branches import create_branch, delete_branch
from lance_ops.refs.clone import clone_as_said, deep_clone, shallow_clone
from lance_ops.refs.drop import drop_dataset
from lance_ops.refs.pins import PINS_DIR, pinned, pinned_version
from lance_ops.refs.removals import REMOVALS_DIR, UNVERIFIED_AGE, check_stays, noted_removal
from lance_ops.refs.tags import Tag, create_tag, delete_tag, list_tags, read_tag, replace_tag_metadata, update_tag

__all__ = [
    "PINS_DIR",
    "REMOVALS_DIR",
    "UNVERIFIED_AGE",
    "Branch",
    "Tag",
    "branch_of",
    "check_stays",
    "checkout",
    "clone_as_said",
    "create_branch",
    "create_tag",
    "deep_clone",
    "delete_branch",
    "delete_tag",
    "drop_dataset",
    "list_branches",
    "list_tags",
    "noted_removal",
    "pinned",
    "pinned_version",
    "read_tag",
    "references_of",
    "replace_branch_metadata",
    "replace_tag_metadata",
    "shallow_clone",
    "tagged_version",
    "update_tag",
    "uri_of_line",
]
