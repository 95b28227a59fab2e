"""Any other file system that fsspec knows (SFTP, HTTP, …): it can read and write files, but not commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_ops.core.errors import UnsafeStore
from lance_ops.store.services.contract import Service, without_client

__all__ = ["Other"]


class Other(Service):
    """Passes options on to the file system's package unchanged."""

    schemes = ()
    package = "the package that fsspec names for it"
    needs_proof = False

    def protocol(self, scheme: str) -> str:
        return scheme

    def arguments(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        return without_client(options)

    def create(self, fs: Any, key: str, data: bytes) -> None:
        # fsspec's own `mode="create"` is a check followed by a write, in which two writers can win.
        raise UnsafeStore(
            f"{key}: {type(fs).__name__} has no atomic create, so two writers could both commit the same version; "
            "commit through an external manifest store instead"
        )
