"""Google Cloud Storage, through gcsfs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lance_ops.core.errors import InvalidInput
from lance_ops.store.services.contract import GENERAL_ALIASES, Service
from lance_ops.store.storage_options import Aliases, read_options, read_seconds

__all__ = ["Gcs"]

_ALIASES: Aliases = {
    **GENERAL_ALIASES,
    "account_file": (
        "google_service_account",
        "service_account",
        "google_service_account_path",
        "service_account_path",
        "google_application_credentials",
        "application_credentials",
    ),
    "account_key": ("google_service_account_key", "service_account_key"),
}
_REFUSED = ("Forbidden", "Bad Request")  # how gcsfs begins the messages of 403 and 400, which have no type of their own


class Gcs(Service):
    """Conditional creates are uploads with `ifGenerationMatch=0`; gcsfs sends it for `mode="create"`."""

    schemes = ("gs", "gcs")
    package = "gcsfs"

    def protocol(self, scheme: str) -> str:
        return "gcs"

    def arguments(self, authority: str, options: Mapping[str, object]) -> dict[str, Any]:
        found = read_options(options, _ALIASES, environment_prefixes=("google_",))
        token: object = found.get("account_file")
        if "account_key" in found:
            try:
                token = json.loads(found["account_key"])
            except json.JSONDecodeError:
                # The decoder's error quotes the key.
                raise InvalidInput("storage_options: google_service_account_key is not the JSON of a key") from None
        return {"token": token, "requests_timeout": read_seconds(found, "request_timeout")}

    def create(self, fs: Any, key: str, data: bytes) -> None:
        fs.pipe_file(key, data, mode="create", chunksize=len(data) + 1)  # one request, whatever the size

    def lists_in_order(self, authority: str, options: Mapping[str, object]) -> bool:
        return True

    def is_refusal(self, error: Exception) -> bool:
        return str(error).startswith(_REFUSED)
