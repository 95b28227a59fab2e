"""The reference's `lance.progress`: whom a write tells of its fragments."""

from lance_ops.api import FileSystemFragmentWriteProgress, FragmentWriteProgress, NoopFragmentWriteProgress

__all__ = ["FileSystemFragmentWriteProgress", "FragmentWriteProgress", "NoopFragmentWriteProgress"]
