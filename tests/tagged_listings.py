"""Make memory stores answer as object stores do: listings in order with the tags of objects, and no byte in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import md5

import pytest

from lance_ops.store import MemoryStore

__all__ = ["tagged_listings"]


@contextmanager
def tagged_listings(*, digests: bool = True) -> Iterator[None]:
    """Change every memory store until the end. Without `digests`, tags do not tell what the bytes are."""

    def list_tags(self: MemoryStore, directory: str, limit: int | None = None) -> Mapping[str, str | None]:
        names = sorted(self.list_names(directory))[:limit]
        tags = {name: md5(self.get(f"{directory}/{name}").to_pybytes()).hexdigest() for name in names}
        return {name: tag if digests else f"encrypted {tag}" for name, tag in tags.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryStore, "reads_in_place", False)
        patch.setattr(MemoryStore, "lists_in_order", True)
        patch.setattr(MemoryStore, "directory_stamp", lambda *_: None)
        patch.setattr(MemoryStore, "seal_directory", lambda *_: None)
        patch.setattr(MemoryStore, "list_tags", list_tags)
        yield
