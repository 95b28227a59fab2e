"""Reach S3 and Azure with obstore, a client in Rust, in place of fsspec's packages (ADR 23)."""

from __future__ import annotations

from lance_ops.store.services.obstore.azure import ObstoreAzure
from lance_ops.store.services.obstore.runtime import is_installed, is_safe_after_fork
from lance_ops.store.services.obstore.s3 import ObstoreS3
from lance_ops.store.services.obstore.service import ObstoreService

__all__ = ["ObstoreAzure", "ObstoreS3", "ObstoreService", "is_installed", "is_safe_after_fork"]
