"""The reference's `lance.progress`: whom a write tells of its fragments."""

from lance_ops.api import FragmentWriteProgress, NoopFragmentWriteProgress

__all__ = ["FragmentWriteProgress", "NoopFragmentWriteProgress"]
