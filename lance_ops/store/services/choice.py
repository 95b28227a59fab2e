"""Choose the client of a store: obstore where it is installed and can do what the options ask for, else fsspec.

The storage option `store_client` names one of them, and so does the environment variable `LANCE_OPS_STORE_CLIENT`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lance_ops.core.errors import InvalidInput
from lance_ops.store.services.contract import CLIENT_OPTION, Service
from lance_ops.store.services.obstore import ObstoreAzure, ObstoreS3, ObstoreService, is_installed, is_safe_after_fork

__all__ = ["obstore_service"]

_ENVIRONMENT = "LANCE_OPS_STORE_CLIENT"
_CLIENTS = ("fsspec", "obstore")
_OBSTORE: tuple[ObstoreService, ...] = (ObstoreS3(), ObstoreAzure())
"""Google Cloud Storage is missing: no server that runs in the tests takes obstore's writes."""


def obstore_service(scheme: str, options: Mapping[str, object]) -> Service | None:
    """Return the service of a scheme through obstore; None if fsspec is to be used.

    Whatever is asked for, fsspec is used for schemes that are neither S3's nor Azure's, with settings that fsspec's
    packages alone understand, and in a forked child whose parent had loaded obstore. Raises `InvalidInput` for an
    unknown client.
    """
    service = next((each for each in _OBSTORE if scheme in each.schemes), None)
    if service is None:
        return None
    given = next((value for name, value in options.items() if name.lower() == CLIENT_OPTION), None)
    named = str(given or os.environ.get(_ENVIRONMENT) or "")
    if named and named not in _CLIENTS:
        raise InvalidInput(
            f"{CLIENT_OPTION} among storage_options, or {_ENVIRONMENT}, is none of {' and '.join(_CLIENTS)}"
        )
    is_wanted = named == "obstore" or (not named and is_installed())
    return service if is_wanted and is_safe_after_fork() and service.serves(options) else None
