"""The reference's `lance.fragment`: what writes and changes fragments apart from commits."""

from lance_ops.api import LanceFragment, write_fragments

__all__ = ["LanceFragment", "write_fragments"]
