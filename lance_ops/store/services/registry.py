"""The services that the library knows by name, in one explicit tuple. A new one is a file and a line in it."""

from __future__ import annotations

from collections.abc import Mapping

from lance_ops.store.services.azure import Azure
from lance_ops.store.services.choice import obstore_service
from lance_ops.store.services.contract import Service
from lance_ops.store.services.gcs import Gcs
from lance_ops.store.services.hdfs import Hdfs
from lance_ops.store.services.other import Other
from lance_ops.store.services.s3 import S3

__all__ = ["ALL_SERVICES", "chosen_service", "service_of"]

ALL_SERVICES: tuple[Service, ...] = (S3(), Gcs(), Azure(), Hdfs())
_OTHER = Other()


def service_of(scheme: str) -> Service:
    """Return the service a URI's scheme names; one without a conditional create for every other scheme."""
    return next((service for service in ALL_SERVICES if scheme in service.schemes), _OTHER)


def chosen_service(scheme: str, options: Mapping[str, object]) -> Service:
    """Return the service that a URI's scheme names, through the client that the options choose."""
    return obstore_service(scheme, options) or service_of(scheme)
