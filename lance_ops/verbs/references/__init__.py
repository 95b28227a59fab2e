"""Verbs on tags, branches and copies."""

from lance_ops.verbs.references.tag import Tag

__all__ = ["Tag"]
