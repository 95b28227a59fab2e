"""The reference's `lance.fragment`: what writes and changes fragments apart from commits."""

from lance_ops.api import DataFile, FragmentMetadata, LanceFragment, write_fragments

__all__ = ["DataFile", "FragmentMetadata", "LanceFragment", "write_fragments"]
