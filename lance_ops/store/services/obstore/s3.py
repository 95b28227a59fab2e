"""Amazon S3 and servers that speak its protocol, through obstore.

Credentials that are neither options nor environment variables (profiles, roles, containers, instances) come from
botocore, so that they are those which s3fs would use.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from lance_ops.core.errors import InvalidInput, StoreError
from lance_ops.store.services.obstore.errors import RequestFailed
from lance_ops.store.services.obstore.service import ObstoreService
from lance_ops.store.services.s3 import S3
from lance_ops.store.storage_options import read_bool

__all__ = ["ObstoreS3"]

_CONDITION_FAILED = 412
_ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_S3"
_DEFAULT_REGION = "us-east-1"
_TAKEN_OVER = {
    "endpoint": "endpoint",
    "encryption": "aws_server_side_encryption",
    "encryption_key": "aws_sse_kms_key_id",
}
_SWITCHES = {
    "virtual_hosted": "virtual_hosted_style_request",
    "s3_express": "s3_express",
    "encryption_bucket_key": "aws_sse_bucket_key_enabled",
}


class ObstoreS3(ObstoreService):
    """obstore reports a concurrent request (409) as an object that exists; only a failed condition (412) says that."""

    store_class = "S3Store"
    deleted_at_once = 1000

    def __init__(self) -> None:
        super().__init__(S3())

    def given(self, authority: str, options: Mapping[str, object]) -> dict[str, str]:
        return S3().by_name(options)

    def serves(self, options: Mapping[str, object]) -> bool:
        # Only botocore reads the addresses of single services. The variable comes first: options are slower to read.
        return _ENDPOINT_VARIABLE not in os.environ or "endpoint" in self.given("", options)

    def config(self, found: Mapping[str, str]) -> dict[str, Any]:
        config: dict[str, Any] = {theirs: found[ours] for ours, theirs in _TAKEN_OVER.items() if ours in found}
        config |= {theirs: True for ours, theirs in _SWITCHES.items() if read_bool(found, ours)}
        if "region" in found:
            config["region"] = found["region"]
        if read_bool(found, "skip_signature"):
            return {"config": {"region": _DEFAULT_REGION, **config, "skip_signature": True}}
        if "access_key_id" in found and "secret_access_key" in found:
            keys = ("access_key_id", "secret_access_key", "session_token")
            config |= {name: found[name] for name in keys if name in found}
            return {"config": {"region": _DEFAULT_REGION, **config}}
        session = import_module("botocore.session").get_session()
        profile = session.get_scoped_config()
        if "endpoint" not in found and not {"endpoint_url", "services"}.isdisjoint(profile):
            raise InvalidInput("storage_options: obstore reads no endpoint of a profile; give it as aws_endpoint")
        config.setdefault("region", session.get_config_variable("region") or _DEFAULT_REGION)
        return {"config": config, "credential_provider": _BotocoreCredentials(session)}

    def is_taken(self, error: RequestFailed) -> bool:
        return error.status == _CONDITION_FAILED


class _BotocoreCredentials:
    """What obstore calls for credentials. botocore itself renews those that expire."""

    def __init__(self, session: Any) -> None:
        self._credentials = session.get_credentials()
        if self._credentials is None:
            raise StoreError("no credentials for S3: neither options nor the environment nor a file has any")

    def __call__(self) -> dict[str, Any]:
        frozen = self._credentials.get_frozen_credentials()
        expires = hasattr(self._credentials, "refresh_needed")
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            # obstore is told that they expire now, so that botocore decides before each request.
            "expires_at": datetime.now(UTC) if expires else None,
        }
