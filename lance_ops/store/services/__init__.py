"""The services that the library knows by name. A new one is a file and a line in `registry.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_ops.core.lazy_import import import_on_first_use

if TYPE_CHECKING:
    from lance_ops.store.services.contract import ListedObject, Service
    from lance_ops.store.services.credential_sources import digest_of_sources, environment_path
    from lance_ops.store.services.known_failures import gives_no_answer, is_missing_bucket, known_failure
    from lance_ops.store.services.modification_times import modified_of, moment_of
    from lance_ops.store.services.registry import ALL_SERVICES, chosen_service, service_of
    from lance_ops.store.services.s3 import S3

__all__ = [
    "ALL_SERVICES",
    "S3",
    "ListedObject",
    "Service",
    "chosen_service",
    "digest_of_sources",
    "environment_path",
    "gives_no_answer",
    "is_missing_bucket",
    "known_failure",
    "modified_of",
    "moment_of",
    "service_of",
]

_MODULES = {
    "ALL_SERVICES": "registry",
    "S3": "s3",
    "ListedObject": "contract",
    "Service": "contract",
    "chosen_service": "registry",
    "digest_of_sources": "credential_sources",
    "environment_path": "credential_sources",
    "gives_no_answer": "known_failures",
    "is_missing_bucket": "known_failures",
    "known_failure": "known_failures",
    "modified_of": "modification_times",
    "moment_of": "modification_times",
    "service_of": "registry",
}

if not TYPE_CHECKING:  # a type checker that sees it would accept any name
    __getattr__ = import_on_first_use(__name__, _MODULES)
