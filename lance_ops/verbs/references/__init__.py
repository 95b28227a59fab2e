"""Verbs on tags, branches and copies."""

from lance_ops.verbs.references.branch import Branch
from lance_ops.verbs.references.clone import Clone
from lance_ops.verbs.references.tag import Tag

__all__ = ["Branch", "Clone", "Tag"]
