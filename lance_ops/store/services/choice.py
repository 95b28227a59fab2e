"""Choose the client of a store: fsspec, or obstore where the caller asks for it.

The storage option `store_client` names it, and so does the environment variable `LANCE_OPS_STORE_CLIENT`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lance_ops.core.errors import InvalidInput
from lance_ops.store.services.contract import CLIENT_OPTION, Service
from lance_ops.store.services.obstore import ObstoreAzure, ObstoreS3, ObstoreService, is_usable

__all__ = ["obstore_service"]

_ENVIRONMENT = "LANCE_OPS_STORE_CLIENT"
_CLIENTS = ("fsspec", "obstore")
_OBSTORE: tuple[ObstoreService, ...] = (ObstoreS3(), ObstoreAzure())
"""Google Cloud Storage is missing: no server that runs in the tests takes obstore's writes."""


def obstore_service(scheme: str, options: Mapping[str, object]) -> Service | None:
    """Return the service of a scheme through obstore; None if fsspec is to be used.

    Whatever is asked for, fsspec is used for schemes that are neither S3's nor Azure's, with a shared access signature
    of Azure, and in a forked child whose parent had loaded obstore. Raises `InvalidInput` for an unknown client.
    """
    given = next((value for name, value in options.items() if name.lower() == CLIENT_OPTION), None)
    named = str(given or os.environ.get(_ENVIRONMENT) or _CLIENTS[0])
    if named not in _CLIENTS:
        raise InvalidInput(
            f"{CLIENT_OPTION} among storage_options, or {_ENVIRONMENT}, is none of {' and '.join(_CLIENTS)}"
        )
    if named != "obstore" or not is_usable():
        return None
    return next((each for each in _OBSTORE if scheme in each.schemes and each.serves(options)), None)
