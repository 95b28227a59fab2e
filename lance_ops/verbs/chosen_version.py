"""Find the version that a verb's options choose, by number or by tag."""

from __future__ import annotations

from lance_ops.api import LanceDataset
from lance_ops.core.errors import InvalidInput
from lance_ops.refs import tagged_version

__all__ = ["chosen_version"]


def chosen_version(data: LanceDataset, version: int | None, tag: str | None) -> int | None:
    """Return a version's number, or None if the options choose none.

    Raises `InvalidInput` if they choose two, and `ReferenceNotFound` for a tag that does not exist.
    """
    if version is not None and tag is not None:
        raise InvalidInput("give either a version or a tag")
    return version if tag is None else tagged_version(data.snapshot, tag)
